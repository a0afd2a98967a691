"""OpenAI Agents SDK: a real runner with a scripted model."""

import asyncio
import json

import pytest

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.own_tools import OwnTools
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    Runner,
    Usage,
    set_tracing_disabled,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from pegboard.integrations.openai_agents import AgentTools

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Scripted(Model):
    """Plays a script, and remembers the tools that it was given in each step."""

    def __init__(self, *script):
        self.script, self.shown = list(script), []

    async def get_response(self, *arguments, **named):
        tools = named.get("tools", arguments[3] if len(arguments) > 3 else [])
        self.shown.append([each.name for each in tools])
        step = self.script.pop(0)
        output = step if isinstance(step, list) else [step]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *arguments, **named):
        raise NotImplementedError


def calls(name, **arguments):
    called = f"{name} {arguments}"
    return ResponseFunctionToolCall(
        type="function_call", call_id=called, name=name, arguments=json.dumps(arguments)
    )


DONE = ResponseOutputMessage(
    id="1",
    type="message",
    role="assistant",
    status="completed",
    content=[ResponseOutputText(type="output_text", text="Done.", annotations=[])],
)


def held():
    def make(each):
        async def run(context, arguments):
            return f"called {each.name}"

        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        return FunctionTool(each.name, each.description, schema, run)

    return [make(each) for each in TOOLS if each.id != "kit/desk/search"]


@pytest.fixture(autouse=True)
def _no_tracing():
    set_tracing_disabled(True)


def test_an_agent_sees_the_search_then_what_it_found():
    model = Scripted(
        calls("search_tools", query="order_lunch"),
        calls("order_lunch"),
        calls("search_tools", query="book_room"),
        calls("book_room"),
        DONE,
    )
    tools = AgentTools(BoardSearch(Shelf().board, k=1), held())
    agent = Agent(name="agent", model=model, tools=tools.tools)

    result = asyncio.run(Runner.run(agent, "Lunch and a room."))

    assert result.final_output == "Done."
    assert model.shown == [
        ["search_tools"],
        *[["search_tools", "order_lunch"]] * 2,
        *[["search_tools", "order_lunch", "book_room"]] * 2,
    ]
    outputs = [each.output for each in result.new_items if each.type == "tool_call_output_item"]
    assert outputs[1::2] == ["called order_lunch", "called book_room"]
    assert tools.found == ["order_lunch", "book_room"]


def test_searches_of_one_reply_that_find_the_same_tool_add_it_once():
    queries = ("order_lunch", " order_lunch", "book_room")
    model = Scripted([calls("search_tools", query=query) for query in queries], DONE)
    tools = AgentTools(BoardSearch(Shelf().board, k=1), held())

    asyncio.run(Runner.run(Agent(name="agent", model=model, tools=tools.tools), "Both."))

    assert sorted(model.shown[1]) == ["book_room", "order_lunch", "search_tools"]


def test_conversations_share_a_search_and_nothing_else():
    own = OwnTools(BoardSearch(Shelf().board, k=1))
    first, second = AgentTools(own, held()), AgentTools(own, held())
    model = Scripted(calls("search_tools", query="order_lunch"), DONE)
    asyncio.run(Runner.run(Agent(name="agent", model=model, tools=first.tools), "Lunch."))

    assert first.found == ["order_lunch"]
    assert second.found == []
    assert [each.name for each in second.tools] == ["search_tools"]


def test_tools_of_mcp_servers_are_shown_once_they_were_found():
    tools = AgentTools(BoardSearch(Shelf().board, k=1))
    shown = tools.mcp_filter()

    def listing():
        return [each.name for each in TOOLS[:6] if shown(None, each)]

    assert listing() == []
    model = Scripted(calls("search_tools", query="order_lunch"), DONE)
    asyncio.run(Runner.run(Agent(name="agent", model=model, tools=tools.tools), "Lunch."))
    assert listing() == ["order_lunch"]
