"""Pydantic AI: an agent with deferred tools, a scripted model, and the native wire forms."""

import asyncio

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, Tool  # noqa: E402
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402

from pegboard.integrations.pydantic_ai import tool_search  # noqa: E402

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def held(called):
    def make(each):
        def run(**arguments):
            called.append((each.name, arguments))
            return "done"

        schema = dict(each.input_schema)
        made = Tool.from_schema(run, each.name, each.description, schema)
        made.defer_loading = True
        return made

    return [make(each) for each in TOOLS if each.id != "kit/desk/search"]


def play(*script):
    """A model that plays a script, and what it was shown in each step."""
    steps, shown = list(script), []

    def answer(messages, info):
        shown.append([each.name for each in info.function_tools])
        return ModelResponse(parts=[steps.pop(0)])

    return FunctionModel(answer), shown


@pytest.fixture
def board():
    return Shelf().board


def test_an_agent_sees_the_search_then_what_it_found(board):
    called = []
    model, shown = play(
        ToolCallPart("search_tools", {"queries": ["book_room"]}),
        ToolCallPart("book_room", {"day": "Monday"}),
        ToolCallPart("search_tools", {"queries": ["order_lunch", "create_issue"]}),
        TextPart("Booked."),
    )
    search = BoardSearch(board, k=2)
    agent = Agent(model, tools=held(called), capabilities=[tool_search(search)])

    assert asyncio.run(agent.run("A room on Monday.")).output == "Booked."
    assert called == [("book_room", {"day": "Monday"})]
    assert [sorted(each) for each in shown] == [
        ["search_tools"],
        *[["book_room", "search_tools"]] * 2,
        ["book_room", "create_issue", "order_lunch", "search_tools"],
    ]


def test_runs_at_once_share_nothing(board):
    agents = []
    for name in ("book_room", "order_lunch", "get_forecast"):
        model, shown = play(ToolCallPart("search_tools", {"queries": [name]}), TextPart(name))
        search = BoardSearch(board, k=1)
        agent = Agent(model, tools=held([]), capabilities=[tool_search(search)])
        agents.append((agent, shown, name))

    async def run():
        await asyncio.gather(*(agent.run("go") for agent, _, _ in agents))

    asyncio.run(run())

    assert all(sorted(shown[1]) == sorted(["search_tools", name]) for _, shown, name in agents)


def test_a_search_that_finds_nothing_goes_on(board):
    model, shown = play(ToolCallPart("search_tools", {"queries": [""]}), TextPart("Sorry."))
    agent = Agent(model, tools=held([]), capabilities=[tool_search(board)])

    assert asyncio.run(agent.run("go")).output == "Sorry."
    assert shown[1] == ["search_tools"]


def test_with_anthropic_the_search_answers_by_references(board):
    pytest.importorskip("httpx2", reason="what anthropic 2 sends requests with")
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from tests.pegboard.integrations.test_anthropic import SAID, MessagesApi, blocks, use

    called = []
    api = MessagesApi(
        use("search_tools", queries=["book_room"]), use("book_room", "toolu_2", day="Monday"), SAID
    )
    provider = AnthropicProvider(anthropic_client=api.async_client())
    model = AnthropicModel("claude-sonnet-4-6", provider=provider)
    search = BoardSearch(board, k=1)
    agent = Agent(model, tools=held(called), capabilities=[tool_search(search)])

    result = asyncio.run(agent.run("A room on Monday.", model_settings={"max_tokens": 100}))

    assert result.output == "Booked."
    assert called == [("book_room", {"day": "Monday"})]
    assert all(each["tools"] == api.requests[0]["tools"] for each in api.requests)
    results = [b for b in blocks(api.requests[1]["messages"]) if b["type"] == "tool_result"]
    assert [b["content"] for b in results] == [
        [{"type": "tool_reference", "tool_name": "book_room"}]
    ]
