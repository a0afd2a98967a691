"""Reads answers to open requests into a folder of recorded replies.

    {"custom_id": KEY, "response": {"status_code": 200, "body": {"choices": [...], "usage": {...}}}}
    {"custom_id": KEY, "reply": {"steps": ["...", "..."]}}
    {"custom_id": KEY, "text": "..."}

The first form is what OpenAI's batch API returns, the others are for people and programs. A key may
be the beginning of one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pegboard.llm.recorded import (
    NEW_FILE,
    OPEN_FILE,
    RecordedReply,
    ReplyFolder,
    numbered_lines,
)
from pegboard.text.redaction import redact_credentials
from pegboard.tokens import estimate_tokens

MIN_KEY_DIGITS = 8
"""Fewest digits by which an answer may name its request."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of a file of answers.

    Attributes:
        recorded: how many replies were added.
        known: how many answers were there already.
        problems: why other lines were left out, each with its place.
    """

    recorded: int
    known: int
    problems: tuple[str, ...]


def add_answers(
    folder: ReplyFolder, file: Path, author: str, date: str, into: str = NEW_FILE
) -> Answers:
    """Record the answers of a file; its forms are those of this module's description.

    Args:
        author: who wrote answers that name no model.
        date: when, as year-month-day.
        into: the file of the folder that gets them.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    open_requests = folder.open_requests()
    replies: dict[str, RecordedReply] = {}
    problems: list[str] = []
    known = 0
    for number, line in numbered_lines(file):
        place = f"{file}:{number}"
        try:
            answer = _answer(line)
            key = _full_key(str(answer.get("custom_id", "")), open_requests, folder)
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if key not in open_requests:
            known += 1
            continue
        body = cast("Mapping[str, Any]", open_requests[key]["body"])
        try:
            replies[key] = _read_answer(key, answer, body, author, date)
        except ValueError as error:
            problems.append(f"{place}: {error}")
    folder.add(replies.values(), into)
    folder.keep_open()
    return Answers(len(replies), known, tuple(problems))


def _answer(line: str) -> Mapping[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object with custom_id and a response, reply or text")
    return cast("Mapping[str, Any]", value)


def _full_key(name: str, open_requests: Mapping[str, Any], folder: ReplyFolder) -> str:
    """Return the key that an answer names in full or by its beginning."""
    if name in open_requests or folder.find(name) is not None:
        return name
    if len(name) < MIN_KEY_DIGITS:
        raise ValueError(f"custom_id is {name!r}, expected that of a request in {OPEN_FILE}")
    keys = [*open_requests, *(reply.key for reply in folder.replies())]
    matches = [key for key in keys if key.startswith(name)]
    if len(matches) != 1:
        raise ValueError(f"{len(matches)} requests have the custom_id {name!r}, expected one")
    return matches[0]


def _read_answer(
    key: str, answer: Mapping[str, Any], body: Mapping[str, Any], author: str, date: str
) -> RecordedReply:
    """Return the reply of an answer; raises ValueError if it has none."""
    written = RecordedReply(key=key, text="", author=author, date=date)
    if "response" in answer or "error" in answer:
        return _read_batch_answer(written, answer)
    if "reply" in answer:
        text = json.dumps(answer["reply"], ensure_ascii=False)
    elif isinstance(answer.get("text"), str):
        text = str(answer["text"])
    else:
        raise ValueError("it has no response, reply or text")
    if not author:
        raise ValueError("it names no model: say who wrote it (--author)")
    prompt = "\n\n".join(message["content"] for message in body["messages"])
    tools = json.dumps(body["tools"], ensure_ascii=False) if "tools" in body else ""
    return replace(
        written,
        text=redact_credentials(text),
        prompt_tokens=round(estimate_tokens(prompt + tools)),
        completion_tokens=round(estimate_tokens(text)),
    )


def _read_batch_answer(written: RecordedReply, answer: Mapping[str, Any]) -> RecordedReply:
    response = _mapping(answer.get("response"))
    body = _mapping(response.get("body"))
    choices: Any = body.get("choices")
    if response.get("status_code", 200) != 200 or not choices:
        reason = answer.get("error") or body.get("error") or response.get("status_code")
        raise ValueError(f"the request failed and stays open: {json.dumps(reason):.200}")
    author = str(body.get("model") or written.author)
    if not author:
        raise ValueError("it names no model: say which one answered (--author)")
    message = _mapping(choices[0].get("message"))
    usage = _mapping(body.get("usage"))
    calls = [_mapping(call.get("function")) for call in message.get("tool_calls") or ()]
    return replace(
        written,
        text=redact_credentials(message.get("content") or ""),
        author=author,
        finish_reason=str(choices[0].get("finish_reason") or "stop"),
        calls=tuple((str(call.get("name")), str(call.get("arguments"))) for call in calls),
        prompt_tokens=int(usage.get("prompt_tokens", 0)),
        completion_tokens=int(usage.get("completion_tokens", 0)),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
