"""FastMCP: a real server and client, in one process."""

import asyncio
import json

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

fastmcp = pytest.importorskip("fastmcp", "4", reason="fastmcp 4 is not installed")

from fastmcp import Client, FastMCP  # noqa: E402
from fastmcp.exceptions import ToolError  # noqa: E402

from pegboard.integrations.fastmcp import BoardSearchTransform  # noqa: E402

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def server(*agents):
    """A server with the tools of those agents, each mounted under its agent's name."""
    whole = FastMCP("kit")
    for agent in agents:
        part = FastMCP(agent)
        for each in TOOLS:
            if each.agent == f"kit/{agent}":
                part.add_tool(
                    fastmcp.tools.Tool.from_function(
                        lambda name=each.name: f"called {name}",
                        name=each.name,
                        description=each.description,
                    )
                )
        whole.mount(part, namespace=agent)
    return whole


def ask(whole, *calls):
    async def run():
        async with Client(whole) as client:
            listed = [each.name for each in await client.list_tools()]
            return listed, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


def found(result):
    return [each["name"] for each in json.loads(result.content[0].text)]


@pytest.fixture
def board():
    return Shelf().board


def test_a_client_lists_searches_and_calls(board):
    whole = server("desk", "git", "weather")
    whole.add_transform(
        BoardSearchTransform(BoardSearch(board, k=1), always_visible=["weather_get_forecast"])
    )

    listed, (rooms, both, booked) = ask(
        whole,
        ("search_tools", {"query": "book a meeting room in the office"}),
        ("search_tools", {"query": "employees of the company by department"}),
        ("call_tool", {"name": "desk_book_room", "arguments": {}}),
    )

    assert listed == ["weather_get_forecast", "search_tools", "call_tool"]
    assert found(rooms) == ["desk_book_room"]
    assert found(both) == ["desk_search"]
    assert booked.content[0].text == "called book_room"


def test_a_tool_that_the_server_does_not_show_is_not_found(board):
    whole = server("git")
    whole.add_transform(BoardSearchTransform(BoardSearch(board, k=5)))

    _, (result,) = ask(whole, ("search_tools", {"query": "book a meeting room, create_issue"}))

    assert all(name.startswith("git_") for name in found(result))
    with pytest.raises(ToolError, match="Unknown tool"):
        ask(whole, ("call_tool", {"name": "desk_book_room", "arguments": {}}))


def test_a_search_that_finds_nothing_says_why(board):
    whole = server("desk")
    whole.add_transform(BoardSearchTransform(board))

    _, (result,) = ask(whole, ("search_tools", {"query": " "}))

    assert result.content[0].text.startswith("The query is blank.")
