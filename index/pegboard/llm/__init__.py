"""Requests to an LLM, its replies, and the protocol of a completer.

    openai/gpt-4o-mini      any LiteLLM model, hosted elsewhere        extra `litellm`

A completer is anything with the members of `Completer`; a stub of ten lines is a valid one. It
calls once: `llm.client` adds budget, pacing and retries. This module imports no LiteLLM."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["ChatReply", "ChatRequest", "Completer", "Message", "ToolCall", "openai_fields"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request to an LLM.

    Attributes:
        messages: the conversation so far; the last message is the user's.
        max_tokens: the most tokens of the reply.
        temperature: None leaves it to the model; some models take no other.
        schema: the JSON Schema of the reply; None asks for plain text. Not every server obeys it.
        schema_name: a name for the schema, as some servers want one: letters, digits and _.
        tools: what the model may call, as OpenAI's tools. A server without tools may ignore them
            silently.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    schema_name: str = "reply"
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model asks for; the text of its arguments need not be JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A raw, unchecked reply.

    Attributes:
        text: the reply's text; may be empty.
        finish_reason: `stop`, `length` (cut off at max_tokens) or `content_filter`.
        model: the completer that answered, by the name that it was configured with.
        prompt_tokens: as the server counted them, or an estimate if it did not.
        completion_tokens: likewise.
        cost_usd: None if the model's price is unknown.
        seconds: from the request to the reply.
        calls: the tool calls, in order, where the request offered tools.
    """

    text: str
    finish_reason: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float
    calls: tuple[ToolCall, ...] = ()


class Completer(Protocol):
    """Answers one request with one call.

    Attributes:
        name: the model as it was configured, such as `openai/gpt-4o-mini`.
    """

    name: str

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; call once.

        Raises:
            CompletionError: the LLM did not answer, or refused; `may_pass` says whether a retry may
                help.
        """
        ...


def openai_fields(request: ChatRequest) -> dict[str, Any]:
    """Return a request as the fields of OpenAI's chat completions, without its limit of tokens."""
    fields: dict[str, Any] = {
        "messages": [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
    }
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    if request.schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.tools:
        fields["tools"] = [dict(tool) for tool in request.tools]
    return fields
