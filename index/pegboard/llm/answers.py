"""A request in the words of OpenAI's chat protocol, and what is read from a reply in them."""

from dataclasses import dataclass
from typing import Any

from pegboard.llm import ChatRequest

__all__ = ["Answer", "chat_arguments", "prompt_text", "read_answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reply says; token counts are None where the server did not count."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None


def chat_arguments(request: ChatRequest) -> dict[str, Any]:
    """The request as arguments of LiteLLM's `completion`; it drops those that a provider does not take."""
    arguments: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": request.max_tokens,
        "drop_params": True,
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if request.schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    return arguments


def prompt_text(request: ChatRequest) -> str:
    """The text of all messages, for counting."""
    return "\n\n".join(message.content for message in request.messages)


def read_answer(reply: Any) -> Answer | None:
    """What a reply in the form of OpenAI's objects says; None if it holds no message."""
    choices: Any = getattr(reply, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if message is None:
        return None
    content = getattr(message, "content", None)
    text = content if isinstance(content, str) else ""
    reason = str(getattr(choices[0], "finish_reason", None) or "stop")
    calls: Any = getattr(message, "tool_calls", None)
    if not text and calls:  # some providers answer a schema by a call of a tool with that schema
        text = str(getattr(calls[0].function, "arguments", None) or "")
        reason = "stop" if reason in ("tool_calls", "function_call") else reason
    usage = getattr(reply, "usage", None)
    return Answer(text, reason, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Any, field: str) -> int | None:
    count = getattr(usage, field, None)
    return count if isinstance(count, int) and count > 0 else None
