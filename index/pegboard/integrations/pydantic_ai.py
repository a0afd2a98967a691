"""Pydantic AI: tool search over a board, native where the model's API has it, local elsewhere.

agent = Agent(model, toolsets=[toolset.defer_loading()], capabilities=[tool_search(board)])
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.tools import ToolDefinition

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.integrations.board_search import (
    QUERY_DESCRIPTION,
    SEARCH_DESCRIPTION,
    BoardSearch,
)
from pegboard.integrations.own_tools import OwnTools

Tools = Sequence[ToolDefinition]
Strategy = Callable[[RunContext[Any], Sequence[str], Tools], Awaitable[list[str]]]


def search_strategy(search: BoardSearch | Board | AsyncBoard) -> Strategy:
    """Return a function for `ToolSearch(strategy=...)`: the best of an agent's deferred tools.

    Agents and runs may share it: Pydantic AI keeps what a conversation found in its messages.
    """
    own = OwnTools(search)

    async def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Tools) -> list[str]:
        held = {tool.name: tool.description or "" for tool in tools}
        return list((await own.find_many_async(queries, held)).names)

    return strategy


def tool_search(search: BoardSearch | Board | AsyncBoard) -> ToolSearch[Any]:
    """Return the capability that finds an agent's deferred tools on a board."""
    search = search if isinstance(search, BoardSearch) else BoardSearch(search)
    return ToolSearch(
        strategy=search_strategy(search),
        max_results=search.k,
        tool_description=SEARCH_DESCRIPTION,
        parameter_description=QUERY_DESCRIPTION,
    )
