"""The hashing encoder: bag-of-words vectors by feature hashing. No weights, no network, no
training.

Its vectors hold no meaning, only words: "car" is as far from "automobile" as from "banana". It is
for tests, trials of scale and demonstrations of the pipeline, and never a fallback for a model.
"""

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pegboard.encoders import checked_texts
from pegboard.errors import ConfigurationError
from pegboard.text.words import singular_words

VERSION = 1
"""Part of the fingerprint. Increment it with any change by which a text gets another vector, one of
`pegboard.text.words.singular_words` included."""
SMOOTHING = 0.01
"""Added to every count, so that a text without words has a vector of length 1 too."""
BLOCK_CELLS = 4_000_000
"""Counts held at once: 32 MB in double precision, whatever the number of texts."""


class HashingEncoder:
    """Counts the words of a text in one bucket per dimension. Safe to share between threads.

    A word's bucket is the CRC-32 of its UTF-8 bytes modulo the dimensions: the hashing trick of
    Weinberger et al., "Feature Hashing for Large Scale Multitask Learning" (2009), section 2,
    without the sign. A vector is scaled to length 1 in double precision and does not depend on
    the batch.

    Args:
        name: `hashing/<dimensions>`, such as `hashing/256`.

    Raises:
        ConfigurationError: the name gives no positive number of dimensions.

    Example:
        >>> HashingEncoder("hashing/256").encode(["convert 30 dollars"]).shape
        (1, 256)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dimensions = _dimensions(name)
        self.fingerprint = f"hashing-{self.dimensions}/{VERSION}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of the texts, shape (len(texts), dimensions), in their order."""
        checked = checked_texts(texts)
        vectors = np.empty((len(checked), self.dimensions), np.float32)
        rows = max(1, BLOCK_CELLS // self.dimensions)
        for start in range(0, len(checked), rows):
            vectors[start : start + rows] = self._block(checked[start : start + rows])
        return vectors

    def _block(self, texts: list[str]) -> NDArray[np.float64]:
        hashes = [[crc32(word.encode()) for word in singular_words(text)] for text in texts]
        lengths = [len(row) for row in hashes]
        buckets = (
            np.fromiter((value for row in hashes for value in row), np.int64, sum(lengths))
            % self.dimensions
        )
        cells = np.repeat(np.arange(len(texts)) * self.dimensions, lengths) + buckets
        counts = np.bincount(cells, minlength=len(texts) * self.dimensions).reshape(
            len(texts), self.dimensions
        )
        smoothed = counts + SMOOTHING
        return smoothed / np.linalg.norm(smoothed, axis=1, keepdims=True)


def _dimensions(name: str) -> int:
    _, _, digits = name.partition("/")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", digits):
        raise ConfigurationError(
            f"Encoder {name!r}: expected a positive number of dimensions after the slash, got "
            f"{digits!r}. Try 'hashing/256'."
        )
    return int(digits)
