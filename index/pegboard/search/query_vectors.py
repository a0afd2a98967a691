"""The vector of a request: from the index's encoder, or given by the caller."""

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
"""Most recent request vectors that a board caches: 3 MB at 384 dimensions."""


class QueryVectors:
    """The encoders of a board's requests, loaded when they are first needed, and the vectors that
    they made last. Threads may share it.

    Args:
        encoder: encodes all requests, instead of the encoders that releases name.
        options: how this reader reaches the encoders that releases name.
        cached: how many vectors are remembered; 0 for none.
        hosted: the hosted encoders that releases may name, beside those that the process allows.
    """

    def __init__(
        self,
        encoder: Encoder | None,
        options: Mapping[str, Any] | None,
        cached: int = CACHED,
        hosted: Collection[str] = (),
    ) -> None:
        self._given, self._cached, self._hosted = encoder, cached, frozenset(hosted)
        self._remembered: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._options = dict(options or {})
        self._encoders: dict[str, Encoder] = {}
        self._lock = Lock()

    def uncached(self) -> "QueryVectors":
        """Return the same encoders without a cache."""
        other = QueryVectors(self._given, self._options, 0, self._hosted)
        other._encoders = self._encoders
        return other

    def unit(
        self,
        loaded: LoadedRelease,
        index: str,
        given: "Sequence[float] | NDArray[np.floating]",
    ) -> "NDArray[np.float32]":
        """The vector of length 1, of shape (dimensions,), for one that the caller encoded.

        Raises:
            QueryError: the given vector has another length than those of the index, or no
                direction.
        """
        import numpy as np

        manifest = loaded.index_manifest(index)
        try:
            vector = np.asarray(given, dtype=np.float32)
        except (ValueError, TypeError, OverflowError):
            raise QueryError(
                f"The query is {given!r:.80}; expected a text, or a vector of "
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
        """The unit vectors of requests in words, of shape (texts, dimensions): those not remembered
        by one call of the encoder.

        Raises:
            FingerprintMismatch: the encoder at hand did not make this index's vectors.
            EncoderError: the index's encoder is not installed, cannot load, or is hosted and not
                among those that this reader names.
        """
        import numpy as np

        texts = [loaded.spelled_out(text) for text in texts]
        encoder = self._encoder(loaded, index)
        with self._lock:
            vectors = {
                text: self._remembered.get((encoder.fingerprint, text))
                for text in dict.fromkeys(texts)
            }
        missing = [text for text, vector in vectors.items() if vector is None]
        if missing:
            made = encode_queries(encoder, missing)
            vectors.update(
                (text, self.unit(loaded, index, vector))
                for text, vector in zip(missing, made, strict=True)
            )
        with self._lock:
            for text, vector in vectors.items():
                if vector is not None and self._cached:
                    self._remembered[encoder.fingerprint, text] = vector
                    self._remembered.move_to_end((encoder.fingerprint, text))
            while len(self._remembered) > self._cached:
                self._remembered.popitem(last=False)
        return np.stack(
            [vector for vector in (vectors[text] for text in texts) if vector is not None]
        )

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        encoder = self._given
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
