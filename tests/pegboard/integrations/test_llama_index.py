"""LlamaIndex: a function agent whose tools are retrieved for each step."""

import asyncio

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool

from pegboard.integrations.llama_index import BoardRetriever

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def held():
    return [
        FunctionTool.from_defaults(
            lambda name=each.name: f"called {name}", name=each.name, description=each.description
        )
        for each in TOOLS
        if each.id != "kit/desk/search"
    ]


def names(tools):
    return [each.metadata.name for each in tools]


@pytest.fixture
def board():
    return Shelf().board


def test_retrieved_tools_are_only_ever_appended_behind_the_search(board):
    retriever = BoardRetriever(BoardSearch(board, k=1), held())
    search = retriever.retrieve("")[0]

    assert names(retriever.retrieve("book_room")) == ["search_tools", "book_room"]
    assert str(search(query="order_lunch")).endswith("called: order_lunch.")
    expected = ["search_tools", "book_room", "order_lunch"]
    assert names(retriever.retrieve(QueryBundle("book_room"))) == expected
    assert names(asyncio.run(retriever.aretrieve(""))) == expected
    assert names(retriever.retrieve("search_tools")) == expected


def test_an_agent_finds_tools_by_its_request_and_by_the_models_search(board):
    retriever = BoardRetriever(BoardSearch(board, k=1), held())
    agent = FunctionAgent(llm=MockFunctionCallingLLM(), tool_retriever=retriever)

    async def run():
        [search, _] = await agent.get_tools("book a meeting room in the office")
        await search.acall(query="order_lunch")
        return await agent.get_tools("book a meeting room in the office")

    assert names(asyncio.run(run())) == ["search_tools", "book_room", "order_lunch"]
