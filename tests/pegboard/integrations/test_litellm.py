"""LiteLLM's proxy hook: what it narrows, and what it leaves alone."""

import asyncio
import copy

import pytest

from pegboard.errors import StoreError
from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("litellm", reason="litellm is not installed")

from pegboard.integrations.litellm import BoardToolFilter

NATIVE = {"type": "function", "function": {"name": "native", "description": "An own function."}}
WEB = {"type": "web_search"}
BLOCK = {"type": "mcp", "server_url": "litellm_proxy/mcp/office", "require_approval": "never"}


def nested(each):
    return {"type": "function", "function": {"name": each.name, "description": each.description}}


def flat(each):
    return {"type": "function", "name": each.name, "description": each.description}


def custom(each):
    return {"name": each.name, "description": each.description, "input_schema": {}}


def named(tools):
    return [each.get("function", each).get("name") or each["type"] for each in tools]


def user(text):
    return {"role": "user", "content": text}


def narrow(hook, call_type="acompletion", **data):
    return asyncio.run(hook.async_pre_call_hook(None, None, data, call_type))


KIT = [each for each in TOOLS if each.id != "kit/desk/search"]


@pytest.fixture
def board():
    return Shelf().board


@pytest.fixture
def hook(board):
    return BoardToolFilter(BoardSearch(board, k=2))


@pytest.mark.parametrize("shape", [nested, flat, custom])
def test_tools_of_the_board_are_narrowed_and_others_and_references_pass(hook, shape):
    tools = [NATIVE, *map(shape, KIT), WEB, BLOCK]
    data = narrow(hook, messages=[user("book_room")], tools=tools)

    assert named(data["tools"]) == ["native", "web_search", "mcp", "book_room"]
    assert data["tools"][0] is NATIVE
    assert data["tools"][2] is BLOCK


def test_tools_of_a_conversation_are_only_ever_appended(hook):
    tools = [NATIVE, *map(nested, KIT)]
    messages = []
    seen = []
    for text in ("book_room", "order_lunch", "book_room", "thanks!", "weather forecast"):
        messages = [*messages, user(text), {"role": "assistant", "content": "Done."}]
        names = named(narrow(hook, messages=messages, tools=tools)["tools"])
        assert names[: len(seen)] == seen
        seen = names

    assert seen[:3] == ["native", "book_room", "order_lunch"]
    assert "get_forecast" in seen


def test_a_tool_that_the_conversation_called_stays(hook):
    call = {"id": "1", "type": "function", "function": {"name": "get_forecast", "arguments": "{}"}}
    messages = [
        user("book_room"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]

    assert named(narrow(hook, messages=messages, tools=[*map(nested, KIT)])["tools"]) == [
        *("book_room", "get_forecast"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": "none"},
        {"role": "assistant", "tool_calls": ["none", {"function": "none"}, {"function": None}]},
        {"role": "assistant", "content": ["none", {"type": "tool_use", "name": 5}]},
        {"role": "user", "content": ["none", {"type": "text", "text": ["none"]}]},
        {"role": "user", "content": [{"type": "input_text", "text": "book_room"}]},
        {"type": "function_call", "name": None},
    ],
)
def test_messages_of_another_shape_are_no_failure(hook, message):
    data = narrow(hook, messages=[user("book_room"), message], tools=[*map(nested, KIT)])

    assert named(data["tools"]) == ["book_room"]


@pytest.mark.parametrize(
    ("call_type", "data"),
    [
        ("embeddings", {"input": "book_room", "tools": [nested(KIT[0])]}),
        ("acompletion", {"messages": [user("book_room")]}),
        ("acompletion", {"messages": [user("book_room")], "tools": []}),
        ("acompletion", {"messages": [user("book_room")], "tools": [NATIVE, WEB, BLOCK]}),
        ("acompletion", {"messages": [], "tools": [nested(KIT[0])]}),
        ("acompletion", {"messages": [user("")], "tools": [nested(KIT[0])]}),
        ("acompletion", {"messages": [{"role": "system", "content": "x"}], "tools": [BLOCK]}),
    ],
)
def test_what_has_nothing_to_narrow_stays_as_it_is(hook, call_type, data):
    before = copy.deepcopy(data)

    assert asyncio.run(hook.async_pre_call_hook(None, None, data, call_type)) is None
    assert data == before


def test_a_board_that_fails_leaves_a_request_as_it_is(board, caplog, monkeypatch):
    hook = BoardToolFilter(board)

    def fail(*_, **__):
        raise StoreError("the store is away")

    monkeypatch.setattr(type(board), "find", fail)
    data = {"messages": [user("weather forecast")], "tools": [*map(nested, KIT)]}

    assert asyncio.run(hook.async_pre_call_hook(None, None, data, "acompletion")) is None
    assert named(data["tools"]) == [each.name for each in KIT]
    assert "the store is away" in caplog.text
