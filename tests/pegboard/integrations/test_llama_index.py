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


def test_retrieved_tools_are_only_ever_appended(board):
    retriever = BoardRetriever(BoardSearch(board, k=1), held())

    assert names(retriever.retrieve("book_room")) == ["book_room"]
    assert names(retriever.retrieve(QueryBundle("order_lunch"))) == ["book_room", "order_lunch"]
    assert names(asyncio.run(retriever.aretrieve("book_room"))) == ["book_room", "order_lunch"]
    assert names(retriever.retrieve("")) == ["book_room", "order_lunch"]


def test_an_agent_gets_the_tools_for_its_request(board):
    retriever = BoardRetriever(BoardSearch(board, k=1), held())
    agent = FunctionAgent(llm=MockFunctionCallingLLM(), tool_retriever=retriever)

    tools = asyncio.run(agent.get_tools("book a meeting room in the office"))

    assert names(tools) == ["book_room"]
