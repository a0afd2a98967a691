"""The lake: files written whole or not at all, and never changed."""

import json
from pathlib import Path

import polars as pl
import pytest

from pegboard.errors import StoreError
from tasks.lake.files import Lake

FRAME = pl.DataFrame(
    {"text_digest": ["a", "b"], "vector": [[1.0], [2.0]]},
    schema_overrides={"vector": pl.List(pl.Float32)},
)


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path / "board"))


def files(lake):
    return sorted(
        str(path.relative_to(lake.uri)) for path in Path(lake.uri).rglob("*") if path.is_file()
    )


def test_a_table_comes_back_as_it_was_written(lake):
    lake.write("documents/one.parquet", FRAME)

    assert lake.read("documents/one.parquet").equals(FRAME)
    assert lake.read("documents/one.parquet", ["text_digest"]).columns == ["text_digest"]
    assert lake.exists("documents/one.parquet")
    assert files(lake) == ["documents/one.parquet"]


def test_a_file_that_is_there_is_never_written_again(lake):
    lake.write("documents/one.parquet", FRAME)
    before = (Path(lake.uri) / "documents/one.parquet").read_bytes()

    lake.write("documents/one.parquet", FRAME.head(1))

    assert (Path(lake.uri) / "documents/one.parquet").read_bytes() == before


def test_a_json_file_is_replaced_as_a_whole(lake):
    assert lake.read_json("latest.json") is None
    for value in ({"snapshot": "天気", "long": ["x"] * 1000}, {"snapshot": "b"}):
        lake.write_json("latest.json", value)

        assert lake.read_json("latest.json") == value
        assert json.loads((Path(lake.uri) / "latest.json").read_text("utf-8")) == value
    assert files(lake) == ["latest.json"]


def test_a_file_that_was_half_written_is_not_taken_for_one(lake):
    lake.write(f"{lake.vector_folder('f')}/one.parquet", FRAME)
    half = Path(lake.uri) / lake.vector_folder("f") / "two.parquet.4711.tmp"
    half.write_bytes(b"PAR1 half")

    assert lake.files(lake.vector_folder("f")) == [f"{lake.vector_folder('f')}/one.parquet"]


def test_a_file_in_the_place_of_the_lake_is_a_store_error_and_leaves_nothing(tmp_path):
    # A folder without permission to write would not stop root, under whom containers run their
    # tests.
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "lake").write_text("in the way")
    lake = Lake(str(tmp_path / "board"))

    for write in (
        lambda: lake.write("a/b.parquet", FRAME),
        lambda: lake.write_json("latest.json", {}),
    ):
        with pytest.raises(
            StoreError, match=r"cannot be written: .*what is published is untouched"
        ):
            write()
    assert (tmp_path / "board" / "lake").read_text() == "in the way"


def test_a_file_that_is_missing_is_a_store_error(lake):
    with pytest.raises(StoreError, match=r"documents/none.parquet cannot be read"):
        lake.read("documents/none.parquet")


def test_an_address_of_an_unknown_kind_is_a_store_error():
    with pytest.raises(StoreError, match="cannot be opened"):
        Lake("nosuchscheme://bucket/board").exists("a")
