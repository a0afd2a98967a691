"""The Messages API: blocks of the real client, and a scripted API that refuses as the API does."""

import json
import re

import pytest

from pegboard.integrations.anthropic import MessagesToolSearch
from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.discovery import Discovery
from tests.pegboard.integrations.boards import TOOLS, Shelf, without

anthropic = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
httpx = pytest.importorskip("httpx2", reason="what anthropic 2 sends requests with")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class MessagesApi:
    """Plays a script of content blocks, and refuses requests that the API refuses."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def client(self):
        transport = httpx.MockTransport(self._answer)
        return anthropic.Anthropic(
            api_key="none", max_retries=0, http_client=httpx.Client(transport=transport)
        )

    def _answer(self, request):
        body = json.loads(request.content)
        self.requests.append(body)
        if problem := self._problem(body):
            error = {"type": "invalid_request_error", "message": problem}
            return httpx.Response(400, json={"type": "error", "error": error})
        return httpx.Response(200, json=message(self.script.pop(0)))

    def _problem(self, body):
        tools = {each["name"]: each for each in body["tools"]}
        if len(tools) != len(body["tools"]) or not all(map(NAME.fullmatch, tools)):
            return "invalid or repeated name"
        if all(each.get("defer_loading") for each in tools.values()):
            return "All tools have defer_loading set"
        if any(t.get("defer_loading") and "cache_control" in t for t in tools.values()):
            return "Tools with defer_loading cannot use prompt caching"
        for block in blocks(body["messages"]):
            if block["type"] == "tool_result":
                if block["content"] == []:
                    return "content must not be empty"
                for each in block["content"] if isinstance(block["content"], list) else ():
                    if each["type"] == "tool_reference":
                        referenced = tools.get(each["tool_name"], {})
                        if not referenced.get("defer_loading"):
                            return f"Tool reference {each['tool_name']} has no definition"
        return ""


def blocks(messages):
    for each in messages:
        if isinstance(each["content"], list):
            yield from each["content"]


def message(block):
    reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"},
        **{"content": [block], "stop_reason": reason, "stop_sequence": None},
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def use(name, id="toolu_1", **input):
    return {"type": "tool_use", "id": id, "name": name, "input": input}


SAID = {"type": "text", "text": "Booked."}


@pytest.fixture
def shelf():
    return Shelf()


def converse(api, tools):
    """The requests of a whole conversation, with the results of the tools it called."""
    client = api.client()
    called = []
    history = [{"role": "user", "content": "A room and lunch, please."}]
    while True:
        reply = client.messages.create(
            model="claude", max_tokens=100, tools=tools.tools(), messages=history
        )
        history.append({"role": "assistant", "content": [b.model_dump() for b in reply.content]})
        results = tools.answers(reply.content)
        for block in reply.content:
            if block.type == "tool_use" and block.name != "search_tools":
                called.append(tools.called(block).tool.id)
                result = {"type": "tool_result", "tool_use_id": block.id}
                results.append({**result, "content": [{"type": "text", "text": "done"}]})
        if not results:
            return called
        history.append({"role": "user", "content": results})


def test_a_conversation_finds_calls_and_ends(shelf):
    api = MessagesApi(
        use("search_tools", query="book_room"),
        use("book_room", "toolu_2", day="Monday"),
        use("search_tools", "toolu_3", query="thanks!"),
        use("search_tools", "toolu_4", query="order_lunch"),
        use("order_lunch", "toolu_5"),
        SAID,
    )
    tools = MessagesToolSearch(Discovery(BoardSearch(shelf.board, k=2)))

    assert converse(api, tools) == ["kit/desk/book_room", "kit/desk/order_lunch"]
    declared = [each["tools"] for each in api.requests]
    assert [len(each) for each in declared] == [1, 2, 2, 2, 3, 3]
    for earlier, later in zip(api.requests, api.requests[1:], strict=False):
        assert later["tools"][: len(earlier["tools"])] == earlier["tools"]
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


def test_a_reference_stays_valid_when_its_tool_is_removed_or_restored_elsewhere(shelf):
    api = MessagesApi(use("search_tools", query="book_room"), SAID, SAID)
    search = BoardSearch(shelf.board, k=1)
    first = Discovery(search)
    converse(api, MessagesToolSearch(first))
    shelf.promote(without(TOOLS, "book_room"))
    second = Discovery(search)
    second.restore(first.to_dict())

    api.client().messages.create(
        model="claude",
        max_tokens=100,
        tools=MessagesToolSearch(second).tools(),
        messages=api.requests[-1]["messages"],
    )

    assert len(api.requests) == 3


def test_the_blocks_are_those_that_the_client_declares(shelf):
    from anthropic.types import ToolParam, ToolResultBlockParam
    from pydantic import TypeAdapter

    tools = MessagesToolSearch(Discovery(shelf.board))
    results = tools.answers([use("search_tools", query="a room"), use("search_tools", query="")])

    for each in tools.tools():
        TypeAdapter(ToolParam).validate_python(each)
    for each in results:
        TypeAdapter(ToolResultBlockParam).validate_python(each)
    assert len(tools.tools()) > 2
    assert results[1]["content"][0]["text"].startswith("The query is blank.")
