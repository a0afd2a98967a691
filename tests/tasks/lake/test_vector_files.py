"""Vectors of the lake: found in whichever files they are, while other runs add files and merge
them; and the vector of every row, of one text or of several.
"""

import numpy as np
import polars as pl
import pytest

from pegboard.canonical import digest
from pegboard.errors import StoreError
from tasks.lake.files import Lake
from tasks.lake.vectors import (
    SHARD_TEXTS,
    TIERS,
    known_texts,
    merge_small_files,
    store_vectors,
    vector_pieces,
    vectors_of,
)

MANY = [f"text {number}" for number in range(TIERS[0][1] + 1)]


@pytest.fixture
def encoder(hashing):
    return hashing(4)


class Vectors:
    """The vectors of the hashing encoder in a lake."""

    def __init__(self, lake, encoder):
        self.lake, self.encoder, self.fingerprint = lake, encoder, encoder.fingerprint

    def put(self, *texts):
        names = [digest(text) for text in texts]
        store_vectors(self.lake, self.encoder, names, self.encoder.encode(texts))

    def known(self):
        return set(known_texts(self.lake, self.fingerprint).get_column("text_digest"))

    def pieces(self, *texts):
        names = pl.Series([digest(text) for text in texts], dtype=pl.String)
        return vector_pieces(self.lake, self.fingerprint, names)

    def read(self, *texts):
        return by_digest(self.pieces(*texts))

    def expected(self, *texts):
        return dict(zip(map(digest, texts), self.encoder.encode(texts).tolist(), strict=True))

    def merge(self):
        merge_small_files(Lake(self.lake.uri.removesuffix("/lake")), self.fingerprint)


def by_digest(pieces):
    rows = [row for piece in pieces for row in piece.rows()]
    assert len({name for name, _ in rows}) == len(rows)
    return {name: np.float32(vector).tolist() for name, vector in rows}


@pytest.fixture
def vectors(lake, encoder):
    return Vectors(lake, encoder)


def test_vectors_are_found_in_any_file_and_what_is_not_there_is_absent(vectors):
    assert vectors.known() == set()
    assert vectors.read("one") == {}
    vectors.put("one", "two")
    vectors.put("two", "three")

    assert vectors.read("three", "two", "one", "four") == vectors.expected("one", "two", "three")
    assert vectors.known() == {digest(text) for text in ("one", "two", "three")}


def test_many_small_files_become_one_and_a_killed_merge_is_finished_by_the_next(
    vectors, lake_files
):
    for text in MANY:
        vectors.put(text, "a text of all")
    texts = (*MANY, "a text of all")
    before = {path: path.read_bytes() for path in lake_files().values()}

    vectors.merge()
    assert len(lake_files()) == 1
    assert vectors.read(*texts) == vectors.expected(*texts)
    assert len(vectors.known()) == len(texts)

    for path, content in before.items():  # as if the merge had not come to deleting them
        path.write_bytes(content)
    assert vectors.read(*texts) == vectors.expected(*texts)
    vectors.merge()
    assert len(lake_files()) == 1
    assert vectors.read(*texts) == vectors.expected(*texts)


def test_files_that_are_merged_while_they_are_read_are_read_in_the_merged_one(vectors):
    for text in MANY:
        vectors.put(text)

    pieces = vectors.pieces(*MANY)
    first = next(pieces)
    vectors.merge()

    assert by_digest([first, *pieces]) == vectors.expected(*MANY)


def test_a_file_that_cannot_be_read_is_reported(vectors, lake_files):
    vectors.put("one")
    vectors.known()
    next(iter(lake_files().values())).write_bytes(b"PAR1")

    with pytest.raises(StoreError, match="vectors"):
        vectors.read("one")


class Counting:
    """An encoder that records its texts, and breaks after `limit` of them."""

    name = "stub/counting"

    def __init__(self, encoder, limit=10**9):
        self.encoder = encoder
        self.limit = limit
        self.dimensions, self.fingerprint = encoder.dimensions, encoder.fingerprint
        self.texts = []

    def encode(self, texts):
        if len(self.texts) + len(texts) > self.limit:
            raise ConnectionError("the encoder went away")
        self.texts += texts
        return self.encoder.encode(texts)


def test_a_text_is_encoded_once_and_vectors_are_in_the_order_of_the_texts(lake, hashing):
    texts = ["a much longer text than all others here", "short", "", "short", "für Köln", "天気"]
    encoder = Counting(hashing())

    first = vectors_of(lake, encoder, texts)
    second = vectors_of(lake, encoder, ["new", *texts[::-1]])

    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, hashing().encode(texts))
    np.testing.assert_array_equal(second[1:], first[::-1])
    assert sorted(encoder.texts) == sorted({"new", *texts})


def test_what_was_encoded_before_a_failure_is_not_encoded_again(lake, hashing):
    texts = [f"text {number}" for number in range(SHARD_TEXTS + 200)]
    broken = Counting(hashing(), limit=SHARD_TEXTS + 100)
    whole = Counting(hashing())
    with pytest.raises(ConnectionError):
        vectors_of(lake, broken, texts)

    vectors = vectors_of(lake, whole, texts)

    assert sorted(whole.texts) == sorted(texts[SHARD_TEXTS:])
    np.testing.assert_array_equal(vectors, hashing().encode(texts))
