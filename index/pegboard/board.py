"""The reader: `pegboard.open(uri)` gives a Board, and a Board finds tools."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from pegboard.encoders import Encoder
from pegboard.errors import BoardNotFound, QueryError, StoreError
from pegboard.filters import Filter
from pegboard.following import BoardStatus, Following
from pegboard.hits import Hit
from pegboard.loaded import LoadedRelease
from pegboard.query_vectors import QueryVectors
from pegboard.ranking import Ranked, convex_combination
from pegboard.records import Agent, Tool
from pegboard.releases import Channel, Release, ReleaseStore
from pegboard.store import public_uri
from pegboard.text import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Board", "Mode", "open_board", "open_board_async"]

Answer = TypeVar("Answer")
Mode = Literal["hybrid", "vector", "text"]
FUSION_DEPTH = 100
"""Tools that each ranking gives to the fusion, at least; four times k where that is more."""
IN_MEMORY_ROWS = 50_000
"""Boards up to this many rows are searched in memory (0.5 ms at 10,000 rows), larger ones through Lance's indices."""


class Board:
    """A published board. Threads may share one; each call answers from one whole release.

    Made by `pegboard.open`. A board opened by channel looks at the next call, when half of `refresh` has passed, whether the channel
    moved, and then swaps to the new release as a whole. While the store is away it goes on with the release it has, warns
    once through `logging`, and `status()` says how old that is. Only a board opened with `background=True` has to be closed,
    by `close()` or as a context manager; it may simply be forgotten, too.
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
        background: bool = False,
        in_memory_rows: int = IN_MEMORY_ROWS,
    ) -> None:
        self._store = store
        self._vectors = QueryVectors(encoder, encoder_options)

        def load(identity: str) -> LoadedRelease:
            return LoadedRelease(store, store.get(identity), in_memory_rows)

        self._fixed, self._opened_at = load(release) if release else None, datetime.now(UTC)
        self._following = (
            None
            if self._fixed
            else Following(partial(_promoted, store, channel), load, refresh=refresh, background=background)
        )

    @property
    def release(self) -> Release:
        """The release that the next call would answer from."""
        return self._current().release

    @property
    def agents(self) -> list[Agent]:
        """All agents of the release, by id."""
        return self._answer(lambda loaded: sorted(loaded.agents.values(), key=lambda agent: agent.id))

    def tool(self, identity: str) -> Tool | None:
        """The tool of that id, or None."""
        return self._answer(lambda loaded: loaded.tools([identity]).get(identity))

    def status(self) -> BoardStatus:
        """What the board answers from now, and how old that may be. Looks at nothing, so it never waits."""
        if self._following is not None:
            return self._following.status()
        at = self._opened_at
        return BoardStatus(self._current().release.id, None, None, at, at, 0.0, None)

    def close(self) -> None:
        """End the thread of `background=True`; the board still answers, and looks at its channel during calls."""
        if self._following is not None:
            self._following.close()

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Board":
        return self

    async def __aexit__(self, *_: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

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

        def ask(loaded: LoadedRelease) -> list[Hit]:
            name = loaded.index_name(index)
            narrowed = loaded.filter(where)
            if given is None and not words.strip():
                return []
            depth = max(FUSION_DEPTH, 4 * k) if mode == "hybrid" else k
            rankings = self._rankings(loaded, name, mode, words, given, depth, narrowed)
            return _hits(loaded, rankings, k)

        return self._answer(ask)

    async def search_async(
        self,
        query: "str | Sequence[float] | NDArray[np.floating]",
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        vector: "Sequence[float] | NDArray[np.floating] | None" = None,
    ) -> list[Hit]:
        """`search` in a thread, for callers with an event loop, which goes on meanwhile. Cancelling abandons the answer only."""
        import asyncio

        return await asyncio.to_thread(self.search, query, k, mode=mode, index=index, where=where, vector=vector)

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
        searched = loaded.index(index)
        if mode == "text":
            return {"text": searched.text(tokenize(words), depth, where)}
        unit = self._vectors.unit(loaded, index, words, given)
        if mode == "vector":
            return {"vector": searched.vector(unit, depth, where)}
        vector, text = searched.both(unit, tokenize(words), depth, where)
        return {"vector": vector, "text": text}

    def _current(self) -> LoadedRelease:
        return self._fixed or cast("Following", self._following).current()

    def _answer(self, ask: Callable[[LoadedRelease], Answer]) -> Answer:
        """What `ask` finds in the release at hand or, where that was pruned while it was at hand, in the channel's release."""
        loaded = self._current()
        try:
            return ask(loaded)
        except StoreError:
            if self._following is None:
                self._store.get(loaded.release.id)  # says so, if it is not even recorded any more
                raise
            following = self._following.instead_of(loaded)
            if following is None:
                raise
        return ask(following)


def open_board(
    uri: str,
    channel: str = "live",
    release: str | None = None,
    *,
    encoder: Encoder | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    refresh: float = 5.0,
    background: bool = False,
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
        refresh: seconds by which an answer may be behind the channel, at most; a call looks after half of that.
        background: whether a thread looks instead, so that no call ever waits for the store.
        in_memory_rows: indexes with more rows are searched through Lance.

    Raises BoardNotFound if there is no board, channel or release of that name, StoreError if the store does not answer.

    Example:
        >>> board = pegboard.open("./board")
        >>> [hit.tool.name for hit in board.search("what time is it in Oslo?")]
    """
    return Board(
        ReleaseStore(uri, storage_options),
        channel=channel,
        release=release,
        encoder=encoder,
        encoder_options=encoder_options,
        refresh=refresh,
        background=background,
        in_memory_rows=in_memory_rows,
    )


async def open_board_async(uri: str, channel: str = "live", release: str | None = None, **options: Any) -> Board:
    """`open_board` in a thread, for callers with an event loop; exported as `pegboard.open_async`. Takes the same options.

    Example:
        >>> board = await pegboard.open_async("./board")
        >>> hits = await board.search_async("what time is it in Oslo?")
    """
    import asyncio

    return await asyncio.to_thread(partial(open_board, uri, channel, release, **options))


def _promoted(store: ReleaseStore, name: str) -> Channel:
    channel = store.channel(name)
    if channel is None:
        names = ", ".join(known.name for known in store.channels()) or "none"
        raise BoardNotFound(
            f"The board at {public_uri(store.uri)} has no channel '{name}'; it has: {names}. "
            "`pegboard promote RELEASE --channel NAME` makes one."
        )
    return channel


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
    release = loaded.release.id
    return [
        Hit(tools[tool], loaded.agents[tools[tool].agent], score, why[tool], release)
        for tool, score in best
        if tool in tools
    ]
