"""The vectors of golden queries, remembered in the lake: night after night the same queries are
asked of new releases, and no encoder has to be asked for them again.

lake/vectors/<digest>/<digest>.parquet   beside those of documents, in a folder of their own for
each encoder; never pruned"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder, encode_queries
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from tasks.encoders import encoder_for
from tasks.lake.files import Lake
from tasks.lake.vector_files import merge_small_files, vector_pieces
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RememberingEncoder:
    """An encoder of queries that looks first whether the lake has their vectors, and stores what it
    had to encode.
    """

    def __init__(self, encoder: Encoder, lake: Lake) -> None:
        self.name, self.dimensions, self.fingerprint = (
            encoder.name,
            encoder.dimensions,
            encoder.fingerprint,
        )
        self._encoder, self._lake = encoder, lake
        # An encoder may encode queries in another way than documents, so they are filed apart.
        self._filed = f"{encoder.fingerprint}, as queries"
        self._merged = False

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of queries, shape (texts, dimensions), as `encode_queries` of the encoder
        itself gives them.
        """
        import numpy as np
        import polars as pl

        if not self._merged:
            merge_small_files(self._lake, self._filed)
            self._merged = True
        names = [digest(text) for text in texts]
        known: dict[str, NDArray[np.float32]] = {}
        for piece in vector_pieces(self._lake, self._filed, pl.Series(names, dtype=pl.String)):
            matrix = piece.get_column("vector").to_numpy()
            known.update(zip(piece.get_column("text_digest").to_list(), matrix, strict=True))
        if new := {
            name: text for name, text in zip(names, texts, strict=True) if name not in known
        }:
            vectors = np.asarray(encode_queries(self._encoder, list(new.values())), np.float32)
            self._store(list(new), vectors)
            known.update(zip(new, vectors, strict=True))
        return (
            np.stack([known[name] for name in names])
            if names
            else np.empty((0, self.dimensions), np.float32)
        )

    def _store(self, names: Sequence[str], vectors: "NDArray[np.float32]") -> None:
        import polars as pl

        frame = pl.DataFrame({"text_digest": names, "vector": vectors}).sort("text_digest")
        self._lake.write(
            f"{self._lake.vector_folder(self._filed)}/{digest(self._filed, sorted(names))}.parquet",
            frame,
        )


class GoldenVectors(QueryVectors):
    """Encodes by the encoders of the configuration, which know their addresses; what another
    release was made by is loaded by its name.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(None, None, CACHED_QUERY_VECTORS)
        self._settings = configuration.indexes
        self._lake = Lake(configuration.uri)
        self._remembering: dict[str, RememberingEncoder] = {}

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        fingerprint = str(manifest["fingerprint"])
        if fingerprint not in self._remembering:
            named = [
                encoder_for(one) for one in self._settings if one.encoder == manifest["encoder"]
            ]
            made_by = next((one for one in named if one.fingerprint == fingerprint), None)
            encoder = made_by or super()._encoder(loaded, index)
            self._remembering[fingerprint] = RememberingEncoder(encoder, self._lake)
        return self._remembering[fingerprint]
