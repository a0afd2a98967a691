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
"""Key of the session's state with the names found, in order of discovery."""


class BoardToolset(BaseToolset):
    """The search, and what the session found, in order of discovery.

    What was found is part of the session's state, so that sessions share nothing and a session
    service keeps it.

    Args:
        search: how to search.
        tools: tools and toolsets whose tools may be found, with unique names.
        options: of `BaseToolset`, such as `tool_filter`.
    """

    def __init__(
        self,
        search: Search,
        tools: Sequence[BaseTool | BaseToolset],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._use_invocation_cache = False  # what is found appears in the same invocation
        self._own = own_tools(search)
        self._given = list(tools)
        self._search_tool = FunctionTool(self._search_function())

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the search and the tools that the session found."""
        found = readonly_context.state.get(FOUND, ()) if readonly_context else ()
        if not found:
            return [self._search_tool]
        held = await self._held(readonly_context)
        return [self._search_tool, *(held[name] for name in found if name in held)]

    async def close(self) -> None:
        """Close the toolsets given."""
        for each in self._given:
            if isinstance(each, BaseToolset):
                await each.close()

    async def _held(self, context: ReadonlyContext | None) -> dict[str, BaseTool]:
        held: dict[str, BaseTool] = {}
        for each in self._given:
            several = (
                await each.get_tools_with_prefix(context)
                if isinstance(each, BaseToolset)
                else [each]
            )
            held |= {tool.name: tool for tool in several if self._is_tool_selected(tool, context)}
        return held

    def _search_function(self) -> Any:
        async def search_tools(query: str, tool_context: ToolContext) -> dict[str, Any]:
            held = await self._held(tool_context)
            descriptions = {name: tool.description for name, tool in held.items()}
            selected = await self._own.find_async(query, descriptions)
            # Read and written without a wait between, since calls of one reply run concurrently.
            before = tool_context.state.get(FOUND, ())
            tool_context.state[FOUND] = list(dict.fromkeys([*before, *selected.names]))
            return {"result": selected.text}

        search_tools.__name__, search_tools.__doc__ = SEARCH_TOOL, SEARCH_DESCRIPTION
        return search_tools
