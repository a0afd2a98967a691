"""The reader for callers with an event loop: `await pegboard.open_async(uri)`."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from pegboard.board import Board, Where
from pegboard.hits import Hit
from pegboard.records import Agent, Tool
from pegboard.search.ranking import Mode
from pegboard.store.follower import BoardStatus
from pegboard.store.releases import Release

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.llm import Message
    from pegboard.retrieval.found import AgentResult, FindResult
    from pegboard.retrieval.strategy import Strategy


class AsyncBoard:
    """A Board whose methods are coroutines; see `Board` for what they do and raise.

    Searches run in threads, and cancelling abandons their answer only. `find` waits for an LLM
    without a thread, and cancelling it cancels the LLM calls.

    Args:
        board: answers; the wrapper adds no state, so both may be used side by side.

    Example:
        >>> async with await pegboard.open_async("./board") as board:
        ...     hits = await board.search("what time is it in Oslo?")
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    @property
    def board(self) -> Board:
        """The board that answers."""
        return self._board

    async def release(self) -> Release:
        """As `Board.release`."""
        return await asyncio.to_thread(lambda: self._board.release)

    async def graph(self) -> "ToolGraph":
        """As `Board.graph`."""
        return await asyncio.to_thread(lambda: self._board.graph)

    async def list_agents(self) -> list[Agent]:
        """As `Board.list_agents`."""
        return await asyncio.to_thread(self._board.list_agents)

    async def list_tools(self, where: Where = None) -> list[Tool]:
        """As `Board.list_tools`."""
        return await asyncio.to_thread(self._board.list_tools, where)

    async def tool_names(self) -> tuple[str, list[tuple[str, str, str]]]:
        """As `Board.tool_names`."""
        return await asyncio.to_thread(self._board.tool_names)

    async def tool(self, identity: str) -> Tool | None:
        """As `Board.tool`."""
        return await asyncio.to_thread(self._board.tool, identity)

    async def thresholds(self) -> dict[str, float]:
        """As `Board.thresholds`."""
        return await asyncio.to_thread(self._board.thresholds)

    async def at_current_release(self) -> "AsyncBoard":
        """As `Board.at_current_release`."""
        return AsyncBoard(await asyncio.to_thread(self._board.at_current_release))

    async def restricted(self, tools: Collection[str]) -> "AsyncBoard":
        """As `Board.restricted`."""
        return AsyncBoard(await asyncio.to_thread(self._board.restricted, tools))

    def status(self) -> BoardStatus:
        """As `Board.status`; never waits."""
        return self._board.status()

    async def close(self) -> None:
        """As `Board.close`."""
        await asyncio.to_thread(self._board.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._board).replace("<Board", "<AsyncBoard", 1)

    async def search(
        self,
        query: "str | Sequence[float] | NDArray[np.floating]",
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Where = None,
        vector: "Sequence[float] | NDArray[np.floating] | None" = None,
    ) -> list[Hit]:
        """As `Board.search`, in a thread."""
        return await asyncio.to_thread(
            self._board.search, query, k, mode=mode, index=index, where=where, vector=vector
        )

    async def search_many(
        self,
        queries: Sequence[str],
        k: int = 5,
        *,
        mode: Mode = "hybrid",
        index: str | None = None,
        where: Where = None,
    ) -> list[list[Hit]]:
        """As `Board.search_many`, in a thread."""
        return await asyncio.to_thread(
            self._board.search_many, queries, k, mode=mode, index=index, where=where
        )

    async def search_agents(
        self,
        request: str,
        k: int = 3,
        *,
        mode: Mode = "hybrid",
        decompose: bool = False,
        steps: Sequence[str] = (),
        index: str | None = None,
        where: Where = None,
        llm: bool = True,
    ) -> "AgentResult":
        """As `Board.search_agents`, in a thread."""
        return await asyncio.to_thread(
            self._board.search_agents,
            request,
            k,
            mode=mode,
            decompose=decompose,
            steps=steps,
            index=index,
            where=where,
            llm=llm,
        )

    async def find(
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
    ) -> "FindResult":
        """As `Board.find`; no thread waits for an LLM."""
        results = await self.find_many(
            [request],
            k,
            strategy=strategy,
            index=index,
            where=where,
            history=history,
            llm=llm,
            explain=explain,
        )
        return results[0]

    async def find_many(
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
    ) -> "list[FindResult]":
        """As `Board.find_many`; no thread waits for an LLM."""
        from pegboard.retrieval.find import FindArguments

        arguments = FindArguments(requests, k, strategy, index, where, history, explain)
        return await self._board._find_many_async(arguments, llm)  # pyright: ignore[reportPrivateUsage]
