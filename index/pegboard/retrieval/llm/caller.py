"""LLM calls at request time: concurrent, bounded in time, and without exceptions.

    caller = open_caller("openai/gpt-4o-mini", {"timeout": 10})
    completions = await caller.ask([ChatRequest(...)])
    caller.close()

Threads and event loops may share a caller.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.event_loops import run_in_loop
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.recorded import recorded_completer
from pegboard.text.redaction import redact_line

TIMEOUT = 10.0
"""Default seconds for one question: a slower search is better answered without an LLM."""
CONCURRENCY = 8
"""Default number of concurrent questions: a request of six steps and two more."""

LOOP = "pegboard-llm"
_CLOSE_SECONDS = 5

_MODEL_OPTIONS = ("api_base", "api_key_env", "price", "timeout", "options")
_CALLER_OPTIONS = ("timeout", "concurrency")
_REPLY_OPTIONS = ("replies", "missing_replies", "budget_usd")
_RETRY_SECONDS = 0.2
_WHY_CHARACTERS = 300
_SHORT = {
    "key": "no key",
    "content": "refused",
    "rate": "too many requests",
    "quota": "no quota left",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The outcome of one question.

    Attributes:
        text: the reply; None if there is no usable one.
        prompt_tokens, completion_tokens: of the reply, usable or not; 0 if there was none.
        cost_usd: None if unknown: the model has no listed price, or the question was abandoned.
        why: why there is no text: timed out, cut off, refused, no key, what the server reported.
        timed_out: whether the time ran out.
        unrecorded: whether recorded replies hold none for the question, and the LLM may not be
            asked.
    """

    text: str | None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    why: str | None = None
    timed_out: bool = False
    unrecorded: bool = False


class LlmCaller:
    """Calls a completer from any thread or event loop.

    A completer belongs to one event loop, which all callers of a process share, in a daemon thread.

    Args:
        completer: called in that loop; one that blocks the loop delays every question and breaks
            the timeouts.
        timeout: seconds for each question, including its one retry, which is made if the error
            is transient and time is left.
        concurrency: the most concurrent questions.

    Attributes:
        exhausted: the error of the first question that did not fit into a budget, if there is one;
            later ones may not fit, either.

    Raises:
        ConfigurationError: an option has an invalid value.
    """

    def __init__(
        self, completer: Completer, *, timeout: float = TIMEOUT, concurrency: int = CONCURRENCY
    ) -> None:
        if type(timeout) not in (int, float) or not 0 < timeout < float("inf"):
            raise ConfigurationError(
                f"LLM {completer.name!r}: timeout is {timeout!r}, expected seconds, more than 0."
            )
        if type(concurrency) is not int or concurrency < 1:
            raise ConfigurationError(
                f"LLM {completer.name!r}: concurrency is {concurrency!r}, expected 1 or more."
            )
        self.name = completer.name
        self.timeout = timeout
        self.exhausted: BudgetExhausted | None = None
        self._completer = completer
        self._concurrency = concurrency
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    async def ask(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return the completions in order, asked concurrently; a failing LLM raises nothing.

        Call it from any event loop; cancelling cancels the calls.
        """
        return await asyncio.wrap_future(run_in_loop(LOOP, self._all(tuple(requests))))

    def price_per_token(self) -> tuple[float, float] | None:
        """Return USD for a token of prompt and of reply; None if unknown."""
        price: Callable[[], tuple[float, float] | None]
        price = getattr(self._completer, "price_per_token", lambda: None)
        return price()

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        close: Callable[[], Coroutine[Any, Any, None]] | None
        close = getattr(self._completer, "aclose", None)
        if close is not None and self._slots:
            with suppress(TimeoutError):
                run_in_loop(LOOP, close()).result(_CLOSE_SECONDS)

    async def _all(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        slots = asyncio.Semaphore(self._concurrency)
        slots = self._slots.setdefault(asyncio.get_running_loop(), slots)
        return list(await asyncio.gather(*(self._one(request, slots) for request in requests)))

    async def _one(self, request: ChatRequest, slots: asyncio.Semaphore) -> Completion:
        until = time.monotonic() + self.timeout
        try:
            async with asyncio.timeout(self.timeout), slots:
                return _read(await self._attempts(request, until), request)
        except TimeoutError:
            return _timed_out(self.timeout)
        except CompletionError as error:
            if isinstance(error, BudgetExhausted):
                self.exhausted = self.exhausted or error
            if error.kind == "timeout" and error.status is None:
                return _timed_out(self.timeout)
            if error.kind == "unrecorded":
                return replace(_failed(str(error)), cost_usd=0.0, unrecorded=True)
            return _failed(f"{_SHORT.get(error.kind, 'no answer')}: {error}", error.status)
        # A custom completer may raise anything; the search goes on without it.
        except Exception as error:
            return _failed(f"no answer: {type(error).__name__}: {error}")

    async def _attempts(self, request: ChatRequest, until: float) -> ChatReply:
        try:
            return await self._completer.complete(request)
        except CompletionError as error:
            wait = _RETRY_SECONDS if error.retry_after is None else error.retry_after
            if not error.may_pass or time.monotonic() + wait >= until:
                raise
        await asyncio.sleep(wait)
        return await self._completer.complete(request)


def open_caller(
    llm: str | Completer | None, options: Mapping[str, Any] | None = None
) -> LlmCaller | None:
    """Return the caller of a model by its name in LiteLLM, or of a completer; None for None.

    Args:
        options: `llm_options` of `pegboard.open`; those of `HostedCompleter` are for a name alone.

    Raises:
        ConfigurationError: it is neither a name nor a completer, LiteLLM knows no such provider, or
            an option does not exist or has an invalid value.
        CompletionError: LiteLLM is not installed; the message says how to install it.
    """
    named_options = dict(options or {})
    valid = dict.fromkeys((*_MODEL_OPTIONS, *_CALLER_OPTIONS, *_REPLY_OPTIONS))
    if unknown := sorted(named_options.keys() - valid.keys()):
        raise ConfigurationError(
            f"llm_options has no {', '.join(unknown)}. Expected: {', '.join(valid)}."
        )
    if llm is None:
        return None
    bounds = {name: named_options[name] for name in _CALLER_OPTIONS if name in named_options}
    if isinstance(llm, str):
        model: dict[str, Any] = {
            name: named_options[name] for name in _MODEL_OPTIONS if name in named_options
        }
        model.setdefault("timeout", TIMEOUT)
        name = llm

        def hosted() -> Completer:
            from pegboard.llm.hosted import HostedCompleter  # loads LiteLLM, which takes seconds

            return _within(named_options.get("budget_usd"), HostedCompleter(name, **model))

        llm = recorded_completer(
            name, named_options.get("replies"), named_options.get("missing_replies"), hosted
        )
    elif not callable(getattr(llm, "complete", None)) or not isinstance(
        getattr(llm, "name", None), str
    ):
        raise ConfigurationError(
            f"Invalid llm: {llm!r:.80}. Expected a model's name such as 'openai/gpt-4o-mini', or "
            f"an object with `name` and `complete`."
        )
    else:
        llm = _within(named_options.get("budget_usd"), llm)
    return LlmCaller(llm, **bounds)


def _within(budget_usd: float | None, completer: Completer) -> Completer:
    """Return a completer that spends no more than the budget, if there is one."""
    if budget_usd is None:
        return completer
    from pegboard.llm.budgeted import BudgetedCompleter

    return BudgetedCompleter(completer, budget_usd)


def _read(reply: Any, request: ChatRequest) -> Completion:
    why: str | None = None
    if reply.finish_reason == "content_filter":
        why = "refused: the provider withheld the reply"
    elif reply.finish_reason == "length":
        why = f"cut off after {request.max_tokens} tokens"
    elif not reply.text.strip():
        why = "the reply was empty"
    return Completion(
        text=None if why else reply.text,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
        why=why,
    )


def _failed(why: str, status: int | None = None) -> Completion:
    # Providers do not bill calls that end with an error; for a timed-out call this is unknown.
    cost = 0.0 if status is not None else None
    return Completion(text=None, cost_usd=cost, why=redact_line(why, _WHY_CHARACTERS))


def _timed_out(timeout: float) -> Completion:
    return replace(_failed(f"timed out after {timeout:g} s"), timed_out=True)
