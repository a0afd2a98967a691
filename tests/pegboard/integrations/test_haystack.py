"""Haystack: an agent with a scripted generator; runs share nothing."""

import pytest

from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import Tool, Toolset

from pegboard.integrations.haystack import BoardToolset

# Deprecations inside the framework and what it uses are its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@component
class Scripted:
    """Plays a script, and remembers the tools that it was given in each step."""

    def __init__(self, *script):
        self.script, self.shown = list(script), []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools=None):
        self.shown.append([each.name for each in tools or ()])
        return {"replies": [self.script.pop(0)]}


def calls(name, **arguments):
    return ChatMessage.from_assistant(tool_calls=[ToolCall(name, arguments, id=name)])


def held():
    return [
        Tool(
            name=each.name,
            description=each.description,
            parameters={"type": "object", "properties": {}},
            function=lambda name=each.name: f"called {name}",
        )
        for each in TOOLS
        if each.id != "kit/desk/search"
    ]


@pytest.fixture
def toolset():
    return BoardToolset(BoardSearch(Shelf().board, k=1), held())


def names(tools):
    return [each.name for each in tools]


SCRIPT = (
    calls("search_tools", query="order_lunch"),
    calls("order_lunch"),
    calls("search_tools", query="book_room"),
    calls("book_room"),
    ChatMessage.from_assistant("Done."),
)


def test_an_agent_sees_the_search_then_what_its_run_found(toolset):
    generator = Scripted(*SCRIPT, *SCRIPT)
    agent = Agent(chat_generator=generator, tools=toolset)
    for _ in range(2):
        result = agent.run(messages=[ChatMessage.from_user("Lunch and a room.")])

    assert result["last_message"].text == "Done."
    assert (
        generator.shown[:5]
        == generator.shown[5:]
        == [
            ["search_tools"],
            *[["search_tools", "order_lunch"]] * 2,
            *[["search_tools", "order_lunch", "book_room"]] * 2,
        ]
    )
    results = [each.tool_call_result.result for each in result["messages"] if each.tool_call_result]
    assert results == [
        "Found, and ready to be called: order_lunch.",
        "called order_lunch",
        "Found, and ready to be called: book_room.",
        "called book_room",
    ]


def test_a_run_finds_only_the_tools_selected_for_it(toolset):
    run = toolset.spawn({"order_lunch"})
    (search,) = run

    search.invoke(query="book a meeting room in the office")

    assert names(run) == ["search_tools", "order_lunch"][: len(names(run))]
    assert "book_room" not in run
    assert names(toolset) == ["search_tools"]


def test_what_may_be_selected_is_all(toolset):
    assert names(toolset.get_selectable_tools()) == names(held())


def test_toolsets_may_be_part_of_it():
    toolset = BoardToolset(BoardSearch(Shelf().board, k=1), [Toolset(held()[:3]), *held()[3:]])
    toolset.warm_up()

    assert names(toolset.get_selectable_tools()) == names(held())
    assert len(toolset) == 1
    assert toolset[0].name == "search_tools"


def test_a_search_that_finds_nothing_says_why(toolset):
    assert toolset[0].invoke(query="").startswith("The query is blank.")


def test_it_can_neither_be_extended_nor_stored(toolset):
    with pytest.raises(NotImplementedError):
        toolset.add(held()[0])
    with pytest.raises(NotImplementedError):
        toolset.to_dict()
