"""Vectors of the lake: found in whichever files they are, while other runs add files and merge
them.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.enrichment.vectors import store_vectors
from tasks.lake.files import Lake
from tasks.lake.vectors import TIERS, known_texts, merge_small_files, vector_pieces


@pytest.fixture
def encoder(hashing):
    return hashing(4)


def put(lake, encoder, *texts):
    store_vectors(lake, encoder, [digest(text) for text in texts], encoder.encode(texts))


def known(lake, encoder):
    return sorted(known_texts(lake, encoder.fingerprint).get_column("text_digest"))


def found(lake, encoder, *texts):
    """The vectors by the digest of the text."""
    wanted = pl.Series([digest(text) for text in texts], dtype=pl.String)
    rows = [
        row for piece in vector_pieces(lake, encoder.fingerprint, wanted) for row in piece.rows()
    ]
    assert len({one for one, _ in rows}) == len(rows)
    return {one: np.float32(vector).tolist() for one, vector in rows}


def expected(encoder, *texts):
    return dict(zip(map(digest, texts), encoder.encode(texts).tolist(), strict=True))


def paths(lake, encoder):
    return [Path(lake.uri) / path for path in lake.files(lake.vector_folder(encoder.fingerprint))]


def test_vectors_are_found_in_any_file_and_what_is_not_there_is_absent(tmp_path, encoder):
    lake = Lake(str(tmp_path))
    put(lake, encoder, "one", "two")
    put(lake, encoder, "two", "three")

    assert found(lake, encoder, "three", "two", "one", "four") == expected(
        encoder, "one", "two", "three"
    )
    assert set(known(lake, encoder)) == {digest(text) for text in ("one", "two", "three")}


def test_a_board_without_vectors_has_none(tmp_path, encoder):
    assert known(Lake(str(tmp_path)), encoder) == []
    assert found(Lake(str(tmp_path)), encoder, "one") == {}


def test_what_another_run_adds_or_takes_away_meanwhile_is_seen(tmp_path, encoder):
    lake = Lake(str(tmp_path))
    put(lake, encoder, "one")
    assert known(lake, encoder) == [digest("one")]

    put(Lake(str(tmp_path)), encoder, "two")
    assert known(lake, encoder) == sorted([digest("one"), digest("two")])

    for path in paths(lake, encoder):
        path.unlink()
    assert known(lake, encoder) == []


def test_many_small_files_become_one_and_nothing_is_lost(tmp_path, encoder):
    lake, texts = Lake(str(tmp_path)), [f"text {number}" for number in range(TIERS[0][1] + 1)]
    for text in texts:
        put(lake, encoder, text, "a text of all")
    before = found(lake, encoder, *texts, "a text of all")

    merge_small_files(lake, encoder.fingerprint)

    assert len(paths(lake, encoder)) == 1
    assert (
        found(lake, encoder, *texts, "a text of all")
        == before
        == expected(encoder, *texts, "a text of all")
    )
    assert len(known(lake, encoder)) == len(texts) + 1


def test_few_files_and_large_ones_stay_as_they_are(tmp_path, encoder):
    lake = Lake(str(tmp_path))
    for number in range(TIERS[0][1]):
        put(lake, encoder, f"text {number}")
    put(lake, encoder, *(f"long {number}" for number in range(TIERS[0][0])))
    before = paths(lake, encoder)

    merge_small_files(lake, encoder.fingerprint)

    assert paths(lake, encoder) == before


def test_a_merge_that_was_killed_before_it_deleted_is_finished_by_the_next(tmp_path, encoder):
    lake, texts = Lake(str(tmp_path)), [f"text {number}" for number in range(TIERS[0][1] + 1)]
    for text in texts:
        put(lake, encoder, text)
    kept = {path: path.read_bytes() for path in paths(lake, encoder)}
    merge_small_files(lake, encoder.fingerprint)
    for path, content in kept.items():
        path.write_bytes(content)
    assert found(lake, encoder, *texts) == expected(encoder, *texts)

    merge_small_files(lake, encoder.fingerprint)

    assert len(paths(lake, encoder)) == 1
    assert found(lake, encoder, *texts) == expected(encoder, *texts)


def test_files_that_are_merged_while_they_are_read_are_read_in_the_merged_one(tmp_path, encoder):
    lake, texts = Lake(str(tmp_path)), [f"text {number}" for number in range(TIERS[0][1] + 1)]
    for text in texts:
        put(lake, encoder, text)
    wanted = pl.Series([digest(text) for text in texts])

    pieces = vector_pieces(lake, encoder.fingerprint, wanted)
    first = next(pieces)
    merge_small_files(Lake(str(tmp_path)), encoder.fingerprint)
    rows = [*first.rows(), *(row for piece in pieces for row in piece.rows())]

    assert {one: np.float32(vector).tolist() for one, vector in rows} == expected(encoder, *texts)
    assert len(rows) == len(texts)


def test_a_file_that_cannot_be_read_is_said(tmp_path, encoder):
    lake = Lake(str(tmp_path))
    put(lake, encoder, "one")
    known(lake, encoder)
    paths(lake, encoder)[0].write_bytes(b"PAR1")

    with pytest.raises(StoreError, match="vectors"):
        found(lake, encoder, "one")
