"""Requests and replies in the format of OpenAI's chat protocol."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pegboard.llm import ChatRequest, ToolCall


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a reply; token counts are None where the server did not count."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    calls: tuple[ToolCall, ...] = ()


def chat_arguments(request: ChatRequest) -> dict[str, Any]:
    """Return the arguments of LiteLLM's `completion`; it drops those a provider does not take."""
    arguments: dict[str, Any] = {
        "messages": [
            {"role": message.role, "content": message.content} for message in request.messages
        ],
        "max_tokens": request.max_tokens,
        "drop_params": True,
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if request.schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.tools:
        arguments["tools"] = [dict(tool) for tool in request.tools]
        if request.tool_choice is not None:
            arguments["tool_choice"] = request.tool_choice
    return arguments


def prompt_text(request: ChatRequest) -> str:
    """Return the text of all messages and of the tools as JSON, for counting."""
    tools = [json.dumps(tool, ensure_ascii=False) for tool in request.tools]
    return "\n\n".join([*(message.content for message in request.messages), *tools])


def read_answer(reply: Any, *, tools: bool = False) -> Answer | None:
    """Return the content of a reply in OpenAI's format; None if it holds no message.

    Args:
        tools: whether the request offered tools. Where it did not, a call is the text of the reply.
    """
    choices: Any = getattr(reply, "choices", None)
    message = (
        getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    )
    if message is None:
        return None
    content = getattr(message, "content", None)
    text = content if isinstance(content, str) else ""
    reason = str(getattr(choices[0], "finish_reason", None) or "stop")
    calls: Any = getattr(message, "tool_calls", None)
    tool_calls = tuple(_calls(calls)) if tools else ()
    if (
        not text and calls and not tools
    ):  # some providers answer a schema by a call of a tool with that schema
        text = str(getattr(calls[0].function, "arguments", None) or "")
        reason = "stop" if reason in ("tool_calls", "function_call") else reason
    usage = getattr(reply, "usage", None)
    return Answer(
        text, reason, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), tool_calls
    )


def _calls(calls: Any) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        function: Any = getattr(call, "function", None)
        arguments: Any = getattr(function, "arguments", None)
        # Some servers give the arguments as an object instead of its text.
        text = (
            arguments
            if isinstance(arguments, str)
            else ""
            if arguments is None
            else json.dumps(arguments)
        )
        yield ToolCall(str(getattr(function, "name", None) or ""), text)


def _count(usage: Any, field: str) -> int | None:
    count = getattr(usage, field, None)
    return count if isinstance(count, int) and count > 0 else None
