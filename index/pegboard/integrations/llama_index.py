"""LlamaIndex: the tools of an agent, retrieved from a board for each step.

agent = FunctionAgent(llm=llm, tool_retriever=BoardRetriever(board, tools))
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Sequence

from llama_index.core.objects import ObjectRetriever
from llama_index.core.schema import QueryType
from llama_index.core.tools import BaseTool

from pegboard.integrations.own_tools import OwnDiscovery, Search


class BoardRetriever(ObjectRetriever[BaseTool]):
    """Retrieves the tools for a request, after all that the conversation had before.

    Make one for each conversation: `BoardRetriever(own, tools)` with an `OwnTools` that they share.

    Args:
        search: how to search.
        tools: those that may be retrieved, with unique names.
    """

    def __init__(self, search: Search, tools: Sequence[BaseTool]) -> None:
        self._discovery = OwnDiscovery(search)
        self._tools = {tool.metadata.get_name(): tool for tool in tools}
        self._descriptions = {
            name: tool.metadata.description or "" for name, tool in self._tools.items()
        }

    def retrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Return the tools found so far, those for this request last if they are new."""
        self._discovery.search(_text(str_or_query_bundle), self._descriptions)
        return self._found()

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        """Return what `retrieve` does; the event loop goes on meanwhile."""
        await self._discovery.search_async(_text(str_or_query_bundle), self._descriptions)
        return self._found()

    def _found(self) -> list[BaseTool]:
        return [self._tools[name] for name in self._discovery.found]


def _text(query: QueryType) -> str:
    return query if isinstance(query, str) else query.query_str
