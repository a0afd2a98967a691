"""Query vectors: encoded by the index's encoder, or passed by the caller."""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from pegboard.encoders import Encoder, check_allowed, encode_queries, shared_encoder
from pegboard.errors import FingerprintMismatch, QueryError
from pegboard.search.loaded import LoadedRelease
from pegboard.store.contract import VECTOR_OPTIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CACHED = 2_048
"""Default number of query vectors that a board caches: 3 MB at 384 dimensions."""


class QueryVectors:
    """The encoders of a board's requests, loaded at first use, and a cache of the most recent
    vectors. Thread-safe.

    Args:
        encoder: encodes all requests, instead of the encoders that releases name.
        options: this reader's options for the encoders that releases name.
        cached: the maximum number of cached vectors; 0 for no cache.
        hosted: hosted encoders that releases may name, in addition to those that the process
            allows.
    """

    def __init__(
        self,
        encoder: Encoder | None,
        options: Mapping[str, Any] | None,
        cached: int = CACHED,
        hosted: Collection[str] = (),
    ) -> None:
        self._only_encoder = encoder
        self._cache_size = cached
        self._hosted = frozenset(hosted)
        self._cache: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._options = dict(options or {})
        self._encoders: dict[str, Encoder] = {}
        self._lock = Lock()

    def uncached(self) -> "QueryVectors":
        """Return an object that shares the encoders and has no cache."""
        uncached = QueryVectors(self._only_encoder, self._options, 0, self._hosted)
        uncached._encoders = self._encoders
        return uncached

    def unit(
        self,
        loaded: LoadedRelease,
        index: str,
        query: "Sequence[float] | NDArray[np.floating]",
    ) -> "NDArray[np.float32]":
        """Return a query vector scaled to length 1, shape (dimensions,).

        Raises:
            QueryError: the vector does not have the index's dimensions, is zero or is not finite.
        """
        import numpy as np

        manifest = loaded.index_manifest(index)
        try:
            vector = np.asarray(query, dtype=np.float32)
        except (ValueError, TypeError, OverflowError):
            raise QueryError(
                f"The query is {query!r:.80}; expected a text, or a vector of "
                f"{manifest['dimensions']} numbers."
            ) from None
        if vector.shape != (manifest["dimensions"],):
            raise QueryError(
                f"The query vector has the shape {vector.shape}; index '{index}' of release "
                f"{loaded.release.id} holds "
                f"vectors of {manifest['dimensions']} dimensions, made by {manifest['encoder']} "
                f"({manifest['fingerprint']}). Encode the query with that encoder."
            )
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0:
            raise QueryError(
                "The query vector is zero or not finite; expected a direction in the encoder's "
                "space."
            )
        return vector / np.float32(length)

    def units(
        self, loaded: LoadedRelease, index: str, texts: Sequence[str]
    ) -> "NDArray[np.float32]":
        """Return the unit vectors of requests, shape (texts, dimensions); all that are not cached
        are encoded in one call.

        Raises:
            FingerprintMismatch: the index's vectors were made by another encoder.
            EncoderError: the index's encoder is not installed, cannot be loaded, or is a hosted
                encoder that this reader does not allow.
        """
        import numpy as np

        texts = [loaded.spelled_out(text) for text in texts]
        encoder = self._encoder(loaded, index)
        with self._lock:
            vectors = {
                text: self._cache.get((encoder.fingerprint, text)) for text in dict.fromkeys(texts)
            }
        missing = [text for text, vector in vectors.items() if vector is None]
        if missing:
            encoded = encode_queries(encoder, missing)
            vectors.update(
                (text, self.unit(loaded, index, vector))
                for text, vector in zip(missing, encoded, strict=True)
            )
        with self._lock:
            for text, vector in vectors.items():
                if vector is not None and self._cache_size:
                    self._cache[encoder.fingerprint, text] = vector
                    self._cache.move_to_end((encoder.fingerprint, text))
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return np.stack(
            [vector for vector in (vectors[text] for text in texts) if vector is not None]
        )

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        encoder = self._only_encoder
        if encoder is None:
            published = manifest["options"]
            options = {
                name: published[name] for name in VECTOR_OPTIONS if name in published
            } | self._options
            key = f"{manifest['encoder']} {options}"
            with self._lock:
                if key not in self._encoders:
                    check_allowed(manifest["encoder"], self._hosted)
                    self._encoders[key] = shared_encoder(manifest["encoder"], **options)
                encoder = self._encoders[key]
        if encoder.fingerprint != manifest["fingerprint"]:
            raise FingerprintMismatch(
                f"Index '{index}' of release {loaded.release.id} was made by "
                f"{manifest['encoder']} with fingerprint "
                f"{manifest['fingerprint']}, but the encoder at hand is {encoder.name} with "
                f"fingerprint "
                f"{encoder.fingerprint}. Their vectors cannot be compared. Install the versions "
                f"that the release was "
                "made with, give `encoder=` to pegboard.open, or search with mode='text'."
            )
        return encoder
