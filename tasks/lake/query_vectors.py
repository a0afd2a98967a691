"""The vectors of golden queries, kept between runs: no query is encoded twice by the same encoder.

<lake>/vectors/<digest>/<digest>.parquet   beside those of documents, in a folder of their own for
each encoder; never pruned. The texts of queries are not kept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.encoders import Encoder, encode_queries
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from tasks.lake.files import Lake
from tasks.lake.vectors import merge_small_files, vectors_of
from tasks.settings.configuration import IndexSettings
from tasks.settings.encoders import encoder_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CachedQueryEncoder:
    """An encoder whose vectors of queries are kept in a lake."""

    def __init__(self, encoder: Encoder, lake: Lake) -> None:
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimensions = encoder.dimensions
        self._as_queries, self._lake = _QueryEncoder(encoder), lake
        merge_small_files(lake, self._as_queries.fingerprint)

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return what `encode_queries` of the encoder returns, of shape (texts, dimensions)."""
        return vectors_of(self._lake, self._as_queries, texts, step=None)


class _QueryEncoder:
    """An encoder of queries, under a fingerprint of their own: some encode them differently."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dimensions = encoder.name, encoder.dimensions
        self.fingerprint = f"{encoder.fingerprint}, as queries"
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return encode_queries(self._encoder, texts)


class ConfiguredVectors(QueryVectors):
    """Query vectors by the encoders of a configuration, kept in a lake.

    Args:
        indexes: those of the configuration. An encoder that none of them has is loaded as the
            release names it.
        lake: None to keep none, and to remember none.
    """

    def __init__(self, indexes: Sequence[IndexSettings], lake: Lake | None) -> None:
        super().__init__(None, None, CACHED_QUERY_VECTORS if lake else 0)
        self._indexes = indexes
        self._lake = lake
        self._by_fingerprint: dict[str, Encoder] = {}

    def uncached(self) -> QueryVectors:
        """Return the same encoders without a cache."""
        return ConfiguredVectors(self._indexes, None)

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        fingerprint = str(manifest["fingerprint"])
        if fingerprint not in self._by_fingerprint:
            configured = [
                encoder_for(index_settings)
                for index_settings in self._indexes
                if index_settings.encoder == manifest["encoder"]
            ]
            same = [encoder for encoder in configured if encoder.fingerprint == fingerprint]
            encoder = same[0] if same else super()._encoder(loaded, index)
            lake = self._lake
            self._by_fingerprint[fingerprint] = (
                CachedQueryEncoder(encoder, lake) if lake else encoder
            )
        return self._by_fingerprint[fingerprint]
