"""The reader: `pegboard.open(uri)` returns a Board, and a Board finds tools."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pegboard.errors import QueryError, StoreError
from pegboard.hits import Hit
from pegboard.ranking import Mode, check_mode
from pegboard.records import Agent, Tool
from pegboard.search.follower import BoardStatus, ChannelFollower
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.releases import Release

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.encoders import Encoder
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.llm import Completer, Message
    from pegboard.retrieval.find import FindArguments
    from pegboard.retrieval.found import AgentResult, EntityResult, FindResult
    from pegboard.retrieval.llm.caller import LlmCaller
    from pegboard.retrieval.strategy import Strategy

Value = TypeVar("Value")
Where = Mapping[str, str | Sequence[str]] | None


class Board:
    """A board of tools. Threads may share one; each call answers from one whole release.

    Made by `pegboard.open`, or by `Board.from_tools` without a published board. A board opened by
    channel checks at the next call, once half of `refresh` has passed, whether the channel moved,
    and then swaps to the new release as a whole. While the store is away it keeps answering from
    the release it has, warns once through `logging`, and `status()` reports how old that is. Only a
    board opened with `llm=` holds connections; `close()` or the context manager ends them.

    Args:
        releases: a fixed release, or the one that a channel points to.
        vectors: encodes requests.
        caller: asks an LLM, for strategies that can use one.
        address: where the board is, without secrets.
    """

    def __init__(
        self,
        releases: LoadedRelease | ChannelFollower,
        vectors: QueryVectors,
        *,
        caller: "LlmCaller | None" = None,
        address: str = "",
    ) -> None:
        self._releases = releases
        self._vectors = vectors
        self._caller = caller
        self._address = address
        self._opened_at = datetime.now(UTC)

    @classmethod
    def from_tools(
        cls,
        tools: Sequence[Any],
        *,
        encoder: "Encoder | str | None" = None,
        llm: "str | Completer | None" = None,
    ) -> Self:
        """Return a board in memory of the tools given, without a store or configuration.

        It ranks as a published board with the same tools and encoder and the default index does.
        The tools are encoded at once: with the embedded encoder some 20 ms each, on one core.
        `hit.function` is the function of a tool that was given as one.

        Args:
            tools: Python functions, function schemas as OpenAI, Anthropic and Gemini take them, or
                MCP tools (objects or dicts with `name`, `description` and `inputSchema`), mixed as
                you like.
            encoder: an encoder or its name; the embedded one by default.
            llm: as in `pegboard.open`.

        Raises:
            ConfigurationError: lists every tool that is invalid or repeated.
            EncoderError: the encoder is not installed; the message says how to install it.

        Example:
            >>> board = pegboard.Board.from_tools([convert_currency, send_email])
            >>> [hit] = board.search("what are 30 dollars in yen?", k=1)
            >>> hit.function(30)
        """
        from pegboard.encoders import DEFAULT_ENCODER, shared_encoder
        from pegboard.retrieval.llm.caller import open_caller
        from pegboard.search.tool_release import release_of_tools

        if encoder is None or isinstance(encoder, str):
            encoder = shared_encoder(encoder or DEFAULT_ENCODER)
        release = release_of_tools(tools, encoder)
        release.index(release.index_name(None))  # encodes the tools now, not at the first search
        vectors = QueryVectors(encoder, None)
        return cls(release, vectors, caller=open_caller(llm), address="memory")

    @property
    def release(self) -> Release:
        """The release that the next call would answer from."""
        return self._current().release

    @property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools of the release."""
        return self._answer(lambda loaded: loaded.graph)

    def list_agents(self) -> list[Agent]:
        """Return all agents of the release, by id."""
        return self._answer(
            lambda loaded: sorted(loaded.agents.values(), key=lambda agent: agent.id)
        )

    def list_tools(self, where: Where = None) -> list[Tool]:
        """Return the tools of the release that pass the filter, by id; `where` as in `search`."""
        return self._answer(lambda loaded: loaded.list_tools(where))

    def tool_names(self) -> tuple[str, list[tuple[str, str, str]]]:
        """Return the release's id, and id, true name and agent's name of every tool."""
        return self._answer(lambda loaded: (loaded.release.id, loaded.tool_names()))

    def tool(self, identity: str) -> Tool | None:
        """Return the tool of that id, or None."""
        if not isinstance(identity, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError(f"The id is {identity!r:.80}; expected a text.")
        return self._answer(lambda loaded: loaded.tools([identity]).get(identity))

    def status(self) -> BoardStatus:
        """Return what the board answers from and how old that may be. Never waits."""
        if isinstance(self._releases, ChannelFollower):
            return self._releases.status()
        at = self._opened_at
        return BoardStatus(self._releases.release.id, None, None, at, at, 0.0, None)

    def thresholds(self) -> dict[str, float]:
        """Return the probabilities that matter for hits of `find`, by name, such as `nothing_fits`.

        Those of the release's own strategy and index; none where hits have no probability.
        """
        from pegboard.retrieval.find import strategy_of

        def ask(loaded: LoadedRelease) -> dict[str, float]:
            strategy = strategy_of(None, loaded)
            return loaded.thresholds(loaded.index_name(strategy.index), strategy.mode) or {}

        return self._answer(ask)

    def at_current_release(self) -> "Board":
        """Return a board that stays at the release from which the next call would be answered.

        It shares what this board has loaded, and needs no `close`. The release is loaded now, so
        that a prune does not take it away; only tables too large for memory stay in the store.

        Raises:
            StoreError: the release cannot be read.
        """

        def load(loaded: LoadedRelease) -> LoadedRelease:
            loaded.load()
            return loaded

        release = self._answer(load)
        return Board(release, self._vectors, caller=self._caller, address=self._address)

    def restricted(self, tools: Collection[str]) -> "Board":
        """Return a board that stays at the current release, as if it had only these tools.

        Others leave no trace in ranks, scores, agents and dependencies. Each such board holds the
        vectors of its tools, which are loaded now, as by `at_current_release`.

        Args:
            tools: ids; unknown ones are left out.

        Raises:
            StoreError: the release cannot be read.
        """

        from pegboard.search.restricted import RestrictedRelease
        from pegboard.search.tool_release import ToolRelease

        def load(loaded: LoadedRelease) -> LoadedRelease:
            restricted = (
                loaded.restricted(tools)
                if isinstance(loaded, ToolRelease)
                else RestrictedRelease(loaded, tools)
            )
            restricted.load()
            return restricted

        release = self._answer(load)
        return Board(release, self._vectors, caller=self._caller, address=self._address)

    def close(self) -> None:
        """End the connections to the LLM; the board still answers afterwards."""
        if self._caller is not None:
            self._caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        status = self.status()
        loaded = (
            self._releases.loaded if isinstance(self._releases, ChannelFollower) else self._releases
        )
        channel = f", channel {status.channel!r}" if status.channel else ""
        tools = loaded.release.manifest["counts"]["tools"]
        return f"<Board {self._address!r}{channel}, release {status.release!r}, {tools} tools>"

    def search(
        self,
        query: "str | Sequence[float] | NDArray[np.floating]",
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Where = None,
        vector: "Sequence[float] | NDArray[np.floating] | None" = None,
    ) -> list[Hit]:
        """Return the `k` best tools by one search, best first; none for a blank request.

        `find` does more: it decomposes requests, adds dependencies, applies thresholds, asks an
        LLM.

        Args:
            query: the request, or its vector of shape (dimensions,), which you encoded; a vector
                searches by vector.
            mode: `vector` ranks by cosine, `text` by BM25, `hybrid` ranks the best candidates of
                both by the ranker, which uses further features.
            index: an index of the release; the release's default if None.
            where: only tools with one of these values of `agent` (id or name), `catalog`, `kind`,
                `tags` or `tool` (id).
            vector: the request's vector, if you encoded it and want to search its words, too.

        Raises:
            QueryError: an unknown mode or filter, a k below 1, or a vector of another length.
            FingerprintMismatch: another encoder made this index's vectors.
            EncoderError: the index's encoder is not installed or cannot load.

        Example:
            >>> board.search("convert 30 dollars to yen", k=3, where={"catalog": "finance"})
        """
        from pegboard.retrieval.find import FindArguments, find
        from pegboard.retrieval.strategy import Strategy

        check_mode(mode)
        text: Any = query
        if not (query is None or isinstance(query, str)):  # pyright: ignore[reportUnnecessaryComparison]
            if mode == "text":
                raise QueryError(
                    "Mode 'text' searches words, but the query is a vector. Give it as text."
                )
            vector = query
            text = ""
            mode = "vector"
        strategy = Strategy(name="search", modes=(mode,), depth=1)
        requests: Any = (text,)
        arguments = FindArguments(requests, k, strategy, index, where, vector=vector)
        return list(self._answer(lambda loaded: find(loaded, arguments, self._vectors, None))[0])

    def find(
        self,
        request: str,
        k: int = 5,
        *,
        strategy: "Strategy | str | Mapping[str, Any] | None" = None,
        index: str | None = None,
        where: Where = None,
        history: "Sequence[Message | Mapping[str, str]]" = (),
        called: Sequence[str] = (),
        llm: bool = True,
        explain: bool = False,
    ) -> "FindResult":
        """Return the tools for a request by a strategy: a sequence of at most `k` hits, best first.

        Args:
            strategy: which parts answer: a `Strategy`, its JSON values, or a name that `pegboard
                strategies` lists; the release's own if None.
            index, where: as in `search`; `index` replaces the strategy's own.
            history: the conversation before the request, as chat APIs take it.
            called: the ids of the tools that were just called for this request, the last one last;
                what uses their results, or usually follows them, moves up.
            llm: False asks no LLM, even if the board was opened with one.
            explain: keep the rank of every tool after every part in `trace`.

        Raises as `search` does, and QueryError for an invalid strategy. An LLM that fails raises
        nothing: the part falls back on what it can do without, and the trace has the reason.

        Example:
            >>> result = board.find("book a table for two and invite Ana", k=5)
            >>> tools = pegboard.as_openai_tools(result)
        """
        return self.find_many(
            [request],
            k,
            strategy=strategy,
            index=index,
            where=where,
            history=history,
            called=called,
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
        called: Sequence[str] = (),
        llm: bool = True,
        explain: bool = False,
    ) -> "list[FindResult]":
        """Return what `find` finds for each request, of one release and by one search for all."""
        from pegboard.retrieval.find import FindArguments, find

        arguments = FindArguments(
            requests, k, strategy, index, where, history, explain, called=called
        )
        caller = self._caller if llm else None
        return self._answer(lambda loaded: find(loaded, arguments, self._vectors, caller))

    def search_agents(
        self,
        request: str,
        k: int = 3,
        *,
        mode: Mode = "hybrid",
        decompose: bool = False,
        index: str | None = None,
        where: Where = None,
        llm: bool = True,
    ) -> "AgentResult":
        """Return the `k` best agents, found by their descriptions and tools (Tool-to-Agent).

        Args:
            mode, index, where: as in `search`.
            decompose: search the steps of the request beside it, which the board's LLM writes, or
                its clauses without one; the first agent of each comes before the second of any.
            llm: False asks no LLM for the steps, even if the board was opened with one.

        Example:
            >>> agents = board.search_agents("book a table and invite Ana", k=3)
            >>> ids = [hit.agent.id for hit in agents]
            >>> board.find("book a table and invite Ana", where={"agent": ids})
        """
        from pegboard.retrieval.find_agents import EntityArguments, find_agents

        arguments = EntityArguments(request, k, mode, decompose, index, where)
        caller = self._caller if llm else None
        return self._answer(lambda loaded: find_agents(loaded, arguments, self._vectors, caller))

    def search_entities(
        self,
        request: str,
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        decompose: bool = False,
        index: str | None = None,
        where: Where = None,
        llm: bool = True,
    ) -> "EntityResult":
        """Return the `k` best tools and agents in one ranking (Tool-to-Agent).

        An agent that is nearer to the request than its tools stands in their place; else its tools
        are listed, and it is not. Arguments as in `search_agents`.

        Example:
            >>> for hit in board.search_entities("plan a trip to Oslo"):
            ...     print(hit.tool.id if isinstance(hit, pegboard.Hit) else hit.agent.id)
        """
        from pegboard.retrieval.find_agents import EntityArguments, find_entities

        arguments = EntityArguments(request, k, mode, decompose, index, where)
        caller = self._caller if llm else None
        return self._answer(lambda loaded: find_entities(loaded, arguments, self._vectors, caller))

    async def _find_many_async(self, arguments: "FindArguments", llm: bool) -> "list[FindResult]":
        """The results of `AsyncBoard.find_many`."""
        from pegboard.retrieval.find import find_async

        caller = self._caller if llm else None
        loaded = await asyncio.to_thread(self._current)
        try:
            return await find_async(loaded, arguments, self._vectors, caller)
        except StoreError:
            successor = await asyncio.to_thread(self._successor, loaded)
            if successor is None:
                raise
        return await find_async(successor, arguments, self._vectors, caller)

    def _current(self) -> LoadedRelease:
        if isinstance(self._releases, ChannelFollower):
            return self._releases.current()
        return self._releases

    def _answer(self, ask: Callable[[LoadedRelease], Value]) -> Value:
        """What `ask` returns for the current release, or for its successor if it was pruned."""
        loaded = self._current()
        try:
            return ask(loaded)
        except StoreError:
            successor = self._successor(loaded)
            if successor is None:
                raise
        return ask(successor)

    def _successor(self, loaded: LoadedRelease) -> LoadedRelease | None:
        """The channel's release, if that is another than one that cannot be read any more."""
        if isinstance(self._releases, ChannelFollower):
            return self._releases.replacement(loaded)
        loaded.check_recorded()
        return None
