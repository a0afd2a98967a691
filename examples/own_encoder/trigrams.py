"""Encoder `trigrams/<dimensions>`: counts the character trigrams of a text, so that typos cost little.

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
        fold_case: treat capital letters as small ones. Keyword-only parameters are the options
            that `[indexes.options]` may set.
    """

    def __init__(self, name: str, *, fold_case: bool = True) -> None:
        self.name = name
        self.dimensions = int(name.partition("/")[2])
        self._fold_case = fold_case
        # Everything that decides a vector. A reader whose encoder has another fingerprint is refused.
        self.fingerprint = f"trigrams-{self.dimensions}/fold_case={fold_case}/1"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of the texts, shape (len(texts), dimensions), in their order."""
        vectors = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, text in enumerate(texts):
            buckets = [crc32(trigram.encode()) % self.dimensions for trigram in self._trigrams(text)]
            np.add.at(vectors[row], buckets, 1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _trigrams(self, text: str) -> list[str]:
        padded = f" {text.casefold() if self._fold_case else text} "
        return [padded[start : start + 3] for start in range(len(padded) - 2)]
