"""The hashing encoder: bag-of-words vectors without a model."""

from zlib import crc32

import numpy as np

from pegboard.encoders import hashing, load_encoder


def test_the_name_gives_the_dimensions_and_the_fingerprint():
    encoder = load_encoder("hashing/48")

    assert (encoder.name, encoder.dimensions, encoder.fingerprint) == (
        "hashing/48",
        48,
        "hashing-48/1",
    )


def test_a_vector_counts_each_word_in_the_bucket_of_its_crc32():
    counts = np.full(1000, 0.01)
    for word in ["list", "file", "list"]:
        counts[crc32(word.encode()) % 1000] += 1

    vector = load_encoder("hashing/1000").encode(["List files, lists"])[0]

    np.testing.assert_allclose(vector, counts / np.linalg.norm(counts), rtol=1e-6)


def test_vectors_do_not_depend_on_the_block_they_are_computed_in(monkeypatch):
    encoder = load_encoder("hashing/64")
    texts = [f"tool {number} of {number % 7}" for number in range(100)]
    at_once = encoder.encode(texts)

    monkeypatch.setattr(hashing, "BLOCK_CELLS", 64 * 3)

    np.testing.assert_array_equal(encoder.encode(texts), at_once)
