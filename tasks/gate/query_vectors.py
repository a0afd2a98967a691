"""The vectors of golden queries, remembered in the lake: night after night the same queries are asked of new releases, and no encoder has
to be asked for them again.

lake/vectors/<digest>/<digest>.parquet   beside those of documents, in a folder of their own for each encoder; never pruned
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.evaluation.judged import REMEMBERED
from pegboard.loaded import LoadedRelease
from pegboard.query_vectors import QueryVectors
from tasks.configuration import Configuration
from tasks.encoders import encoder_for
from tasks.lake import Lake
from tasks.vector_files import merge_small_files, vector_pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GoldenVectors"]


class GoldenVectors(QueryVectors):
    """Encodes by the encoders of the configuration, which know their addresses; what another release was made by is loaded by its name."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(None, None, REMEMBERED)
        self._settings = configuration.indexes
        self._lake = Lake(configuration.uri)
        self._merged: set[str] = set()

    def units(self, loaded: LoadedRelease, index: str, texts: Sequence[str]) -> "NDArray[np.float32]":
        """As `QueryVectors.units`; what no run encoded before is stored."""
        by = self._encoder(loaded, index).fingerprint
        unknown = [text for text in dict.fromkeys(texts) if (by, text) not in self._known]
        if new := self._recall(by, unknown):
            super().units(loaded, index, new)
            self._store(by, new)
        return super().units(loaded, index, texts)

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        for settings in self._settings:
            if settings.encoder == manifest["encoder"]:
                encoder = encoder_for(settings)
                if encoder.fingerprint == manifest["fingerprint"]:
                    return encoder
        return super()._encoder(loaded, index)

    def _recall(self, by: str, texts: Sequence[str]) -> list[str]:
        """Take what the lake has of the texts, and return the others."""
        import polars as pl

        if not texts:
            return []
        if by not in self._merged:
            self._merged.add(by)
            merge_small_files(self._lake, _as_queries(by))
        by_digest = {digest(text): text for text in texts}
        for piece in vector_pieces(self._lake, _as_queries(by), pl.Series(list(by_digest))):
            matrix = piece.get_column("vector").to_numpy()
            for name, vector in zip(piece.get_column("text_digest").to_list(), matrix, strict=True):
                self._known[by, by_digest.pop(name)] = vector
        return list(by_digest.values())

    def _store(self, by: str, texts: Sequence[str]) -> None:
        import numpy as np
        import polars as pl

        vectors = np.stack([self._known[by, text] for text in texts])
        names = [digest(text) for text in texts]
        frame = pl.DataFrame({"text_digest": names, "vector": vectors}).sort("text_digest")
        self._lake.write(f"{self._lake.vector_folder(_as_queries(by))}/{digest(by, names)}.parquet", frame)


def _as_queries(fingerprint: str) -> str:
    """What the vectors of queries are filed under: an encoder may encode them in another way than documents."""
    return f"{fingerprint}, as queries"
