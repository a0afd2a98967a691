"""Vectors through the lake: in the order of the texts, each text encoded once per board."""

import numpy as np
import pytest

from tasks.enrichment.vectors import SHARD_TEXTS, vectors_of


class Counting:
    """An encoder that records its texts, and breaks after `limit` of them."""

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


def test_a_text_is_encoded_once_and_vectors_are_in_the_order_of_the_texts(workshop, hashing):
    texts = ["a much longer text than all others here", "short", "", "short", "für Köln", "天気"]
    encoder = Counting(hashing())

    first = vectors_of(workshop.lake, encoder, texts)
    second = vectors_of(workshop.lake, encoder, ["new", *texts[::-1]])

    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, hashing().encode(texts))
    np.testing.assert_array_equal(second[1:], first[::-1])
    assert sorted(encoder.texts) == sorted({"new", *texts})


def test_what_was_encoded_before_a_failure_is_not_encoded_again(workshop, hashing):
    texts = [f"text {number}" for number in range(SHARD_TEXTS + 200)]
    broken, whole = Counting(hashing(), limit=SHARD_TEXTS + 100), Counting(hashing())
    with pytest.raises(ConnectionError):
        vectors_of(workshop.lake, broken, texts)

    vectors = vectors_of(workshop.lake, whole, texts)

    assert sorted(whole.texts) == sorted(texts[SHARD_TEXTS:])
    np.testing.assert_array_equal(vectors, hashing().encode(texts))
