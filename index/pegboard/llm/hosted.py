"""LLMs through LiteLLM: OpenAI, Anthropic, Azure, Ollama, any OpenAI-compatible server.

One call is one attempt: LiteLLM and the clients beneath it are told not to retry. For a server of
one's own, LiteLLM's provider `hosted_vllm/NAME` costs less CPU per call than `openai/NAME`, since
it goes without the OpenAI client.
"""

import json
import time
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

from pegboard.errors import CompletionError
from pegboard.llm import ChatReply, ChatRequest, ToolCall, openai_fields
from pegboard.llm.endpoint import Endpoint
from pegboard.llm.options import check_options, resolve_options

MAX_CHARACTERS_PER_TOKEN = 100
"""A server that ignores the limit of a reply is cut off by it: no token of a known vocabulary has
more characters on average, and every check of a reply reads it whole."""


class HostedCompleter(Endpoint):
    """An LLM through LiteLLM: an `Endpoint`, with its arguments and errors.

    LiteLLM keeps its connections for each event loop, and `aclose` closes those of the running one.
    Keys are read from the environment at each call.

    Some models take `max_completion_tokens` and refuse `max_tokens`, and LiteLLM knows only a few
    of them by name. A model that says so is called again with the other limit, and from then on
    only with that one.

    Args:
        name: the model, as for `Endpoint`.
        options: further arguments of LiteLLM's `completion`; see `pegboard.llm.options`.
        endpoint: the other arguments of `Endpoint`.

    Raises:
        ConfigurationError: as `Endpoint` does, or an option is reserved.
        CompletionError: LiteLLM is not installed.
    """

    def __init__(
        self, name: str, *, options: Mapping[str, Any] | None = None, **endpoint: Any
    ) -> None:
        super().__init__(name, **endpoint)
        self._options = check_options(name, options or {})
        self._reply_limit = "max_tokens"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; call once.

        Raises:
            CompletionError: the LLM did not answer, refused, or sent an invalid reply.
        """
        began = time.monotonic()
        limit = self._reply_limit
        try:
            reply: Any = await self.guarded(lambda: self._ask(request, limit))
        except CompletionError as error:
            if error.kind != "completion_tokens" or limit != "max_tokens":
                raise
            self._reply_limit = "max_completion_tokens"
            reply = await self.guarded(lambda: self._ask(request, self._reply_limit))
        return self._read(request, reply, time.monotonic() - began)

    def _ask(self, request: ChatRequest, limit: str) -> Awaitable[Any]:
        # No request carries a lone surrogate; LiteLLM would take it for a server's failure.
        prompt_text(request).encode()
        arguments = openai_fields(request) | {"model": self.name, "timeout": self.timeout}
        # Parameters that a provider does not take are dropped.
        arguments["drop_params"] = True
        arguments |= self._resolved_options()
        if limit == "max_tokens":
            arguments["max_tokens"] = request.max_tokens
        else:
            # Not as an argument: LiteLLM renames it to max_tokens again for some providers.
            body: Any = arguments.get("extra_body", {})
            arguments["extra_body"] = {**body, limit: request.max_tokens}
        arguments |= self.address()
        return self.litellm.acompletion(**arguments, num_retries=0, max_retries=0)

    def _resolved_options(self) -> dict[str, Any]:
        try:
            return resolve_options(self._options)
        except ValueError as error:
            raise self.error(f"was not called: options: {error}", "variable") from None

    def _read(self, request: ChatRequest, reply: Any, seconds: float) -> ChatReply:
        choices: Any = getattr(reply, "choices", None)
        message = (
            getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
        )
        if message is None:
            raise self.error("answered, but its reply holds no message", "reply", may_pass=True)
        content = getattr(message, "content", None)
        called = getattr(message, "tool_calls", None)
        text = content if isinstance(content, str) else ""
        reason = str(getattr(choices[0], "finish_reason", None) or "stop")
        calls = tuple(_calls(called)) if request.tools else ()
        # Some providers answer a schema by a call of a tool with that schema.
        if not text and called and not request.tools:
            text = str(getattr(called[0].function, "arguments", None) or "")
            reason = "stop" if reason in ("tool_calls", "function_call") else reason
        longest = request.max_tokens * MAX_CHARACTERS_PER_TOKEN
        if len(text) + sum(len(call.name) + len(call.arguments) for call in calls) > longest:
            text, calls, reason = text[:longest], (), "length"
        counted = _count(reply, "prompt_tokens")
        prompt = counted or self.count_tokens(prompt_text(request))
        completion = _count(reply, "completion_tokens") or self.count_tokens(
            text + "".join(call.name + call.arguments for call in calls)
        )
        return ChatReply(
            text=text,
            finish_reason=reason,
            model=self.name,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=self._cost(reply if counted else None, prompt, completion),
            seconds=seconds,
            calls=calls,
        )

    def _cost(self, reply: Any, prompt: int, completion: int) -> float | None:
        if (price := self.price_per_token()) is None:
            return None
        # LiteLLM's own sum knows of discounts for cached prompts and of prices that rise with the
        # length.
        hidden = {} if self.price else getattr(reply, "_hidden_params", {})
        listed = hidden.get("response_cost")
        return listed if listed is not None else prompt * price[0] + completion * price[1]


def prompt_text(request: ChatRequest) -> str:
    """Return the text of all messages and of the tools as JSON, for counting."""
    tools = [json.dumps(tool, ensure_ascii=False) for tool in request.tools]
    return "\n\n".join([*(message.content for message in request.messages), *tools])


def _calls(calls: Any) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        function: Any = getattr(call, "function", None)
        arguments: Any = getattr(function, "arguments", None)
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments)  # as some servers give an object, not its text
        yield ToolCall(str(getattr(function, "name", None) or ""), arguments or "")


def _count(reply: Any, field: str) -> int | None:
    """The tokens that the server counted; None where it did not."""
    count = getattr(getattr(reply, "usage", None), field, None)
    return count if isinstance(count, int) and count > 0 else None
