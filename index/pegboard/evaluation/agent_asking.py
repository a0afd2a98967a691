"""How an agent is asked for tool calls, and how its reply is read.

Two ways: by the API's own tool calling (`native`), or, for models without it, with the tools as
JSON in the prompt and the calls as JSON in the reply (`prompt`). The first is what an agent does;
what the second measures is the model, not its API."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from pegboard.canonical import digest
from pegboard.evaluation.agent_tools import Offered
from pegboard.evaluation.golden import GoldenQuery
from pegboard.llm import ChatRequest, Message, ToolCall
from pegboard.llm.prompts import Prompt, PromptFormat, fenced, load_prompts
from pegboard.llm.replies import json_objects

Calling = Literal["native", "prompt"]
CALLINGS: tuple[Calling, ...] = ("native", "prompt")
PROMPTS = Path(__file__).parent / "prompts"
MAX_TOKENS = 1024
"""Of a reply: six calls take a third of that; models that think aloud first need more."""

_FORMAT = PromptFormat(values=("request", "history", "tools"), required=("request",))
_FORMATS = {"native-calls": _FORMAT, "written-calls": _FORMAT}
_CALLS_SCHEMA = "calls"


@dataclass(frozen=True, slots=True)
class Manner:
    """How every query of a run is asked.

    Attributes:
        tool_choice: whether the model has to call a tool, where it is asked by the API's own tool
            calling.
        max_tokens: the most tokens of a reply.
        temperature: None leaves it to the model.
    """

    calling: Calling = "native"
    tool_choice: Literal["auto", "required"] = "auto"
    max_tokens: int = MAX_TOKENS
    temperature: float | None = 0.0


PROBE = ChatRequest(
    messages=(Message("user", "Call the tool `say` with the text 'hello'."),),
    max_tokens=256,
    temperature=0.0,
    tools=(
        {
            "type": "function",
            "function": {
                "name": "say",
                "description": "Says a text aloud.",
                "parameters": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                },
            },
        },
    ),
    tool_choice="required",
)
"""Tells whether a model calls tools at all: some servers pass over the tools of a request in
silence.
"""


def agent_request(query: GoldenQuery, offered: Offered, manner: Manner) -> ChatRequest:
    """The question to the agent: the query after its conversation, with the tools."""
    if manner.calling == "native":
        history = [Message(cast("Any", one["role"]), one["content"]) for one in query.history]
        return ChatRequest(
            messages=(
                _prompt("native").messages()[0],
                *history,
                Message("user", query.query),
            ),
            max_tokens=manner.max_tokens,
            temperature=manner.temperature,
            tools=offered.tools,
            tool_choice=manner.tool_choice,
        )
    shown = [tool["function"] for tool in offered.tools]
    request = _prompt("prompt").request(
        _schema(list(offered.ids)),
        request=fenced("request", query.query),
        tools=fenced("tools", shown),
        history=fenced("conversation", [dict(one) for one in query.history])
        if query.history
        else "",
    )
    return replace(
        request,
        max_tokens=manner.max_tokens,
        temperature=manner.temperature,
        schema_name=_CALLS_SCHEMA,
    )


def key_of(model: str, request: ChatRequest) -> str:
    """What a reply is known by: model, prompt and its version, tools, parameters. The same question
    is paid for once.
    """
    calling: Calling = "native" if request.tools else "prompt"
    return digest(
        model,
        _prompt(calling).version,
        [[message.role, message.content] for message in request.messages],
        list(request.tools),
        request.tool_choice,
        request.schema,
        request.max_tokens,
        request.temperature,
    )


def calls_of(text: str, calls: Sequence[ToolCall], calling: Calling) -> tuple[ToolCall, ...] | None:
    """The calls of a reply, possibly none; None if they were to be written as JSON and there is
    none of that form.
    """
    if calling == "native":
        return tuple(calls)
    written = _written(text)
    return None if written is None else tuple(_call(one) for one in written)


@lru_cache(maxsize=2)
def _prompt(calling: Calling) -> Prompt:
    name = "native-calls" if calling == "native" else "written-calls"
    return load_prompts(PROMPTS, _FORMATS, names=[name])[name]


def _schema(names: Sequence[str]) -> dict[str, Any]:
    """Arguments are pairs of texts: strict modes take no object whose fields they do not know."""
    text = {"type": "string"}
    argument = _object({"name": text, "value": text})
    call = _object(
        {"tool": text | {"enum": list(names)}, "arguments": {"type": "array", "items": argument}}
    )
    return _object({"calls": {"type": "array", "items": call}})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _written(text: str) -> list[Any] | None:
    """Return the list `calls` of the first JSON object that has one."""
    return next(
        (found["calls"] for found in json_objects(text) if isinstance(found.get("calls"), list)),
        None,
    )


def _call(written: Any) -> ToolCall:
    if not isinstance(written, dict):
        return ToolCall("", json.dumps(written))
    said = cast("dict[str, Any]", written)
    arguments = said.get("arguments", {})
    if isinstance(arguments, str):
        return ToolCall(str(said.get("tool", "")), arguments)
    pairs = cast("list[Any]", arguments) if isinstance(arguments, list) else []
    if pairs or arguments == []:
        readable = all(isinstance(one, dict) and "name" in one for one in pairs)
        named = {str(one["name"]): _value(one.get("value")) for one in pairs} if readable else pairs
        return ToolCall(str(said.get("tool", "")), json.dumps(named))
    return ToolCall(str(said.get("tool", "")), json.dumps(arguments))


def _value(written: Any) -> Any:
    """The value of a pair; lists and objects can only be written as the text of their JSON
    there.
    """
    if isinstance(written, str) and written.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(written)
        except (ValueError, RecursionError):
            return written
    return written
