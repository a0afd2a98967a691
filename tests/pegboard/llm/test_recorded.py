"""Recorded replies: keys, files, answers of batch APIs and of people."""

import asyncio
import json
import threading

import pytest

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.answers import add_answers
from pegboard.llm.recorded import (
    RecordedCompleter,
    ReplyFolder,
    recorded_completer,
    request_key,
)

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}


def request(text="When is high tide?", **fields):
    messages = (Message("system", "Answer as JSON."), Message("user", text))
    return ChatRequest(messages=messages, **{"max_tokens": 100, "schema": SCHEMA, **fields})


class Model:
    """Answers with the text of the request, in capitals."""

    name = "openai/loud"

    def __init__(self):
        self.asked = []

    async def complete(self, asked):
        self.asked.append(asked)
        text = asked.messages[-1].content.upper()
        return ChatReply(
            text=text, finish_reason="stop", model=self.name, prompt_tokens=7,
            completion_tokens=3, cost_usd=0.25, seconds=1.5,
        )  # fmt: skip


def complete(completer, asked):
    return asyncio.run(completer.complete(asked))


def completer(tmp_path, missing, model=None):
    return RecordedCompleter("openai/loud", ReplyFolder(tmp_path / "replies"), missing, model)


def test_a_reply_is_paid_once_and_read_by_every_later_run(tmp_path):
    model = Model()
    for _ in range(2):
        reply = complete(completer(tmp_path, "ask", model), request())
        assert reply.text == "WHEN IS HIGH TIDE?"
        assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_usd) == (7, 3, 0.25)
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"max_tokens": 900}, True),
        ({"temperature": 0.5}, True),
        ({"schema_name": "other"}, True),
        ({"schema": None}, False),
        ({"tools": ({"type": "function"},)}, False),
        ({"text": "When is low tide?"}, False),
    ],
)
def test_the_key_of_a_request_is_what_the_model_reads(changed, same):
    assert (request_key(request()) == request_key(request(**changed))) is same


def test_a_request_without_a_reply_is_written_once_in_the_format_of_batch_apis(tmp_path):
    writing = completer(tmp_path, "write")
    for _ in range(2):
        with pytest.raises(CompletionError, match="no recorded reply") as raised:
            complete(writing, request(temperature=0.0))
        assert raised.value.kind == "unrecorded"

    [line] = (tmp_path / "replies/open.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "custom_id": request_key(request()),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "loud",
            "messages": [
                {"role": "system", "content": "Answer as JSON."},
                {"role": "user", "content": "When is high tide?"},
            ],
            "max_tokens": 100,
            "temperature": 0.0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
            },
        },
    }
    assert "1 request has no recorded reply" in writing.missing_message()
    assert "pegboard replies read" in writing.missing_message()


def test_without_writing_a_missing_reply_leaves_no_trace(tmp_path):
    failing = completer(tmp_path, "fail")
    with pytest.raises(CompletionError):
        complete(failing, request())
    assert "missing_replies = 'ask'" in failing.missing_message()
    assert not (tmp_path / "replies").exists()


def open_requests(tmp_path, *texts):
    writing = completer(tmp_path, "write")
    for text in texts:
        with pytest.raises(CompletionError):
            complete(writing, request(text))
    return [request_key(request(text)) for text in texts]


def write_answers(tmp_path, *lines):
    file = tmp_path / "answers.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def test_answers_of_a_batch_api_are_read_with_their_model_and_tokens(tmp_path):
    [key] = open_requests(tmp_path, "When is high tide?")
    message = {"role": "assistant", "content": '{"query": "high tide"}'}
    body = {
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 41, "completion_tokens": 9},
    }
    line = {"id": "batch_req_1", "custom_id": key, "error": None}
    line["response"] = {"status_code": 200, "request_id": "r", "body": body}

    answers = add_answers(
        ReplyFolder(tmp_path / "replies"), write_answers(tmp_path, line), "", "2026-01-31"
    )

    assert (answers.recorded, answers.known, answers.problems) == (1, 0, ())
    reply = complete(completer(tmp_path, "fail"), request())
    assert (reply.text, reply.model) == ('{"query": "high tide"}', "gpt-4o-mini-2024-07-18")
    assert (reply.prompt_tokens, reply.completion_tokens) == (41, 9)
    assert not (tmp_path / "replies/open.jsonl").exists()


def test_answers_of_a_person_may_name_a_request_by_the_beginning_of_its_key(tmp_path):
    texts = ["When is high tide?", "When is low tide?", "How deep is it?"]
    high, low, deep = open_requests(tmp_path, *texts)
    file = write_answers(
        tmp_path,
        {"custom_id": high[:12], "reply": {"query": "high tide"}},
        {"custom_id": low, "text": "plain words"},
        {"custom_id": "0" * 12, "text": "of no request"},
        {"custom_id": deep[:4], "text": "too short a name"},
        {"custom_id": deep},
        "no JSON",
    )

    folder = ReplyFolder(tmp_path / "replies")
    answers = add_answers(folder, file, "Ada, by hand", "2026-01-31")

    assert (answers.recorded, len(answers.problems)) == (2, 4)
    assert f"{file}:3: 0 requests have the custom_id" in answers.problems[0]
    assert [reply.text for reply in folder.replies() if reply.key == high] == [
        '{"query": "high tide"}'
    ]
    assert {reply.author for reply in folder.replies()} == {"Ada, by hand"}
    assert all(reply.prompt_tokens > 5 for reply in folder.replies())
    assert list(folder.open_requests()) == [deep]
    assert add_answers(folder, file, "Ada, by hand", "2026-01-31").known == 2


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"response": {"status_code": 429, "body": {"error": {"code": "busy"}}}}, "stays open"),
        ({"response": None, "error": {"code": "expired"}}, "expired"),
        ({"text": "who wrote this?"}, "--author"),
    ],
)
def test_an_answer_that_cannot_be_used_leaves_its_request_open(tmp_path, line, problem):
    [key] = open_requests(tmp_path, "When is high tide?")

    folder = ReplyFolder(tmp_path / "replies")
    answers = add_answers(
        folder, write_answers(tmp_path, {"custom_id": key, **line}), "", "2026-01-31"
    )

    assert answers.recorded == 0
    assert problem in answers.problems[0]
    assert list(folder.open_requests()) == [key]


def test_a_line_that_a_kill_cut_off_costs_one_reply_and_no_other(tmp_path):
    model = Model()
    complete(completer(tmp_path, "ask", model), request("one"))
    file = tmp_path / "replies/recorded.jsonl"
    with file.open("a") as stream:
        stream.write('{"key": "0123", "text": "cut o')
    complete(completer(tmp_path, "ask", model), request("two"))

    for text in ("one", "two"):
        assert complete(completer(tmp_path, "fail"), request(text)).text == text.upper()
    assert len(model.asked) == 2


def test_threads_may_share_a_folder(tmp_path):
    shared = completer(tmp_path, "ask", Model())
    texts = [f"request {number}" for number in range(40)]
    threads = [threading.Thread(target=complete, args=(shared, request(text))) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ReplyFolder(tmp_path / "replies").replies()) == 40


def test_a_reply_that_holds_a_key_is_kept_without_it(tmp_path):
    [key] = open_requests(tmp_path, "When is high tide?")
    secret = "sk-proj-" + "aB3dE5fG7hJ9kL1mN3pQ" * 2
    file = write_answers(tmp_path, {"custom_id": key, "text": f"use {secret}"})

    add_answers(ReplyFolder(tmp_path / "replies"), file, "Ada", "2026-01-31")

    assert secret not in (tmp_path / "replies/recorded.jsonl").read_text()


@pytest.mark.parametrize(
    ("folder", "missing", "message"),
    [(None, "write", "needs a folder"), ("replies", "guess", "expected one of")],
)
def test_options_without_sense_are_refused(tmp_path, folder, missing, message):
    with pytest.raises(ConfigurationError, match=message):
        recorded_completer("m", folder and tmp_path / folder, missing, Model)


def test_the_model_is_not_made_where_it_may_not_be_asked(tmp_path):
    def make():
        raise AssertionError("LiteLLM would be loaded")

    assert recorded_completer("m", tmp_path / "replies", "fail", make).name == "m"


@pytest.mark.parametrize("content", ["[1, 2]\n", '{"key": "k"}\n'])
def test_a_folder_that_holds_something_else_is_named(tmp_path, content):
    folder = tmp_path / "replies"
    folder.mkdir()
    (folder / "notes.jsonl").write_text(content)
    if content.startswith("["):
        assert ReplyFolder(folder).replies() == []
    else:
        with pytest.raises(ConfigurationError, match=r"notes\.jsonl holds a line"):
            ReplyFolder(folder)
