"""OpenAI Agents SDK: function tools and MCP tools that a run searches on a board.

    tools = AgentTools(board, function_tools)
    agent = Agent(name=..., tools=tools.tools)

The SDK refuses the API's own tool search on the client, so the search is a function tool here.
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Callable, Sequence
from typing import Any

from agents import FunctionTool, Tool, function_tool

from pegboard.integrations.board_search import SEARCH_DESCRIPTION, SEARCH_TOOL
from pegboard.integrations.own_tools import OwnDiscovery, Search


class AgentTools:
    """The tools of one conversation: the search, and the tools found.

    Args:
        search: the search; conversations may share an `OwnTools`.
        tools: function tools that may be found, with unique names.

    Attributes:
        tools: the list to pass to the agent. Found tools are appended to it, so that the SDK sends
            them in order of discovery.
    """

    def __init__(self, search: Search, tools: Sequence[FunctionTool] = ()) -> None:
        self._discovery = OwnDiscovery(search)
        self._own = {tool.name: tool for tool in tools}
        self._listed: dict[str, str] = {}
        self.tools: list[Tool] = [self._search_tool()]

    @property
    def found(self) -> list[str]:
        """The names of the tools found, in order of discovery."""
        return list(self._discovery.found)

    def mcp_filter(self) -> Callable[[Any, Any], bool]:
        """Return a `tool_filter` for MCP servers, whose tools can be searched and are shown once
        found. The servers must not cache their lists (`cache_tools_list=False`).
        """

        def is_found(context: Any, tool: Any) -> bool:
            self._listed[tool.name] = tool.description or ""
            return tool.name in self._discovery.found

        return is_found

    def _search_tool(self) -> FunctionTool:
        @function_tool(name_override=SEARCH_TOOL, description_override=SEARCH_DESCRIPTION)
        async def search_tools(query: str) -> str:
            descriptions = {name: tool.description for name, tool in self._own.items()}
            selected = await self._discovery.search_async(query, {**self._listed, **descriptions})
            # After the await: searches of one reply run concurrently, and may find the same tool.
            listed_names = {tool.name for tool in self.tools}
            self.tools.extend(
                self._own[name]
                for name in selected.names
                if name in self._own and name not in listed_names
            )
            return selected.text

        return search_tools
