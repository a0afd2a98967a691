"""LLMs through LiteLLM: OpenAI, Anthropic, Azure, Ollama, any OpenAI-compatible server.

One call is one attempt: LiteLLM and the clients beneath it are told not to retry. For a server of
one's own, LiteLLM's provider `hosted_vllm/NAME` costs less CPU per call than `openai/NAME`, since
it goes without the OpenAI client."""

import time
from collections.abc import Awaitable
from typing import Any

from pegboard.llm import ChatReply, ChatRequest
from pegboard.llm.chat_format import chat_arguments, prompt_text, read_answer
from pegboard.llm.endpoint import Endpoint


class HostedCompleter:
    """An LLM through LiteLLM.

    LiteLLM keeps its connections for each event loop, and `aclose` closes those of the running one.
    Keys are read from the environment at each call.

    Args:
        name: the model as LiteLLM names it, such as `openai/gpt-4o-mini`.
        api_base: the address of the server, where it is not the provider's own. No key is sent
            there but that of `api_key_env`.
        api_key_env: the environment variable that holds the key, where it is not the provider's
            usual one.
        timeout: seconds to wait for a reply.
        price: USD for a million tokens of prompt and of reply, where LiteLLM does not know it.

    Raises:
        ConfigurationError: LiteLLM knows no such provider, or an option has no such value.
        CompletionError: LiteLLM is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key_env: str | None = None,
        timeout: float = 60.0,
        price: tuple[float, float] | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            name, api_base=api_base, api_key_env=api_key_env, timeout=timeout, price=price
        )
        self.name = name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; call once.

        Raises:
            CompletionError: the LLM did not answer, refused, or sent an invalid reply.
        """
        began = time.monotonic()
        reply: Any = await self._endpoint.guarded(lambda: self._ask(request))
        return self._read(request, reply, time.monotonic() - began)

    def price_per_token(self) -> tuple[float, float] | None:
        """Return USD for a token of prompt and of reply; None if the price is unknown."""
        return self._endpoint.price_per_token()

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text by OpenAI's cl100k: an estimate for other models."""
        return self._endpoint.count_tokens(text)

    def missing_key(self) -> str | None:
        """Return the environment variable that a call needs and that is not set, if any."""
        return self._endpoint.missing_key()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, after the last call."""
        await self._endpoint.close()

    def _ask(self, request: ChatRequest) -> Awaitable[Any]:
        prompt_text(
            request
            # no request carries a lone surrogate; LiteLLM would take it for a server's failure
        ).encode()
        endpoint = self._endpoint
        arguments = chat_arguments(request) | {"model": self.name, "timeout": endpoint.timeout}
        arguments |= endpoint.address()
        return endpoint.litellm.acompletion(**arguments, num_retries=0, max_retries=0)

    def _read(self, request: ChatRequest, reply: Any, seconds: float) -> ChatReply:
        answer = read_answer(reply, tools=bool(request.tools))
        if answer is None:
            raise self._endpoint.error(
                "answered, but its reply holds no message", "reply", may_pass=True
            )
        counted = answer.prompt_tokens is not None
        prompt = answer.prompt_tokens or self.count_tokens(prompt_text(request))
        reply_text = answer.text + "".join(call.name + call.arguments for call in answer.calls)
        completion = answer.completion_tokens or self.count_tokens(reply_text)
        return ChatReply(
            text=answer.text,
            finish_reason=answer.finish_reason,
            model=self.name,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=self._cost(reply if counted else None, prompt, completion),
            seconds=seconds,
            calls=answer.calls,
            counted=counted,
        )

    def _cost(self, reply: Any, prompt: int, completion: int) -> float | None:
        if (price := self.price_per_token()) is None:
            return None
        # LiteLLM's own sum knows of discounts for cached prompts and of prices that rise with the
        # length.
        listed = (
            getattr(reply, "_hidden_params", {}).get("response_cost")
            if self._endpoint.price is None
            else None
        )
        return listed if listed is not None else prompt * price[0] + completion * price[1]
