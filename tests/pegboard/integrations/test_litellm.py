"""LiteLLM's proxy hook: what it narrows, what it leaves alone, and what it tells."""

import ast
import asyncio
import copy
import importlib.util
import sys
import types
from pathlib import Path

import pytest

from pegboard.errors import StoreError
from pegboard.integrations.board_search import BoardSearch
from tests.pegboard.integrations.boards import TOOLS, Shelf

pytest.importorskip("litellm", reason="litellm is not installed")

from pegboard.integrations.litellm import NOTHING, BoardToolFilter

NATIVE = {"type": "function", "function": {"name": "native", "description": "An own function."}}
WEB = {"type": "web_search"}
BLOCK = {"type": "mcp", "server_url": "litellm_proxy/mcp/office", "require_approval": "never"}
OTHER = {"type": "mcp", "server_url": "https://mcp.example.com/mcp", "server_label": "other"}


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


def headers(hook, data):
    return asyncio.run(hook.async_post_call_response_headers_hook(data, None, None))


KIT = [each for each in TOOLS if each.id != "kit/desk/search"]


@pytest.fixture
def board():
    return Shelf().board


@pytest.fixture
def hook(board):
    return BoardToolFilter(BoardSearch(board, k=2))


@pytest.mark.parametrize("shape", [nested, flat, custom])
def test_tools_of_the_board_are_narrowed_and_others_pass(hook, shape):
    tools = [NATIVE, *map(shape, KIT), WEB, OTHER]
    data = narrow(hook, messages=[user("book_room")], tools=tools)

    assert named(data["tools"]) == ["native", "web_search", "mcp", "book_room"]
    assert data["tools"][0] is NATIVE
    assert data["tools"][2] is OTHER
    assert headers(hook, data) == {
        "x-litellm-semantic-filter": f"{len(KIT)}->1",
        "x-litellm-semantic-filter-tools": "book_room",
    }


HANDLER = "litellm.responses.mcp.litellm_proxy_mcp_handler"


def install(monkeypatch, listing):
    """Stand in for what lists tools in the proxy, which needs the proxy's own packages."""

    async def split(tools):
        return list(tools), []

    handler = type("Handler", (), {})
    handler.split_mcp_tools = staticmethod(split)
    handler.process_mcp_tools_to_openai_format = staticmethod(listing)
    module = types.ModuleType(HANDLER)
    module.LiteLLM_Proxy_MCP_Handler = handler
    monkeypatch.setitem(sys.modules, HANDLER, module)


def test_what_lists_tools_in_the_proxy_is_as_the_hook_calls_it():
    folder = Path(importlib.util.find_spec("litellm").origin).parent
    tree = ast.parse((folder / "responses/mcp/litellm_proxy_mcp_handler.py").read_text("utf-8"))
    (handler,) = [
        each
        for each in tree.body
        if isinstance(each, ast.ClassDef) and each.name == "LiteLLM_Proxy_MCP_Handler"
    ]
    arguments = {
        each.name: [argument.arg for argument in each.args.args]
        for each in handler.body
        if isinstance(each, ast.AsyncFunctionDef)
    }

    assert len(arguments["split_mcp_tools"]) >= 1
    assert arguments["process_mcp_tools_to_openai_format"][:2] == [
        *("user_api_key_auth", "mcp_tools_with_litellm_proxy"),
    ]


@pytest.fixture
def proxy(monkeypatch):
    """A proxy whose MCP server `office` has the tools of the kit, and one that no board knows."""
    tools = [{**flat(each), "name": f"office-{each.name}"} for each in KIT]
    tools.append(
        {"type": "function", "name": "office-water_plants", "description": "Waters plants."}
    )

    async def listed(user_api_key_auth, mcp_tools_with_litellm_proxy):
        allowed = {
            name
            for each in mcp_tools_with_litellm_proxy
            for name in each.get("allowed_tools") or ()
        }
        return [each for each in tools if not allowed or each["name"] in allowed], {}

    install(monkeypatch, listed)


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("call_type", ["completion", "acompletion", "aresponses"])
def test_references_to_the_proxy_keep_their_form_and_allow_what_was_found(board, call_type):
    hook = BoardToolFilter(BoardSearch(board, k=1))
    data = narrow(hook, call_type, input="orders lunch at the canteen", tools=[BLOCK, OTHER])

    assert data["tools"] == [{**BLOCK, "allowed_tools": ["office-order_lunch"]}, OTHER]
    assert headers(hook, data)["x-litellm-semantic-filter"] == f"{len(KIT) + 1}->1"


@pytest.mark.usefixtures("proxy")
def test_a_tool_of_the_proxy_that_no_board_knows_is_found_by_its_words(hook):
    (block,) = narrow(hook, input="water the plants", tools=[BLOCK])["tools"]

    assert "office-water_plants" in block["allowed_tools"]


@pytest.mark.usefixtures("proxy")
def test_a_caller_can_only_narrow_further(hook):
    block = {**BLOCK, "allowed_tools": ["office-book_room", "office-get_forecast"]}
    (narrowed,) = narrow(hook, input="order lunch, then book a room", tools=[block])["tools"]

    assert set(narrowed["allowed_tools"]) <= set(block["allowed_tools"])
    assert "office-book_room" in narrowed["allowed_tools"]


@pytest.mark.usefixtures("proxy")
def test_where_nothing_fits_nothing_is_allowed_rather_than_everything(hook):
    data = narrow(hook, messages=[user("thanks!")], tools=[BLOCK, NATIVE, *map(nested, KIT)])

    assert data["tools"] == [{**BLOCK, "allowed_tools": [NOTHING]}, NATIVE]


def test_references_whose_tools_cannot_be_listed_stay_as_they_are(hook, monkeypatch, caplog):
    async def fail(**_):
        raise RuntimeError("the server is away")

    install(monkeypatch, fail)

    assert narrow(hook, input="order_lunch", tools=[BLOCK]) is None
    data = narrow(hook, input="order_lunch", tools=[BLOCK, *map(nested, KIT)])
    assert data["tools"][0] == BLOCK
    assert named(data["tools"][1:]) == ["order_lunch"]
    assert "the server is away" in caplog.text


def test_tools_of_a_conversation_are_only_ever_appended(hook):
    tools, messages, seen = [NATIVE, *map(nested, KIT)], [], []
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
        ("acompletion", {"messages": [user("book_room")], "tools": [NATIVE, WEB, OTHER]}),
        ("acompletion", {"messages": [], "tools": [nested(KIT[0])]}),
        ("acompletion", {"messages": [user("")], "tools": [nested(KIT[0])]}),
        ("acompletion", {"messages": [{"role": "system", "content": "x"}], "tools": [BLOCK]}),
    ],
)
def test_what_has_nothing_to_narrow_stays_as_it_is(hook, call_type, data):
    before = copy.deepcopy(data)

    assert asyncio.run(hook.async_pre_call_hook(None, None, data, call_type)) is None
    assert data == before
    assert headers(hook, data) is None


def test_a_board_that_fails_leaves_a_request_as_it_is(board, caplog, monkeypatch):
    hook = BoardToolFilter(board)

    def fail(*_, **__):
        raise StoreError("the store is away")

    monkeypatch.setattr(type(board), "_find_many_async", fail)
    data = {"messages": [user("weather forecast")], "tools": [*map(nested, KIT)]}

    assert asyncio.run(hook.async_pre_call_hook(None, None, data, "acompletion")) is None
    assert named(data["tools"]) == [each.name for each in KIT]
    assert "the store is away" in caplog.text


@pytest.mark.usefixtures("proxy")
def test_the_proxys_own_metadata_is_used_where_it_has_some(hook):
    data = narrow(hook, input="order_lunch", tools=[BLOCK], litellm_metadata={"user": "u"})

    assert data["litellm_metadata"]["user"] == "u"
    assert "metadata" not in data
    assert "office-order_lunch" in headers(hook, data)["x-litellm-semantic-filter-tools"]
