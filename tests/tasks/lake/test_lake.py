"""The lake: files written whole or not at all, and never changed."""

import polars as pl
import pytest

from pegboard.errors import StoreError
from tasks.lake.files import Lake

SCHEMA = {"text_digest": pl.String, "vector": pl.List(pl.Float32)}
FRAME = pl.DataFrame({"text_digest": ["a", "b"], "vector": [[1.0], [2.0]]}, schema=SCHEMA)


def test_a_table_comes_back_as_it_was_written_first(lake, lake_files):
    lake.write("documents/one.parquet", FRAME)
    lake.write("documents/one.parquet", FRAME.head(1))

    assert lake.read("documents/one.parquet").equals(FRAME)
    assert lake.read("documents/one.parquet", ["text_digest"]).columns == ["text_digest"]
    assert lake.exists("documents/one.parquet")
    assert list(lake_files()) == ["documents/one.parquet"]


def test_a_json_file_is_replaced_as_a_whole(lake, lake_files):
    assert lake.read_json("latest.json") is None
    for value in ({"snapshot": "天気", "long": ["x"] * 1000}, {"snapshot": "b"}):
        lake.write_json("latest.json", value)
        assert lake.read_json("latest.json") == value
    assert list(lake_files()) == ["latest.json"]


def test_a_file_in_the_place_of_the_lake_is_a_store_error_and_leaves_nothing(tmp_path, lake):
    # A folder without permission to write would not stop root, who runs tests in containers.
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "lake").write_text("in the way")

    match = r"cannot be written: .*what is published is untouched"
    for write in (
        lambda: lake.write("a/b.parquet", FRAME),
        lambda: lake.write_json("latest.json", {}),
    ):
        with pytest.raises(StoreError, match=match):
            write()
    assert (tmp_path / "board" / "lake").read_text() == "in the way"


def test_a_missing_file_and_an_unknown_kind_of_address_are_store_errors(lake):
    with pytest.raises(StoreError, match=r"documents/none.parquet cannot be read"):
        lake.read("documents/none.parquet")
    with pytest.raises(StoreError, match="cannot be opened"):
        Lake("nosuchscheme://bucket/board").exists("a")
