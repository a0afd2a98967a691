"""Encoder `trigrams/<dimensions>`: counts the character trigrams of a text, so that typos cost
little.

It satisfies `pegboard.encoders.Encoder` by its members alone and imports nothing of Pegboard.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray


class TrigramEncoder:
    """Hashes each trigram to one of the vector's dimensions.

    Args:
        name: the encoder's name in pegboard.toml, such as `trigrams/512`.

    Raises:
        ValueError: the name gives no number of dimensions.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dimensions = int(name.partition("/")[2])
        # Everything that decides a vector. A reader whose encoder has another fingerprint is
        # refused.
        self.fingerprint = f"trigrams-{self.dimensions}/1"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of the texts, shape (len(texts), dimensions), in their order."""
        vectors = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, text in enumerate(texts):
            buckets = [crc32(trigram.encode()) % self.dimensions for trigram in trigrams(text)]
            np.add.at(vectors[row], buckets, 1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def trigrams(text: str) -> list[str]:
    """Return every run of three characters of the text, in lower case and with a blank at both
    ends.
    """
    padded = f" {text.casefold()} "
    return [padded[start : start + 3] for start in range(len(padded) - 2)]
