"""The Messages API: blocks of the real client, and a scripted API that refuses as the API does."""

import asyncio
import json
import re

import pytest

from pegboard.errors import QueryError
from pegboard.integrations.anthropic import MessagesToolSearch, answer, runnable_search
from pegboard.integrations.board_search import BoardSearch
from pegboard.integrations.discovery import Discovery
from tests.pegboard.integrations.boards import TOOLS, Shelf, changed, without

anthropic = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
httpx = pytest.importorskip("httpx2", reason="what anthropic 2 sends requests with")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
INLINE = "inline-tools-2026-09-15"


class MessagesApi:
    """Plays a script of content blocks, and refuses requests that the API refuses."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def client(self):
        transport = httpx.MockTransport(self._answer)
        return anthropic.Anthropic(
            api_key="none", max_retries=0, http_client=httpx.Client(transport=transport)
        )

    def async_client(self):
        transport = httpx.MockTransport(self._answer)
        return anthropic.AsyncAnthropic(
            api_key="none", max_retries=0, http_client=httpx.AsyncClient(transport=transport)
        )

    def _answer(self, request):
        body = json.loads(request.content)
        self.requests.append(body)
        if problem := self._problem(body):
            error = {"type": "invalid_request_error", "message": problem}
            return httpx.Response(400, json={"type": "error", "error": error})
        return httpx.Response(200, json=message(self.script.pop(0)))

    def _problem(self, body):
        if body.get("thread", {}).get("type") == "continue":  # the tools are the server's by now
            return "tools change the cached prefix" if "tools" in body else ""
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
    client, called = api.client(), []
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
    tools = MessagesToolSearch(
        Discovery(BoardSearch(shelf.board, k=2)), cache_control={"type": "ephemeral"}
    )

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


def test_an_empty_result_is_a_text_that_says_why(shelf):
    found = Discovery(shelf.board).search("")

    assert answer("toolu_1", found)["content"] == [{"type": "text", "text": found.reason}]


@pytest.mark.parametrize(
    "input", [{}, {"query": 5}, {"query": None}, {"q": "room"}, None, [], 5, "[" * 100_000]
)
def test_whatever_the_model_sends_is_answered(shelf, input):
    (result,) = MessagesToolSearch(Discovery(shelf.board)).answers(
        [{"type": "tool_use", "id": "1", "name": "search_tools", "input": input}, SAID]
    )

    assert result["content"][0]["type"] == "text"


def test_an_event_loop_gets_the_same_answers(shelf):
    content = [use("search_tools", query="book_room"), SAID, use("other")]

    assert asyncio.run(
        MessagesToolSearch(Discovery(shelf.board)).answers_async(content)
    ) == MessagesToolSearch(Discovery(shelf.board)).answers(content)


RUN = (
    use("search_tools", query="book_room"),
    use("book_room", "toolu_2", day="Monday"),
    use("search_tools", "toolu_3", query=""),
    SAID,
)


def check_run(api, called):
    assert called == [("kit/desk/book_room", {"day": "Monday"})]
    assert [each["name"] for each in api.requests[0]["tools"]] == ["search_tools"]
    sent = [each for request in api.requests for each in blocks(request["messages"])]
    added = [each["tool"]["definition"]["name"] for each in sent if each["type"] == "tool_addition"]
    assert added == ["book_room"]
    said = json.dumps(sent)
    assert "Found, and ready to be called: book_room." in said
    assert "The query is blank." in said


def test_the_tool_runner_gets_what_is_found_without_a_change_of_its_tools(shelf):
    api, called = MessagesApi(*RUN), []
    discovery = Discovery(BoardSearch(shelf.board, k=1))

    def call(hit, arguments):
        called.append((hit.tool.id, arguments))
        return "done"

    runner = api.client().beta.messages.tool_runner(
        model="claude",
        max_tokens=100,
        tools=[runnable_search(discovery, call, lambda: runner)],
        messages=[{"role": "user", "content": "A room on Monday."}],
        betas=[INLINE],
    )

    assert runner.until_done().content[0].text == "Booked."
    check_run(api, called)


def test_the_tool_runner_gets_a_definition_that_changed_when_it_is_found_again(shelf):
    searches = [use("search_tools", f"toolu_{n}", query="book_room") for n in range(3)]
    api = MessagesApi(*searches, SAID)
    discovery = Discovery(BoardSearch(shelf.board, k=1))
    runner = api.client().beta.messages.tool_runner(
        model="claude",
        max_tokens=100,
        tools=[runnable_search(discovery, lambda hit, arguments: "done", lambda: runner)],
        messages=[{"role": "user", "content": "A room."}],
        betas=[INLINE],
    )
    for step, _ in enumerate(runner):
        if step == 1:
            shelf.promote(changed(TOOLS, "book_room", description="Books by the hour."))

    added = [
        each["tool"]["definition"]["description"]
        for request in api.requests
        for each in blocks(request["messages"])
        if each["type"] == "tool_addition"
    ]
    assert added == ["Books a meeting room in the office.", "Books by the hour."]


def test_the_asynchronous_tool_runner_does_as_well(shelf):
    api, called = MessagesApi(*RUN), []
    discovery = Discovery(BoardSearch(shelf.board, k=1))

    async def call(hit, arguments):
        called.append((hit.tool.id, arguments))
        return "done"

    async def run():
        runner = api.async_client().beta.messages.tool_runner(
            model="claude",
            max_tokens=100,
            tools=[runnable_search(discovery, call, lambda: runner, asynchronous=True)],
            messages=[{"role": "user", "content": "A room on Monday."}],
            betas=[INLINE],
        )
        return await runner.until_done()

    assert asyncio.run(run()).content[0].text == "Booked."
    check_run(api, called)


def test_a_tool_that_was_not_found_cannot_be_called(shelf):
    with pytest.raises(QueryError, match="Search for it first"):
        MessagesToolSearch(Discovery(shelf.board)).called(use("order_lunch"))
