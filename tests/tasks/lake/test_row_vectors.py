"""The vectors of rows: of one text, of several, and of texts that say the opposite of each
other.
"""

import logging

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import PublishError
from tasks.lake.files import Lake
from tasks.lake.vectors import row_vectors

FINGERPRINT = "stub-4"
UNITS = {
    "north": [0.0, 1.0, 0.0, 0.0],
    "south": [0.0, -1.0, 0.0, 0.0],
    "east": [1.0, 0.0, 0.0, 0.0],
    "up": [0.0, 0.0, 0.6, 0.8],
}


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A board whose lake has the vectors of four texts, in two files."""
    board = str(tmp_path_factory.mktemp("board"))
    lake = Lake(board)
    schema = {"text_digest": pl.String, "vector": pl.Array(pl.Float32, 4)}
    for file, names in (("a", ["north", "up"]), ("b", ["south", "east"])):
        frame = pl.DataFrame(
            {"text_digest": names, "vector": [UNITS[name] for name in names]}, schema=schema
        )
        lake.write(f"{lake.vector_folder(FINGERPRINT)}/{file}.parquet", frame)
    return board


def vectors(uri, *rows, **how):
    frame = pl.DataFrame(
        {"key": [f"row {number}" for number in range(len(rows))], "text_digests": list(rows)},
        schema={"key": pl.String, "text_digests": pl.List(pl.String)},
    )
    return row_vectors(uri, FINGERPRINT, frame, 4, **how)


def test_a_row_of_one_text_has_exactly_its_vector(uri):
    assert (
        vectors(uri, ["up"], ["north"], ["up"]).tolist()
        == np.float32([UNITS[n] for n in ("up", "north", "up")]).tolist()
    )


def test_a_row_of_several_texts_has_the_unit_sum_of_their_vectors(uri):
    (found,) = vectors(uri, ["north", "east", "north"])

    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([1 / 5**0.5, 2 / 5**0.5, 0, 0], abs=1e-7)


def test_texts_that_cancel_out_leave_the_vector_of_the_first_and_a_warning_that_names_the_row(
    uri, caplog
):
    with caplog.at_level(logging.WARNING):
        found = vectors(
            uri, ["east"], ["north", "south"], ["south", "east", "north"], ["south", "north"]
        )

    assert found.tolist() == [UNITS["east"], UNITS["north"], UNITS["east"], UNITS["south"]]
    assert [record.message for record in caplog.records] == [
        "The texts of 2 rows cancel out; they get the vector of their first text: row 1, row 3"
    ]


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.sampled_from(["north", "east", "up"]), min_size=1, max_size=5), max_size=8
    ),
    st.integers(1, 9),
)
def test_how_many_texts_are_in_memory_at_once_changes_no_bit(uri, rows, at_once):
    found = vectors(uri, *rows)

    assert np.array_equal(vectors(uri, *rows, texts_at_once=at_once), found)
    assert found.shape == (len(rows), 4)
    for row, vector in zip(rows, found, strict=True):
        together = np.sum([UNITS[name] for name in row], axis=0)
        assert vector == pytest.approx(together / np.linalg.norm(together), abs=1e-6)


@pytest.mark.parametrize("at_once", [1, 100])
def test_texts_that_the_lake_does_not_have_are_counted_and_nothing_comes_back(uri, at_once):
    with pytest.raises(PublishError, match="2 of 5 vectors are not in the lake"):
        vectors(uri, ["north", "nowhere"], ["east"], ["up", "elsewhere"], texts_at_once=at_once)
    with pytest.raises(PublishError, match="1 of 1 vectors are not in the lake"):
        row_vectors(
            uri, "another encoder", pl.DataFrame({"key": ["x"], "text_digests": [["north"]]}), 4
        )
