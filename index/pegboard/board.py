"""The reader: `pegboard.open(uri)` gives a Board, and a Board finds tools."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pegboard.encoders import Encoder
from pegboard.errors import BoardNotFound, ConfigurationError, StoreError
from pegboard.hits import Hit
from pegboard.records import Agent, Tool
from pegboard.search.direct_search import Direct, search_directly
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import Mode
from pegboard.store.database import public_uri
from pegboard.store.following import BoardStatus, Following
from pegboard.store.releases import Channel, Release, ReleaseStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.llm import Completer, Message
    from pegboard.retrieval.found import AgentHit, Found
    from pegboard.retrieval.llm.asking import LlmCaller
    from pegboard.retrieval.strategy import Strategy

Answer = TypeVar("Answer")
Where = Mapping[str, str | Sequence[str]] | None
IN_MEMORY_ROWS = 50_000
"""Boards up to this many rows are searched in memory (0.5 ms at 10,000 rows), larger ones through
Lance's indices.
"""


class Board:
    """A published board. Threads may share one; each call answers from one whole release.

    Made by `pegboard.open`. A board opened by channel looks at the next call, when half of
    `refresh` has passed, whether the channel moved, and then swaps to the new release as a whole.
    While the store is away it goes on with the release it has, warns once through `logging`, and
    `status()` says how old that is. Only a board opened with `background=True` has to be closed, by
    `close()` or as a context manager; it may simply be forgotten, too."""

    def __init__(
        self,
        store: ReleaseStore,
        *,
        channel: str = "live",
        release: str | None = None,
        encoder: Encoder | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        llm: "str | Completer | None" = None,
        llm_options: Mapping[str, Any] | None = None,
        refresh: float = 5.0,
        background: bool = False,
        in_memory_rows: int = IN_MEMORY_ROWS,
    ) -> None:
        self._store = store
        self._vectors = QueryVectors(encoder, encoder_options)
        self._caller = llm_caller(llm, llm_options)

        def load(identity: str) -> LoadedRelease:
            return LoadedRelease(store, store.get(identity), in_memory_rows)

        self._fixed, self._opened_at = load(release) if release else None, datetime.now(UTC)
        self._following = (
            None
            if self._fixed
            else Following(
                partial(_promoted, store, channel), load, refresh=refresh, background=background
            )
        )

    @property
    def release(self) -> Release:
        """The release that the next call would answer from."""
        return self._current().release

    @property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools of the release."""
        return self._answer(lambda loaded: loaded.graph)

    def list_agents(self) -> list[Agent]:
        """All agents of the release, by id."""
        return self._answer(
            lambda loaded: sorted(loaded.agents.values(), key=lambda agent: agent.id)
        )

    def tool(self, identity: str) -> Tool | None:
        """The tool of that id, or None."""
        return self._answer(lambda loaded: loaded.tools([identity]).get(identity))

    def status(self) -> BoardStatus:
        """What the board answers from now, and how old that may be. Looks at nothing, so it never
        waits.
        """
        if self._following is not None:
            return self._following.status()
        at = self._opened_at
        return BoardStatus(self._current().release.id, None, None, at, at, 0.0, None)

    def close(self) -> None:
        """End the threads of `background=True` and `llm=`; the board still answers, and looks at
        its channel during calls.
        """
        if self._following is not None:
            self._following.close()
        if self._caller is not None:
            self._caller.close()

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
        where: Where = None,
        vector: "Sequence[float] | NDArray[np.floating] | None" = None,
        decompose: bool = False,
        expand: Literal["dependencies"] | None = None,
        threshold: float | None = None,
    ) -> list[Hit]:
        """The `k` best tools for a request, best first; none for a blank one. One search; `find` is
        the one that does more.

        Args:
            query: the request, or its vector of shape (dimensions,), which the caller encoded; a
                vector searches by vector.
            mode: `vector` ranks by cosine, `text` by BM25, `hybrid` by 0.8 of the one and 0.2 of
                the other, scaled.
            index: an index of the release; the release's default if None.
            where: only tools with one of these values of `agent` (id or name), `catalog`, `kind` or
                `tags`.
            vector: the request's vector, if the caller encoded it and the words are to be searched
                as well.
            decompose: search the clauses of the request, too.
            expand: `dependencies` adds the tools that the first ones depend on, behind each (Graph
                RAG-Tool Fusion).
            threshold: only tools whose cosine is at least this (Tool RAG); `find` knows thresholds
                of probability.

        Raises:
            QueryError: an unknown mode or filter, a k below 1, or a vector of another length.
            FingerprintMismatch: the encoder at hand did not make this index's vectors.
            EncoderError: the index's encoder is not installed or cannot load.

        Example:
            >>> board.search("convert 30 dollars to yen", k=3, where={"catalog": "finance"})
        """
        if decompose or expand or threshold is not None:
            from pegboard.retrieval.strategies import composed_strategy

            strategy = composed_strategy(query, vector, mode, decompose, expand, threshold)
            return list(
                self.find(str(query), k, strategy=strategy, index=index, where=where, llm=False)
            )
        asked = Direct(query, k, mode, index, where, vector)
        return self._answer(lambda loaded: search_directly(loaded, asked, self._vectors))

    def search_many(
        self,
        queries: Sequence[str],
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Where = None,
    ) -> list[list[Hit]]:
        """What `search` finds for each of several requests: one call of the encoder and one search
        for all.
        """
        from pegboard.retrieval.strategies import composed_strategy

        found = self.find_many(
            queries,
            k,
            strategy=composed_strategy("", None, mode),
            index=index,
            where=where,
            llm=False,
        )
        return [list(one) for one in found]

    def find(
        self,
        request: str,
        k: int = 5,
        *,
        strategy: "Strategy | str | Mapping[str, Any] | None" = None,
        index: str | None = None,
        where: Where = None,
        history: "Sequence[Message | Mapping[str, str]]" = (),
        llm: bool = True,
        explain: bool = False,
    ) -> "Found":
        """The tools for a request, by the release's own strategy or another: a sequence of at most
        `k` hits, best first.

        Args:
            strategy: which parts answer: a `Strategy`, its JSON values, or a name of
                `pegboard.retrieval.strategies`; the release's if None.
            index, where: as in `search`; `index` stands for the strategy's own.
            history: the conversation before the request, as chat APIs take it.
            llm: False asks no LLM, even if the board was opened with one.
            explain: keep the rank of every tool after every part in `trace`.

        Raises as `search` does, and QueryError for a strategy that cannot be used. An LLM that
        fails is no error: its part's embedded counterpart answers, and the trace says so.

        Example:
            >>> found = board.find("book a table for two and invite Ana", k=5)
            >>> tools = pegboard.as_openai_tools(found)
        """
        return self.find_many(
            [request],
            k,
            strategy=strategy,
            index=index,
            where=where,
            history=history,
            llm=llm,
            explain=explain,
        )[0]

    def find_many(
        self,
        requests: Sequence[str],
        k: int = 5,
        *,
        strategy: "Strategy | str | Mapping[str, Any] | None" = None,
        index: str | None = None,
        where: Where = None,
        history: "Sequence[Message | Mapping[str, str]]" = (),
        llm: bool = True,
        explain: bool = False,
    ) -> "list[Found]":
        """What `find` finds for each of several requests of one release: one call of the encoder
        and one search for all.
        """
        from pegboard.retrieval.finding import Asked, find

        asked = Asked(requests, k, strategy, index, where, history, explain)
        return self._answer(
            lambda loaded: find(loaded, asked, self._vectors, self._caller if llm else None)
        )

    def agents(
        self,
        request: str,
        k: int = 3,
        *,
        mode: Mode = "hybrid",
        decompose: bool = False,
        steps: Sequence[str] = (),
        index: str | None = None,
        where: Where = None,
    ) -> "list[AgentHit]":
        """The `k` best agents for a request, found by their own descriptions and by their tools
        (Tool-to-Agent Retrieval).

        Args:
            decompose: search the clauses of the request beside it; the first agent of each comes
                before the second of any.
            steps: the steps of the request where the caller knows them; searched instead of its
                clauses.
            mode, index, where: as in `search`.

        The tools of the agents found are a search away:

            >>> agents = board.agents("book a table and invite Ana", k=3)
            >>> board.find("book a table and invite Ana", where={"agent": [one.agent.id for one in
            agents]})
        """
        from pegboard.retrieval.finding_agents import AgentsAsked, find_agents

        given = (steps,) if isinstance(steps, str) else tuple(steps)
        asked = AgentsAsked(request, k, mode, decompose, given, index, where)
        return self._answer(lambda loaded: find_agents(loaded, asked, self._vectors))

    async def search_async(self, *arguments: Any, **options: Any) -> list[Hit]:
        """`search` in a thread, for callers with an event loop, which goes on meanwhile. Cancelling
        abandons the answer only.
        """
        return await _in_thread(partial(self.search, *arguments, **options))

    async def search_many_async(self, *arguments: Any, **options: Any) -> list[list[Hit]]:
        """`search_many` in a thread."""
        return await _in_thread(partial(self.search_many, *arguments, **options))

    async def agents_async(self, *arguments: Any, **options: Any) -> "list[AgentHit]":
        """`agents` in a thread."""
        return await _in_thread(partial(self.agents, *arguments, **options))

    async def find_async(self, request: str, k: int = 5, **options: Any) -> "Found":
        """`find` for callers with an event loop: no thread waits for an LLM, and cancelling cancels
        what it was asked.
        """
        return (await self.find_many_async([request], k, **options))[0]

    async def find_many_async(
        self, requests: Sequence[str], k: int = 5, *, llm: bool = True, **options: Any
    ) -> "list[Found]":
        """`find_many` likewise."""
        from pegboard.retrieval.finding import Asked, find_async

        asked, caller = Asked(requests, k, **options), self._caller if llm else None
        loaded = await _in_thread(self._current)
        try:
            return await find_async(loaded, asked, self._vectors, caller)
        except StoreError:
            following = await _in_thread(partial(self._instead_of, loaded))
            if following is None:
                raise
        return await find_async(following, asked, self._vectors, caller)

    def _current(self) -> LoadedRelease:
        return self._fixed or cast("Following", self._following).current()

    def _answer(self, ask: Callable[[LoadedRelease], Answer]) -> Answer:
        """What `ask` finds in the release at hand or, where that was pruned while it was at hand,
        in the channel's release.
        """
        loaded = self._current()
        try:
            return ask(loaded)
        except StoreError:
            following = self._instead_of(loaded)
            if following is None:
                raise
        return ask(following)

    def _instead_of(self, loaded: LoadedRelease) -> LoadedRelease | None:
        """The channel's release, if that is another than one that cannot be read any more."""
        if self._following is not None:
            return self._following.instead_of(loaded)
        self._store.get(loaded.release.id)  # says so, if it is not even recorded any more
        return None


async def _in_thread(call: Callable[[], Answer]) -> Answer:
    import asyncio

    return await asyncio.to_thread(call)


def llm_caller(
    llm: "str | Completer | None", options: Mapping[str, Any] | None
) -> "LlmCaller | None":
    """What asks that LLM; None for none. Raises ConfigurationError for options that there are
    not.
    """
    if llm is None:
        return None
    from pegboard.retrieval.llm.asking import LlmCaller, completer_of

    known = {
        name: value
        for name, value in (options or {}).items()
        if name in ("api_base", "api_key_env", "price")
    }
    bounds = {
        name: value for name, value in (options or {}).items() if name in ("timeout", "concurrency")
    }
    if unknown := sorted(set(options or {}) - set(known) - set(bounds)):
        raise ConfigurationError(
            f"llm_options has no {', '.join(unknown)}. Expected: api_base, api_key_env, price, "
            f"timeout, concurrency."
        )
    timeout = {"timeout": bounds["timeout"]} if "timeout" in bounds else {}
    completer = completer_of(llm, **known, **timeout)
    return LlmCaller(completer, **bounds) if completer is not None else None


def _promoted(store: ReleaseStore, name: str) -> Channel:
    channel = store.channel(name)
    if channel is None:
        names = ", ".join(known.name for known in store.channels()) or "none"
        raise BoardNotFound(
            f"The board at {public_uri(store.uri)} has no channel '{name}'; it has: {names}. "
            "`pegboard promote RELEASE --channel NAME` makes one."
        )
    return channel
