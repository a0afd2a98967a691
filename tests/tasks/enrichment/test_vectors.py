"""Vectors through the lake: in the order of the texts, each text encoded once in the life of a
board.
"""

import numpy as np
import pytest

from tasks.enrichment.vectors import SHARD_TEXTS, vectors_of
from tasks.lake.row_sets import read_rows


class Counting:
    """An encoder that remembers what it was asked, and may break after so many texts."""

    name = "stub/counting"

    def __init__(self, encoder, limit=10**9):
        self.encoder, self.limit = encoder, limit
        self.dimensions, self.fingerprint = encoder.dimensions, encoder.fingerprint
        self.texts = []

    def encode(self, texts):
        if len(self.texts) + len(texts) > self.limit:
            raise ConnectionError("the encoder went away")
        self.texts += texts
        return self.encoder.encode(texts)


def test_vectors_come_in_the_order_of_the_texts_whatever_their_lengths(workshop, hashing):
    texts = ["a much longer text than all others here", "short", "", "short", "für Köln", "天気"]

    vectors = vectors_of(workshop.lake, hashing(), texts)

    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, hashing().encode(texts))


def test_a_text_is_encoded_once_for_all_who_ask(workshop, hashing):
    encoder = Counting(hashing())
    first = vectors_of(workshop.lake, encoder, ["one", "two", "one"])

    second = vectors_of(workshop.lake, encoder, ["three", "two", "two", "one"])

    assert sorted(encoder.texts) == ["one", "three", "two"]
    np.testing.assert_array_equal(second[[3, 1]], first[[0, 1]])
    np.testing.assert_array_equal(second[1], second[2])


def test_another_encoder_does_not_share_vectors(workshop, hashing):
    vectors_of(workshop.lake, hashing(8), ["one"])

    assert vectors_of(workshop.lake, hashing(16), ["one"]).shape == (1, 16)


def test_no_texts_have_no_vectors(workshop, hashing):
    assert vectors_of(workshop.lake, hashing(8), []).shape == (0, 8)


def test_what_was_encoded_before_a_failure_is_not_encoded_again(workshop, hashing):
    texts = [f"text {number}" for number in range(SHARD_TEXTS + 200)]
    broken, whole = Counting(hashing(), limit=SHARD_TEXTS + 100), Counting(hashing())
    with pytest.raises(ConnectionError):
        vectors_of(workshop.lake, broken, texts)

    vectors = vectors_of(workshop.lake, whole, texts)

    assert sorted(whole.texts) == sorted(texts[SHARD_TEXTS:])
    np.testing.assert_array_equal(vectors, hashing().encode(texts))


def test_documents_that_were_embedded_are_found(workshop, hashing):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    run = workshop.run(workshop.configure(), encoder=hashing())
    documents, _of_agents = run.documents
    texts = (
        read_rows(workshop.lake, documents.path, ["texts"])
        .explode("texts")
        .get_column("texts")
        .to_list()
    )
    encoder = Counting(hashing())

    vectors_of(workshop.lake, encoder, texts)

    assert texts
    assert encoder.texts == []
