"""The Responses API: the items are those of the real client, and a scripted API accepts them."""

import json
import re

import pytest

from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.discovery import Discovery
from pegboard.integrations.openai import ResponsesToolSearch
from tests.pegboard.integrations.boards import Shelf

openai = pytest.importorskip("openai", reason="the package openai is not installed")
httpx = pytest.importorskip("httpx")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ResponsesApi:
    """Answers as the API does: it refuses what the API refuses, and plays a script of outputs."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def client(self):
        transport = httpx.MockTransport(self._answer)
        return openai.OpenAI(api_key="none", http_client=httpx.Client(transport=transport))

    def _answer(self, request):
        body = json.loads(request.content)
        self.requests.append(body)
        problem = self._problem(body)
        if problem:
            return httpx.Response(400, json={"error": {"message": problem}})
        return httpx.Response(200, json=response(self.script.pop(0)))

    def _problem(self, body):
        (search,) = body["tools"]
        if not search.get("description"):
            return "description is required for client execution"
        loaded = set()
        calls = set()
        for item in body["input"]:
            match item["type"]:
                case "tool_search_call":
                    calls.add(item["call_id"])
                case "tool_search_output":
                    if item["call_id"] not in calls:
                        return "no tool_search_call with that call_id"
                    loaded |= {name for name, _ in functions(item["tools"])}
                case "function_call":
                    if item["name"] not in loaded:
                        return f"unknown tool {item['name']}"
        return "" if all(map(NAME.fullmatch, loaded)) else "invalid name"


def response(output):
    return {
        **{"id": "resp_1", "object": "response", "created_at": 0, "model": "gpt-5.4"},
        **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": [output]},
    }


def search(query, call_id="call_1", **changes):
    call = {"type": "tool_search_call", "id": "ts_1", "call_id": call_id, "execution": "client"}
    return {**call, "status": "completed", "arguments": {"query": query}, **changes}


def calls(name, call_id="call_9"):
    call = {"type": "function_call", "id": "fc_1", "call_id": call_id, "arguments": "{}"}
    return {**call, "name": name, "status": "completed"}


SAID = {
    **{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"},
    "content": [{"type": "output_text", "text": "Booked.", "annotations": []}],
}


def functions(tools):
    for each in tools:
        yield from ((inner["name"], each["name"]) for inner in each["tools"])


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def tools(shelf):
    return ResponsesToolSearch(Discovery(BoardSearch(shelf.board, k=2)))


def test_a_conversation_finds_calls_and_ends(tools):
    api = ResponsesApi(search("book_room"), calls("book_room"), SAID)
    client = api.client()
    history = [{"type": "message", "role": "user", "content": "A room!"}]
    while True:
        answer = client.responses.create(model="gpt-5.4", input=history, tools=[tools.definition()])
        history += [item.model_dump(exclude_none=True) for item in answer.output]
        history += tools.answers(answer.output)
        for item in answer.output:
            if item.type == "function_call":
                called = {"type": "function_call_output", "call_id": item.call_id}
                history.append({**called, "output": tools.called(item).tool.id})
        if answer.output_text:
            break

    assert answer.output_text == "Booked."
    assert [item["output"] for item in history if "output" in item] == ["kit/desk/book_room"]
    assert all(each["tools"] == api.requests[0]["tools"] for each in api.requests)
    for earlier, later in zip(api.requests, api.requests[1:], strict=False):
        assert later["input"][: len(earlier["input"])] == earlier["input"]


def test_the_items_are_those_that_the_client_declares(tools):
    from openai.types.responses.response_tool_search_output_item_param_param import (
        ResponseToolSearchOutputItemParamParam,
    )
    from openai.types.responses.tool_search_tool_param import ToolSearchToolParam
    from pydantic import TypeAdapter

    (answer,) = tools.answers([search("the weather and a meeting room")])

    TypeAdapter(ToolSearchToolParam).validate_python(tools.definition(), strict=False)
    TypeAdapter(ResponseToolSearchOutputItemParamParam).validate_python(answer)


def test_found_tools_come_in_the_namespace_of_their_agent(tools):
    (answer,) = tools.answers([search("search")])

    assert sorted(functions(answer["tools"])) == [("desk__search", "desk"), ("git__search", "git")]
    assert {each["description"] for each in answer["tools"]} == {
        "All about desk.",
        "All about git.",
    }
    assert all(inner["defer_loading"] for each in answer["tools"] for inner in each["tools"])


def test_a_search_that_finds_nothing_says_why(tools):
    answer, message = tools.answers([search("")])

    assert answer["tools"] == []
    assert message["role"] == "developer"
    assert message["content"] == ("The query is blank. Say in a few words what the tool should do.")
