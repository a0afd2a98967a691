"""Pydantic AI: tool search over a board, native where the model's API has it, local elsewhere.

agent = Agent(model, toolsets=[toolset.defer_loading()], capabilities=[tool_search(board)])
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.tools import ToolDefinition

from pegboard.integrations.board_search import QUERY_DESCRIPTION, SEARCH_DESCRIPTION
from pegboard.integrations.own_tools import Search, own_tools

Tools = Sequence[ToolDefinition]
Strategy = Callable[[RunContext[Any], Sequence[str], Tools], Awaitable[list[str]]]


def search_strategy(search: Search) -> Strategy:
    """Return a function for `ToolSearch(strategy=...)` that finds an agent's deferred tools.

    Agents and runs may share it: Pydantic AI stores what a conversation found in its messages.
    """
    application_tools = own_tools(search)

    async def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Tools) -> list[str]:
        descriptions = {tool.name: tool.description or "" for tool in tools}
        rankings = [
            (await application_tools.find_async(query, descriptions)).names for query in queries
        ]
        round_robin = (name for names in zip_longest(*rankings) for name in names if name)
        return list(dict.fromkeys(round_robin))

    return strategy


def tool_search(search: Search) -> ToolSearch[Any]:
    """Return the capability that finds an agent's deferred tools on a board."""
    application_tools = own_tools(search)
    return ToolSearch(
        strategy=search_strategy(application_tools),
        max_results=application_tools.search.k,
        tool_description=SEARCH_DESCRIPTION,
        parameter_description=QUERY_DESCRIPTION,
    )
