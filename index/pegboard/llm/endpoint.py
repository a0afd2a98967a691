"""A model at an address, through LiteLLM: its provider, key, price and failures.

Keys are read from the environment at each call and never kept. **An `api_base` is sent no key but
the one that `api_key_env` names:** LiteLLM by itself would send OPENAI_API_KEY to any address.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast

from pegboard.errors import CompletionError, ConfigurationError, EncoderError
from pegboard.extras import import_extra
from pegboard.llm.failures import NEXT_STEPS, failure_kind, may_pass, retry_after
from pegboard.text.redaction import redact_line

_Result = TypeVar("_Result")

# The OpenAI client refuses to work without a key; servers that need none ignore it.
_NO_KEY = "none"

# The HTTP client's timeout is for each read: a server that sends a byte now and then never meets
# it.
_GRACE_SECONDS = 2


class Endpoint:
    """A model at an address.

    Args:
        name: the model as LiteLLM names it, such as `openai/gpt-4o-mini`.
        api_base: the address of the server, where it is not the provider's own. No key is sent
            there but that of `api_key_env`.
        api_key_env: the environment variable that holds the key, where it is not the provider's
            usual one.
        timeout: seconds that a call may take.
        price: USD for a million tokens of prompt and of reply, where LiteLLM does not know it.
        kind: what answers there, for error messages.

    Raises:
        ConfigurationError: LiteLLM knows no provider of that name, the name is an address, or an
            option has no such value.
        EncoderError: the same of an encoder's name.
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
        kind: Literal["model", "encoder"] = "model",
    ) -> None:
        place = f"{kind.capitalize()} {name!r}"
        if type(timeout) not in (int, float) or not timeout > 0:
            raise ConfigurationError(f"{place}: timeout = {timeout!r}. Give seconds, more than 0.")
        if "://" in name:  # LiteLLM would call that address, with the provider's usual key
            raise ConfigurationError(
                f"{place} is an address. Give it as api_base, with the name of a model."
            )
        try:
            self.litellm = import_litellm()
        except EncoderError as error:
            raise CompletionError(f"{name}: {error}", kind="package") from None
        self.name = name
        self.timeout = timeout
        self.price = price
        self.api_base = api_base
        self._api_key_env = api_key_env
        self.model, self.provider = self._resolve(kind)

    def __str__(self) -> str:
        return f"{self.name} at {self.scrubbed(self.api_base)}" if self.api_base else self.name

    def price_per_token(self) -> tuple[float, float] | None:
        """Return USD for a token of prompt and of reply; None if the price is unknown."""
        if self.price is not None:
            return self.price[0] / 1_000_000, self.price[1] / 1_000_000
        entry = self._price_entry()
        prompt, reply = (entry.get(f"{side}_cost_per_token") for side in ("input", "output"))
        return None if prompt is None or reply is None else (float(prompt), float(reply))

    async def guarded(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return the result of a call, made once.

        Raises:
            CompletionError: it failed, or took longer than the timeout.
        """
        try:
            async with asyncio.timeout(self.timeout + _GRACE_SECONDS):
                return await work()
        except TimeoutError:
            failure = self.error("did not finish its answer", "timeout", may_pass=True)
        except CompletionError:
            raise
        except Exception as error:  # the vendor's tree, and what the clients beneath it let through
            failure = self.failure(error)
        # Raised outside the handler: a vendor's exception may quote the key, so it must not ride
        # along as the context.
        raise failure

    def address(self) -> dict[str, str]:
        """Return the address and the key, read from the environment, as arguments of LiteLLM.

        Raises:
            CompletionError: the variable that `api_key_env` names is not set.
        """
        values = {} if self.api_base is None else {"api_base": self.api_base, "api_key": _NO_KEY}
        if self._api_key_env is not None:
            if not (key := os.environ.get(self._api_key_env)):
                raise self.error("was not called: no key", "key")
            values["api_key"] = key
        return values

    def missing_key(self) -> str | None:
        """Return the environment variable that a call needs and that is not set, if known."""
        if self._api_key_env is not None:
            return None if os.environ.get(self._api_key_env) else self._api_key_env
        if self.api_base is not None:
            return None
        missing: list[str] = self.litellm.validate_environment(self.name).get("missing_keys", [])
        return " and ".join(missing) or None

    def failure(self, error: Exception, problem: str = "did not answer") -> CompletionError:
        """Return the error that replaces a vendor's."""
        kind = failure_kind(error)
        status: Any = getattr(error, "status_code", None)
        seconds = retry_after(error)
        wait = f" (the server asks to wait {seconds:.0f} s)" if seconds is not None else ""
        # LiteLLM quotes its own traceback.
        message = self.scrubbed(str(error).partition("Traceback (most recent call last)")[0])
        return self.error(
            f"{problem}: {message.rstrip('.')}{wait}",
            kind,
            may_pass=may_pass(error) or kind == "reply",
            retry_after=seconds,
            status=status if isinstance(status, int) else None,
        )

    def error(self, problem: str, kind: str, **details: Any) -> CompletionError:
        """Return an error with model, address, problem and next step."""
        key = self._key_advice() if kind == "key" else ""
        step = NEXT_STEPS[kind].format(key=key, timeout=self.timeout)
        return CompletionError(f"{self} {problem}. {step}", kind=kind, **details)

    async def aclose(self) -> None:
        """Close all connections that LiteLLM keeps open for the running event loop."""
        await _finish_logging()
        cache = self.litellm.in_memory_llm_clients_cache
        mark = cache.update_cache_key_with_event_loop("")  # how LiteLLM tells the loops apart
        for key in [key for key in cache.cache_dict if str(key).endswith(mark)]:
            client = cache.cache_dict[key]
            cache.delete_cache(key)
            if close := getattr(client, "close", None) or getattr(client, "aclose", None):
                await close()

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text by OpenAI's cl100k: an estimate for other models."""
        # No model name: that always picks the tokenizer LiteLLM brings along; for some names it
        # would fetch another from a hub.
        return len(self.litellm.encode(model="", text=text))

    def scrubbed(self, text: str) -> str:
        """Return the text on one line, without keys."""
        return redact_line(text, variables=(self._api_key_env,))

    def _key_advice(self) -> str:
        if self._api_key_env is not None:
            return (
                f"Set the environment variable {self._api_key_env}, named by api_key_env, to a "
                f"key that may use this model."
            )
        if self.api_base is not None:
            return (
                "Name the environment variable that holds its key as api_key_env: to an "
                "api_base no other key is sent."
            )
        variable = self.missing_key() or f"{self.provider.upper()}_API_KEY"
        return f"Set the environment variable {variable} to a key that may use this model."

    def _price_entry(self) -> dict[str, Any]:
        # Read from the list itself: LiteLLM's own functions answer 0 for a model that they only
        # recognise by family (`openai/gpt-5-unheard-of`), and ask a local server for others.
        prices = self.litellm.model_cost
        for key in (self.name, f"{self.provider}/{self.model}"):
            if key in prices:
                return prices[key]
        entry = prices.get(self.model) or {}
        # A bare name may be another provider's: openai/claude-... may be anyone's server.
        return entry if str(entry.get("litellm_provider", "")).startswith(self.provider) else {}

    def _resolve(self, kind: str) -> tuple[str, str]:
        try:
            model, provider, *_ = self.litellm.get_llm_provider(self.name, api_base=self.api_base)
        # BadRequestError for an unknown provider; some providers sign in here and raise their own
        except Exception:
            model = provider = None
        if provider:
            return str(model), str(provider)
        unknown = f"LiteLLM knows no provider for {self.name!r}. Write provider/model, such as"
        own_server = "for a server of your own openai/NAME with api_base"
        if kind == "model":
            raise ConfigurationError(
                f"{unknown} openai/gpt-4o-mini or ollama/llama3; {own_server}."
            )
        raise EncoderError(
            f"{unknown} openai/text-embedding-3-small; {own_server}. What runs here is called "
            "local/..., fastembed/..., hashing/256 or by an installed plug-in's name."
        )


def import_litellm() -> Any:
    """Return LiteLLM, quiet and off the network; raises EncoderError if it is not installed."""
    # Read at import: without it every start fetches a price list from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = import_extra("litellm")
    litellm.suppress_debug_info = True  # it prints advice on stdout with every error
    return litellm


async def _finish_logging() -> None:
    # LiteLLM logs each reply in a task of its own; left behind, it warns at the next event loop.
    # LiteLLM has no public API to wait for it.
    with contextlib.suppress(ImportError, AttributeError, TimeoutError):
        from litellm.litellm_core_utils import logging_worker

        await asyncio.sleep(0)
        async with asyncio.timeout(2):
            await cast("Any", logging_worker).GLOBAL_LOGGING_WORKER.flush()
