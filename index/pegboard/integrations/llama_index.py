"""LlamaIndex: the tools of an agent, retrieved from a board for each step.

agent = FunctionAgent(llm=llm, tool_retriever=BoardRetriever(board, tools))
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Sequence

from llama_index.core.objects import ObjectRetriever
from llama_index.core.schema import QueryType
from llama_index.core.tools import BaseTool, FunctionTool

from pegboard.integrations.board_search import SEARCH_DESCRIPTION, SEARCH_TOOL
from pegboard.integrations.own_tools import OwnDiscovery, Search


class BoardRetriever(ObjectRetriever[BaseTool]):
    """Retrieves the search tool, then the tools that the conversation found: by the user's request
    before each step, and by the model's own searches.

    Create one for each conversation; they may share an `OwnTools` as their `search`.

    Args:
        search: how to search.
        tools: the tools that may be retrieved, with unique names.
    """

    def __init__(self, search: Search, tools: Sequence[BaseTool]) -> None:
        self._discovery = OwnDiscovery(search)
        self._tools = {tool.metadata.get_name(): tool for tool in tools}
        self._descriptions = {
            name: tool.metadata.description or "" for name, tool in self._tools.items()
        }
        self._search_tool = self._make_search_tool()

    def retrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Return the search and the tools found so far, new ones for this request last."""
        query = _text(str_or_query_bundle)
        if query != SEARCH_TOOL:  # an agent retrieves by the name of the tool that it runs
            self._discovery.search(query, self._descriptions)
        return self._found()

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Do what `retrieve` does without blocking the event loop."""
        query = _text(str_or_query_bundle)
        if query != SEARCH_TOOL:
            await self._discovery.search_async(query, self._descriptions)
        return self._found()

    def _found(self) -> list[BaseTool]:
        return [self._search_tool, *(self._tools[name] for name in self._discovery.found)]

    def _make_search_tool(self) -> FunctionTool:
        def search_tools(query: str) -> str:
            return self._discovery.search(query, self._descriptions).text

        async def search_async(query: str) -> str:
            return (await self._discovery.search_async(query, self._descriptions)).text

        return FunctionTool.from_defaults(
            search_tools, name=SEARCH_TOOL, description=SEARCH_DESCRIPTION, async_fn=search_async
        )


def _text(query: QueryType) -> str:
    return query if isinstance(query, str) else query.query_str
