"""LangChain agents with a scripted model, a checkpointer, and langgraph-bigtool."""

import asyncio

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf, without

pytest.importorskip("langchain", "1", reason="langchain 1 is not installed")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from pegboard.integrations.langchain import BoardToolsMiddleware, retrieve_tools

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Scripted(GenericFakeChatModel):
    """Plays a script, and remembers the tools that it was given in each step."""

    shown: list = []  # noqa: RUF012

    def bind_tools(self, tools, **_):
        self.shown.append([getattr(each, "name", None) or each.__name__ for each in tools])
        return self


def play(*script):
    return Scripted(messages=iter(script), shown=[])


def calls(name, number=1, **arguments):
    call = {"name": name, "args": arguments, "id": f"call_{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def held():
    return [
        StructuredTool.from_function(
            lambda name=each.name: f"called {name}", name=each.name, description=each.description
        )
        for each in TOOLS
        if each.id != "kit/desk/search"
    ]


def said(result):
    return [each.content for each in result["messages"] if isinstance(each, ToolMessage)]


@tool
def own_tool() -> str:
    """The agent's own."""
    return "own"


@pytest.fixture
def board():
    return Shelf().board


SCRIPT = (
    calls("search_tools", query="book_room"),
    calls("book_room", 2),
    calls("search_tools", 3, query="order_lunch"),
    calls("order_lunch", 4),
    calls("own_tool", 5),
    AIMessage("Booked."),
)
SHOWN = [
    ["search_tools", "own_tool"],
    *[["search_tools", "own_tool", "book_room"]] * 2,
    *[["search_tools", "own_tool", "book_room", "order_lunch"]] * 3,
]
SAID = [
    "Found, and ready to be called: book_room.",
    "called book_room",
    "Found, and ready to be called: order_lunch.",
    "called order_lunch",
    "own",
]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_agent_sees_its_own_tools_the_search_and_what_it_found(board, asynchronous):
    model = play(*SCRIPT)
    middleware = BoardToolsMiddleware(BoardSearch(board, k=1), held())
    agent = create_agent(model, tools=[own_tool], middleware=[middleware])
    request = {"messages": [("user", "A room.")]}

    result = asyncio.run(agent.ainvoke(request)) if asynchronous else agent.invoke(request)

    assert said(result) == SAID
    assert model.shown == SHOWN


def test_a_tool_that_was_not_found_is_refused(board):
    model = play(calls("order_lunch"), calls("nonsense", 2), AIMessage("Sorry."))
    agent = create_agent(model, middleware=[BoardToolsMiddleware(board, held())])

    result = agent.invoke({"messages": [("user", "Lunch.")]})

    assert all("Search for it first" in text for text in said(result))
    assert len(said(result)) == 2


def test_a_checkpointed_conversation_keeps_what_it_found_and_others_do_not_see_it(board):
    model = play(*SCRIPT[:2], AIMessage("One."), AIMessage("Two."), AIMessage("Other."))
    middleware = BoardToolsMiddleware(BoardSearch(board, k=1), held())
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    for thread in ("one", "one", "other"):
        config = {"configurable": {"thread_id": thread}}
        agent.invoke({"messages": [("user", "Hello.")]}, config)

    assert model.shown[3:] == [["search_tools", "book_room"], ["search_tools"]]


def test_two_searches_of_one_reply_are_both_kept(board):
    both = [
        {"name": "search_tools", "args": {"query": name}, "id": name, "type": "tool_call"}
        for name in ("book_room", "order_lunch")
    ]
    model = play(AIMessage("", tool_calls=both), AIMessage("Done."))
    agent = create_agent(model, middleware=[BoardToolsMiddleware(BoardSearch(board, k=1), held())])

    agent.invoke({"messages": [("user", "Both.")]})

    assert model.shown[1] == ["search_tools", "book_room", "order_lunch"]


def test_requests_may_be_searched_at_once(board):
    model = play(calls("book_room"), AIMessage("Booked."))
    middleware = BoardToolsMiddleware(BoardSearch(board, k=1), held(), search_requests=True)
    agent = create_agent(model, middleware=[middleware])

    result = agent.invoke({"messages": [("user", "book a meeting room in the office")]})

    assert model.shown[0] == ["search_tools", "book_room"]
    assert said(result) == ["called book_room"]


def test_bigtool_retrieves_only_ids_of_its_registry(board):
    bigtool = pytest.importorskip("langgraph_bigtool", reason="langgraph-bigtool is missing")
    registry = {f"id-{each.name}": each for each in held() if each.name != "book_room"}
    function, coroutine = retrieve_tools(BoardSearch(board, k=1), registry)
    # Its tool node needs a langgraph before 1.0, so what it finds is bound and not called.
    model = play(calls("search_tools", query="order_lunch"), AIMessage("Done."))
    agent = bigtool.create_agent(model, registry, retrieve_tools_function=function).compile()

    result = agent.invoke({"messages": [("user", "Lunch.")]})

    assert function("book_room") != ["id-book_room"]
    assert asyncio.run(coroutine("order_lunch")) == ["id-order_lunch"]
    assert said(result) == ["Available tools: ['order_lunch']"]
    assert model.shown == [["search_tools"], ["search_tools", "order_lunch"]]


def test_a_tool_that_the_release_lost_is_still_called_by_the_application_that_holds_it():
    shelf = Shelf()
    model = play(SCRIPT[0], SCRIPT[1], AIMessage("Booked."))
    agent = create_agent(
        model, middleware=[BoardToolsMiddleware(BoardSearch(shelf.board, k=1), held())]
    )
    shelf.promote(without(TOOLS, "order_lunch"))

    assert said(agent.invoke({"messages": [("user", "Room.")]}))[1] == "called book_room"
