"""The vectors of golden queries, kept between runs: no query is encoded twice by the same encoder.

<lake>/vectors/<digest>/<digest>.parquet   beside those of documents, in a folder of their own for
each encoder; never pruned. The texts of queries are not kept."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder, encode_queries
from pegboard.errors import FingerprintMismatch
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from tasks.embed import encoder_for
from tasks.lake.files import Lake
from tasks.lake.vectors import merge_small_files, vector_pieces
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CachedQueryEncoder:
    """An encoder of queries that keeps its vectors in a lake.

    Args:
        name, fingerprint, dimensions: of the encoder.
        load: loads the encoder, when the first text comes that the lake does not have.
    """

    def __init__(
        self,
        lake: Lake,
        name: str,
        fingerprint: str,
        dimensions: int,
        load: Callable[[], Encoder],
    ) -> None:
        self.name, self.fingerprint, self.dimensions = name, fingerprint, dimensions
        self._lake, self._load = lake, load
        # An encoder may encode queries differently from documents: they have a folder of their own.
        self._filed = f"{fingerprint}, as queries"
        self._merged = False

    @classmethod
    def of(cls, encoder: Encoder, lake: Lake) -> "CachedQueryEncoder":
        """Return an encoder that is loaded, with its vectors in a lake."""
        return cls(lake, encoder.name, encoder.fingerprint, encoder.dimensions, lambda: encoder)

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return what `encode_queries` of the encoder returns, of shape (texts, dimensions).

        Raises:
            FingerprintMismatch: another encoder was loaded.
        """
        import numpy as np
        import polars as pl

        if not self._merged:
            merge_small_files(self._lake, self._filed)
            self._merged = True
        names = [digest(text) for text in texts]
        vectors: dict[str, NDArray[np.float32]] = {}
        for piece in vector_pieces(self._lake, self._filed, pl.Series(names, dtype=pl.String)):
            matrix = piece.get_column("vector").to_numpy()
            vectors.update(zip(piece.get_column("text_digest").to_list(), matrix, strict=True))
        missing = dict(zip(names, texts, strict=True))
        missing = {name: text for name, text in missing.items() if name not in vectors}
        if missing:
            vectors.update(zip(missing, self._encode(missing), strict=True))
        if not names:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([vectors[name] for name in names])

    def _encode(self, texts: dict[str, str]) -> "NDArray[np.float32]":
        """Encode texts by their digests, and keep the vectors."""
        import numpy as np
        import polars as pl

        encoder = self._load()
        if encoder.fingerprint != self.fingerprint:
            raise FingerprintMismatch(
                f"The release was made by {self.name} with fingerprint {self.fingerprint}, but the "
                f"encoder at hand has fingerprint {encoder.fingerprint}. Install the versions that "
                f"the release was made with, or build it anew."
            )
        vectors = np.asarray(encode_queries(encoder, list(texts.values())), np.float32)
        frame = pl.DataFrame({"text_digest": list(texts), "vector": vectors}).sort("text_digest")
        name = digest(self._filed, sorted(texts))
        self._lake.write(f"{self._lake.vector_folder(self._filed)}/{name}.parquet", frame)
        return vectors


class CachedQueryVectors(QueryVectors):
    """Query vectors by the encoders of a configuration, kept in its lake.

    An encoder that the configuration does not have is loaded as the release names it."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(None, None, CACHED_QUERY_VECTORS)
        self._settings = configuration.indexes
        self._lake = Lake(configuration.uri)
        self._cached_encoders: dict[str, CachedQueryEncoder] = {}

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        fingerprint = str(manifest["fingerprint"])
        if fingerprint not in self._cached_encoders:
            configured = [
                encoder_for(index_settings)
                for index_settings in self._settings
                if index_settings.encoder == manifest["encoder"]
            ]
            same = [encoder for encoder in configured if encoder.fingerprint == fingerprint]
            encoder = same[0] if same else super()._encoder(loaded, index)
            self._cached_encoders[fingerprint] = CachedQueryEncoder.of(encoder, self._lake)
        return self._cached_encoders[fingerprint]
