"""The board's interface for event loops: `await pegboard.open_async(uri)`."""

import asyncio
import functools
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from pegboard.board import Board
from pegboard.search.follower import BoardStatus
from pegboard.store.releases import Release

if TYPE_CHECKING:
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.retrieval.found import FindResult

P = ParamSpec("P")
R = TypeVar("R")


def _like(
    method: Callable[Concatenate[Board, P], R],
) -> Callable[
    [Callable[..., Coroutine[Any, Any, R]]],
    "Callable[Concatenate[AsyncBoard, P], Coroutine[Any, Any, R]]",
]:
    """Give a coroutine the signature and the docstring of a method of `Board`."""
    wrap: Any = functools.wraps(method)
    return wrap


def _threaded(
    method: Callable[Concatenate[Board, P], R],
) -> "Callable[Concatenate[AsyncBoard, P], Coroutine[Any, Any, R]]":
    """Return a method of `Board` as a coroutine that waits for it in a thread."""

    @_like(method)
    async def call(self: "AsyncBoard", *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.board, *args, **kwargs)

    return call


class AsyncBoard:
    """A Board whose methods are coroutines; see `Board` for what they do and raise.

    Searches run in threads, and cancelling abandons their answer only. `find` waits for an LLM
    without a thread, and cancelling it cancels the LLM calls. `status` never waits.

    Args:
        board: answers; the wrapper adds no state, so both may be used side by side.

    Example:
        >>> async def best_tools(request):
        ...     async with await pegboard.open_async("./board") as board:
        ...         return await board.search(request)
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    @property
    def board(self) -> Board:
        """The board that answers."""
        return self._board

    list_agents = _threaded(Board.list_agents)
    list_tools = _threaded(Board.list_tools)
    tool_names = _threaded(Board.tool_names)
    tool = _threaded(Board.tool)
    thresholds = _threaded(Board.thresholds)
    search = _threaded(Board.search)
    search_agents = _threaded(Board.search_agents)
    search_entities = _threaded(Board.search_entities)
    close = _threaded(Board.close)

    @_like(Board.find)
    async def find(self, request: str, k: int = 5, **options: Any) -> "FindResult":
        return (await self.find_many([request], k, **options))[0]

    @_like(Board.find_many)
    async def find_many(
        self, requests: Sequence[str], k: int = 5, *, llm: bool = True, **options: Any
    ) -> "list[FindResult]":
        from pegboard.retrieval.find import FindArguments

        arguments = FindArguments(requests, k, **options)
        return await self._board._find_many_async(arguments, llm)  # pyright: ignore[reportPrivateUsage]

    async def release(self) -> Release:
        """As `Board.release`."""
        return await asyncio.to_thread(lambda: self._board.release)

    async def graph(self) -> "ToolGraph":
        """As `Board.graph`."""
        return await asyncio.to_thread(lambda: self._board.graph)

    async def at_current_release(self) -> "AsyncBoard":
        """As `Board.at_current_release`."""
        return AsyncBoard(await asyncio.to_thread(self._board.at_current_release))

    async def restricted(self, tools: Collection[str]) -> "AsyncBoard":
        """As `Board.restricted`."""
        return AsyncBoard(await asyncio.to_thread(self._board.restricted, tools))

    def status(self) -> BoardStatus:
        """As `Board.status`."""
        return self._board.status()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._board).replace("<Board", "<AsyncBoard", 1)
