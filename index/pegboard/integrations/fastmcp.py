"""FastMCP 4: a server's tools behind `search_tools` and `call_tool`, ranked by a board.

    server.add_transform(BoardSearchTransform(board))

Only tools that the client may see are searched, as the server's own rules decide.
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Sequence
from typing import Annotated, Any

from fastmcp.server.context import Context
from fastmcp.server.transforms.search.base import BaseSearchTransform
from fastmcp.tools.base import Tool

from pegboard.integrations.board_search import (
    QUERY_DESCRIPTION,
    SEARCH_PURPOSE,
    SEARCH_TOOL,
    Selected,
)
from pegboard.integrations.own_tools import OwnTools, Search, own_tools


class BoardSearchTransform(BaseSearchTransform):
    """Replaces a server's list of tools by a search of a board, and a tool that calls others.

    Args:
        search: the search; its `k` is the maximum number of tools that one search shows.
        always_visible: names of tools that stay in the list.
        options: options of FastMCP's `BaseSearchTransform`, such as `search_result_serializer`.
    """

    def __init__(
        self, search: Search, *, always_visible: list[str] | None = None, **options: Any
    ) -> None:
        self._own = own_tools(search)
        options.setdefault("search_tool_name", SEARCH_TOOL)
        super().__init__(max_results=self._own.search.k, always_visible=always_visible, **options)

    def _make_search_tool(self) -> Tool:
        async def search_tools(
            query: Annotated[str, QUERY_DESCRIPTION],
            ctx: Context = None,  # type: ignore[assignment]
        ) -> str | list[dict[str, Any]]:
            tools = await self._get_visible_tools(ctx)
            selected = await _select(self._own, tools, query)
            if not selected.names:
                return selected.reason
            return await self._render_results(_in_order(tools, selected))

        return Tool.from_function(
            fn=search_tools,
            name=self._search_tool_name,
            description=f"{SEARCH_PURPOSE} Call what was found by {self._call_tool_name}.",
        )

    async def _search(self, tools: Sequence[Tool], query: str) -> Sequence[Tool]:
        return _in_order(tools, await _select(self._own, tools, query))


async def _select(search: OwnTools, tools: Sequence[Tool], query: str) -> Selected:
    return await search.find_async(query, {tool.name: tool.description or "" for tool in tools})


def _in_order(tools: Sequence[Tool], selected: Selected) -> list[Tool]:
    by_name = {tool.name: tool for tool in tools}
    return [by_name[name] for name in selected.names]
