"""The requests to an agent for tool calls, and the calls read from its replies.

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
class CallOptions:
    """How an agent is asked every query of a run.

    Attributes:
        calling: the API's own tool calling, or tools and calls as JSON in the texts.
        tool_choice: whether the model has to call a tool; native calling only.
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
"""Shows whether a model calls tools at all: some servers silently ignore the tools of a request."""


def agent_request(query: GoldenQuery, offered: Offered, options: CallOptions) -> ChatRequest:
    """The request to the agent: the query after its conversation, with the tools."""
    if options.calling == "native":
        history = [
            Message(cast("Any", message["role"]), message["content"]) for message in query.history
        ]
        return ChatRequest(
            messages=(
                _prompt("native").messages()[0],
                *history,
                Message("user", query.query),
            ),
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            tools=offered.tools,
            tool_choice=options.tool_choice,
        )
    request = _prompt("prompt").request(
        _schema(list(offered.ids)),
        request=fenced("request", query.query),
        tools=fenced("tools", [tool["function"] for tool in offered.tools]),
        history=fenced("conversation", list(map(dict, query.history))) if query.history else "",
    )
    return replace(
        request,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        schema_name=_CALLS_SCHEMA,
    )


def request_key(model: str, request: ChatRequest) -> str:
    """The key of a reply: a digest of model, prompt and its version, tools and parameters."""
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


def read_calls(
    text: str, calls: Sequence[ToolCall], calling: Calling
) -> tuple[ToolCall, ...] | None:
    """The calls of a reply, possibly none; None if they should be JSON in its text and are not."""
    if calling == "native":
        return tuple(calls)
    written = next(
        (value["calls"] for value in json_objects(text) if isinstance(value.get("calls"), list)),
        None,
    )
    return None if written is None else tuple(map(_call, written))


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


def _call(written: Any) -> ToolCall:
    if not isinstance(written, dict):
        return ToolCall("", json.dumps(written))
    call = cast("dict[str, Any]", written)
    name, arguments = str(call.get("tool", "")), call.get("arguments", {})
    if isinstance(arguments, str):
        return ToolCall(name, arguments)
    if isinstance(arguments, list):
        pairs = cast("list[Any]", arguments)
        if all(isinstance(pair, dict) and "name" in pair for pair in pairs):
            arguments = {str(pair["name"]): _value(pair.get("value")) for pair in pairs}
    return ToolCall(name, json.dumps(arguments))


def _value(written: Any) -> Any:
    """The value of a pair: a list or an object is the text of its JSON."""
    if isinstance(written, str) and written.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(written)
        except (ValueError, RecursionError):
            return written
    return written
