"""The reader: `pegboard.open(uri)` gives a Board, and a Board finds tools."""

import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, get_args

from pegboard.contract import VECTOR_OPTIONS
from pegboard.encoders import Encoder, encode_queries, load_encoder
from pegboard.errors import BoardError, BoardNotFound, FingerprintMismatch, QueryError
from pegboard.filters import Filter
from pegboard.hits import Hit
from pegboard.loaded import LoadedRelease
from pegboard.ranking import Ranked, convex_combination
from pegboard.records import Agent, Tool
from pegboard.releases import Release, ReleaseStore
from pegboard.store import public_uri
from pegboard.text import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Board", "Mode", "open_board"]

Mode = Literal["hybrid", "vector", "text"]
FUSION_DEPTH = 100
"""Tools that each ranking gives to the fusion, at least; four times k where that is more."""
IN_MEMORY_ROWS = 50_000
"""Boards up to this many rows are searched in memory (0.5 ms at 10,000 rows), larger ones through Lance's indices."""


class Board:
    """A published board. Threads may share one; each call answers from one whole release.

    Made by `pegboard.open`. A board opened by channel looks every `refresh` seconds, at the next call, whether the channel
    moved, and then swaps to the new release as a whole. If the store is away, it goes on with the release it has.
    """

    def __init__(
        self,
        store: ReleaseStore,
        *,
        channel: str = "live",
        release: str | None = None,
        encoder: Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        refresh: float = 5.0,
        in_memory_rows: int = IN_MEMORY_ROWS,
    ) -> None:
        self._store = store
        self._channel = None if release else channel
        self._given_encoder = encoder
        self._encoder_options = dict(encoder_options or {})
        self._encoders: dict[str, Encoder] = {}
        self._refresh = refresh
        self._in_memory_rows = in_memory_rows
        self._lock = Lock()
        self._encoder_lock = Lock()
        self._loaded = self._load(release or self._promoted())
        self._checked = time.monotonic()

    @property
    def release(self) -> Release:
        """The release that the next call would answer from."""
        return self._current().release

    @property
    def agents(self) -> list[Agent]:
        """All agents of the release, by id."""
        return sorted(self._current().agents.values(), key=lambda agent: agent.id)

    def tool(self, identity: str) -> Tool | None:
        """The tool of that id, or None."""
        return self._current().tools([identity]).get(identity)

    def search(
        self,
        query: "str | Sequence[float] | NDArray[np.floating]",
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        vector: "Sequence[float] | NDArray[np.floating] | None" = None,
    ) -> list[Hit]:
        """The `k` best tools for a request, best first; none for a blank one.

        Args:
            query: the request, or its vector of shape (dimensions,), which the caller encoded; a vector searches by vector.
            mode: `vector` ranks by cosine, `text` by BM25, `hybrid` by 0.8 of the one and 0.2 of the other, scaled.
            index: an index of the release; the release's default if None.
            where: only tools with one of these values of `agent` (id or name), `catalog`, `kind` or `tags`.
            vector: the request's vector, if the caller encoded it and the words are to be searched as well.

        Raises:
            QueryError: an unknown mode or filter, a k below 1, or a vector of another length.
            FingerprintMismatch: the encoder at hand did not make this index's vectors.
            EncoderError: the index's encoder is not installed or cannot load.

        Example:
            >>> board.search("convert 30 dollars to yen", k=3, where={"catalog": "finance"})
        """
        words = query if isinstance(query, str) else ""
        given = vector if isinstance(query, str) else query
        if not isinstance(query, str) and mode == "hybrid":
            mode = "vector"
        if mode not in get_args(Mode):
            raise QueryError(f"There is no mode '{mode}'. Expected one of: {', '.join(get_args(Mode))}.")
        if k < 1:
            raise QueryError(f"k is {k}; expected the number of tools wanted, 1 or more.")
        if mode == "text" and not isinstance(query, str):
            raise QueryError("Mode 'text' searches words, but the query is a vector. Give the request as text.")
        loaded = self._current()
        name = loaded.index_name(index)
        narrowed = loaded.filter(where)
        if given is None and not words.strip():
            return []
        rankings = self._rankings(loaded, name, mode, words, given, max(FUSION_DEPTH, 4 * k), narrowed)
        return _hits(loaded, rankings, k)

    def _rankings(
        self,
        loaded: LoadedRelease,
        index: str,
        mode: Mode,
        words: str,
        given: "Sequence[float] | NDArray[np.floating] | None",
        depth: int,
        where: Filter | None,
    ) -> dict[str, list[Ranked]]:
        rankings: dict[str, list[Ranked]] = {}
        if mode in ("hybrid", "vector"):
            unit = self._unit_vector(loaded, index, words, given)
            rankings["vector"] = loaded.index(index).vector(unit, depth, where)
        if mode in ("hybrid", "text"):
            rankings["text"] = loaded.index(index).text(tokenize(words), depth, where)
        return rankings

    def _unit_vector(
        self,
        loaded: LoadedRelease,
        index: str,
        words: str,
        given: "Sequence[float] | NDArray[np.floating] | None",
    ) -> "NDArray[np.float32]":
        import numpy as np

        manifest = loaded.index_manifest(index)
        if given is None:
            given = encode_queries(self._encoder(loaded, index), [words])[0]
        vector = np.asarray(given, dtype=np.float32)
        if vector.shape != (manifest["dimensions"],):
            raise QueryError(
                f"The query vector has the shape {vector.shape}; index '{index}' of release {loaded.release.id} holds "
                f"vectors of {manifest['dimensions']} dimensions, made by {manifest['encoder']} "
                f"({manifest['fingerprint']}). Encode the query with that encoder."
            )
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0:
            raise QueryError("The query vector is zero or not finite; expected a direction in the encoder's space.")
        return vector / np.float32(length)

    def _encoder(self, loaded: LoadedRelease, index: str) -> Encoder:
        manifest = loaded.index_manifest(index)
        encoder = self._given_encoder
        if encoder is None:
            published = manifest.get("options", {})
            options = {name: published[name] for name in VECTOR_OPTIONS if name in published} | self._encoder_options
            key = f"{manifest['encoder']} {options}"
            with self._encoder_lock:
                if key not in self._encoders:
                    self._encoders[key] = load_encoder(manifest["encoder"], **options)
                encoder = self._encoders[key]
        if encoder.fingerprint != manifest["fingerprint"]:
            raise FingerprintMismatch(
                f"Index '{index}' of release {loaded.release.id} was made by {manifest['encoder']} with fingerprint "
                f"{manifest['fingerprint']}, but the encoder at hand is {encoder.name} with fingerprint "
                f"{encoder.fingerprint}. Their vectors cannot be compared. Install the versions that the release was "
                "made with, give `encoder=` to pegboard.open, or search with mode='text'."
            )
        return encoder

    def _current(self) -> LoadedRelease:
        due = self._channel is not None and time.monotonic() - self._checked >= self._refresh
        if due and self._lock.acquire(blocking=False):
            try:
                promoted = self._promoted()
                if promoted != self._loaded.release.id:
                    following = self._load(promoted)
                    following.warm(self._loaded)
                    self._loaded = following
            except BoardError:
                pass  # The store is away, or the new release is not for this version: the one at hand still answers.
            finally:
                self._checked = time.monotonic()
                self._lock.release()
        return self._loaded

    def _promoted(self) -> str:
        channel = self._store.channel(self._channel or "live")
        if channel is None:
            names = ", ".join(known.name for known in self._store.channels()) or "none"
            raise BoardNotFound(
                f"The board at {public_uri(self._store.uri)} has no channel '{self._channel}'; it has: {names}. "
                "`pegboard promote RELEASE --channel NAME` makes one."
            )
        return channel.release

    def _load(self, release: str) -> LoadedRelease:
        return LoadedRelease(self._store, self._store.get(release), self._in_memory_rows)


def open_board(
    uri: str,
    channel: str = "live",
    release: str | None = None,
    *,
    encoder: Encoder | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    refresh: float = 5.0,
    in_memory_rows: int = IN_MEMORY_ROWS,
) -> Board:
    """Open a published board for searching; exported as `pegboard.open`.

    Args:
        uri: the board's root: a folder, or an address that LanceDB takes (s3://, az://, gs://).
        channel: the channel to follow.
        release: a release to stay on, instead of following a channel.
        encoder: encodes the queries, instead of the encoder that the release names; its fingerprint must be the same.
        encoder_options: how this reader reaches the encoder, such as `api_base`; what decides a vector is in the release.
        storage_options: credentials and endpoints for the store, as LanceDB takes them.
        refresh: seconds after which a call looks whether the channel moved.
        in_memory_rows: indexes with more rows are searched through Lance.

    Raises BoardNotFound if there is no board, channel or release of that name.

    Example:
        >>> board = pegboard.open("./board")
        >>> [hit.tool.name for hit in board.search("what time is it in Oslo?")]
    """
    store = ReleaseStore(uri, storage_options)
    return Board(
        store,
        channel=channel,
        release=release,
        encoder=encoder,
        encoder_options=encoder_options,
        refresh=refresh,
        in_memory_rows=in_memory_rows,
    )


def _hits(loaded: LoadedRelease, rankings: Mapping[str, Sequence[Ranked]], k: int) -> list[Hit]:
    if len(rankings) == 1:
        (ranking,) = rankings.values()
        best = [(row.tool, row.score) for row in ranking[:k]]
    else:
        best = convex_combination(rankings["vector"], rankings["text"])[:k]
    why: dict[str, dict[str, dict[str, Any]]] = {}
    for name, ranking in rankings.items():
        for rank, row in enumerate(ranking, start=1):
            why.setdefault(row.tool, {})[name] = {"rank": rank, "score": row.score, "part": row.part}
    tools = loaded.tools([tool for tool, _ in best])
    return [
        Hit(tools[tool], loaded.agents[tools[tool].agent], score, why[tool]) for tool, score in best if tool in tools
    ]
