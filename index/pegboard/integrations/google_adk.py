"""Google ADK: a toolset whose tools an agent searches on a board.

agent = LlmAgent(name=..., model=..., tools=[BoardToolset(board, tools)])
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Sequence
from typing import Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset

from pegboard.integrations.board_search import SEARCH_DESCRIPTION, SEARCH_TOOL
from pegboard.integrations.own_tools import Search, own_tools

FOUND = "pegboard_found_tools"
"""Session state key of the names of the tools found, in order of discovery."""


class BoardToolset(BaseToolset):
    """The search, and the tools that the session found, in order of discovery.

    The names of the tools found are part of the session's state, so that sessions share nothing and
    a session service stores them.

    Args:
        search: how to search.
        tools: tools and toolsets whose tools may be found, with unique names.
        options: options of `BaseToolset`, such as `tool_filter`.
    """

    def __init__(
        self,
        search: Search,
        tools: Sequence[BaseTool | BaseToolset],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._use_invocation_cache = False  # a found tool is available in the same invocation
        self._own = own_tools(search)
        self._tools_and_toolsets = list(tools)
        self._search_tool = FunctionTool(self._search_function())

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the search and the tools that the session found."""
        found_names = readonly_context.state.get(FOUND, ()) if readonly_context else ()
        if not found_names:
            return [self._search_tool]
        tools = await self._tools_by_name(readonly_context)
        return [self._search_tool, *(tools[name] for name in found_names if name in tools)]

    async def close(self) -> None:
        """Close the toolsets."""
        for item in self._tools_and_toolsets:
            if isinstance(item, BaseToolset):
                await item.close()

    async def _tools_by_name(self, context: ReadonlyContext | None) -> dict[str, BaseTool]:
        by_name: dict[str, BaseTool] = {}
        for item in self._tools_and_toolsets:
            if isinstance(item, BaseToolset):
                tools = await item.get_tools_with_prefix(context)
            else:
                tools = [item]
            by_name |= {tool.name: tool for tool in tools if self._is_tool_selected(tool, context)}
        return by_name

    def _search_function(self) -> Any:
        async def search_tools(query: str, tool_context: ToolContext) -> dict[str, Any]:
            tools = await self._tools_by_name(tool_context)
            descriptions = {name: tool.description for name, tool in tools.items()}
            selected = await self._own.find_async(query, descriptions)
            # No await between reading and writing: the calls of one reply run concurrently.
            earlier_names = tool_context.state.get(FOUND, ())
            tool_context.state[FOUND] = list(dict.fromkeys([*earlier_names, *selected.names]))
            return {"result": selected.text}

        search_tools.__name__ = SEARCH_TOOL
        search_tools.__doc__ = SEARCH_DESCRIPTION
        return search_tools
