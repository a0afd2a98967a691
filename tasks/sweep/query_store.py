"""An encoder of queries that keeps its vectors in a folder, so that a sweep that goes on encodes
nothing twice.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder, encode_queries
from pegboard.errors import FingerprintMismatch
from tasks.sweep.files import read_frame, write_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class StoredQueries:
    """Encodes queries by the encoder of an index, which is loaded when a text comes that the folder
    does not know.

    Args:
        folder: where the vectors are kept, by the digest of their text; texts are not.
        name, fingerprint, dimensions: of the encoder, as the release has them.
        load: loads the encoder.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        fingerprint: str,
        dimensions: int,
        load: Callable[[], Encoder],
    ) -> None:
        self.name, self.fingerprint, self.dimensions = name, fingerprint, dimensions
        self._folder = folder / digest(fingerprint)[:16]
        self._load = load
        self._known: dict[bytes, NDArray[np.float32]] = {}
        for file in sorted(self._folder.glob("*.parquet")):
            rows = read_frame(file)
            matrix = rows.get_column("vector").to_numpy()
            self._known.update(zip(rows.get_column("text_digest").to_list(), matrix, strict=True))

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of the queries, of shape (texts, dimensions). Raises FingerprintMismatch if
        another encoder was loaded.
        """
        import numpy as np

        keys = [hashlib.sha256(text.encode()).digest()[:16] for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._known
        }
        if missing:
            self._encode(missing)
        return np.stack([self._known[key] for key in keys])

    def _encode(self, missing: dict[bytes, str]) -> None:
        import polars as pl

        encoder = self._load()
        if encoder.fingerprint != self.fingerprint:
            raise FingerprintMismatch(
                f"The release was made by {self.name} with fingerprint {self.fingerprint}, but "
                f"the encoder at hand has fingerprint "
                f"{encoder.fingerprint}. Install the versions that the release was made with, or "
                f"build it anew."
            )
        vectors = encode_queries(encoder, list(missing.values()))
        self._known.update(zip(missing, vectors, strict=True))
        schema = {"text_digest": pl.Binary, "vector": pl.Array(pl.Float32, self.dimensions)}
        rows = pl.DataFrame({"text_digest": list(missing), "vector": vectors}, schema=schema)
        write_frame(
            self._folder / f"{digest(sorted(key.hex() for key in missing))[:16]}.parquet", rows
        )
