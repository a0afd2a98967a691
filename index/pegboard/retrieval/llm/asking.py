"""Asking an LLM while a person waits: all at once, in bounded time, from threads and event loops
alike, and never with an exception.

caller = LlmCaller(completer_of("openai/gpt-4o-mini"), timeout=10)
answers = caller.ask_blocking([ChatRequest(...)])        # or: await caller.ask([...])
caller.close()
"""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from typing import Any, cast

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.redaction import redact_line
from pegboard.retrieval.llm.loop_thread import LoopThread

TIMEOUT = 10.0
"""Seconds for one question by default: a search that takes longer is better answered without an
LLM.
"""
CONCURRENCY = 8
"""Questions on their way at once by default: a request of six steps, and another one beside it."""

_RETRY_SECONDS = 0.2
_WHY_CHARACTERS = 300
_CLOSED = "the caller was closed meanwhile"
_SHORT = {
    "key": "no key",
    "content": "refused",
    "rate": "too many requests",
    "quota": "no quota left",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one question.

    Attributes:
        text: the reply; None if there is none that can be used.
        prompt_tokens, completion_tokens: of the reply, used or not; 0 if there was none.
        cost_usd: None if nobody knows: the model has no listed price, or the question was given up.
        seconds: from the question to the answer, waiting for other questions included.
        why: why there is no text: timed out, cut off, refused, no key, what the server said.
        timed_out: whether it was waited for in vain.
    """

    text: str | None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    why: str | None = None
    timed_out: bool = False


class LlmCaller:
    """Asks a completer from anywhere. Threads and event loops may share one.

    A completer is for one event loop; so there is one of its own, in a daemon thread that starts
    with the first question and again with the first one after `close` or in a forked process. Close
    it to close its connections; one that is forgotten closes itself.

    Args:
        completer: is asked in that loop; one that blocks it instead of awaiting makes every
            question wait, and no timeout is kept.
        timeout: seconds for each question in all, a second attempt included. There is one if the
            error may pass and time is left.
        concurrency: the most questions on their way at once.

    Raises:
        ConfigurationError: an option has no such value.
    """

    def __init__(
        self, completer: Completer, *, timeout: float = TIMEOUT, concurrency: int = CONCURRENCY
    ) -> None:
        if type(timeout) not in (int, float) or not 0 < timeout < float("inf"):
            raise ConfigurationError(
                f"LLM {completer.name!r}: timeout = {timeout!r}. Give seconds, more than 0."
            )
        if type(concurrency) is not int or concurrency < 1:
            raise ConfigurationError(
                f"LLM {completer.name!r}: concurrency = {concurrency!r}. Give at least 1."
            )
        self.name = completer.name
        self.timeout = timeout
        self._completer, self._concurrency = completer, concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._starting = threading.Lock()
        # All threads that were ever started: LiteLLM tells loops apart by their id, so that of a
        # lost one must not be given again.
        self._threads: list[LoopThread] = []

    def ask_blocking(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        """The answers to the requests, asked all at once, in their order; never raises for a
        failing LLM.
        """
        future = self._start(requests)
        try:
            return future.result()
        except CancelledError:
            return _closed(requests)
        except BaseException:  # such as KeyboardInterrupt
            future.cancel()
            raise

    async def ask(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        """The same for coroutines of any event loop; who cancels it cancels the calls."""
        try:
            return await asyncio.wrap_future(self._start(requests))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _closed(requests)

    def close(self) -> None:
        """Cancel what is on its way and close the connections; the next question opens new ones."""
        with self._starting:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.stop()

    def _start(self, requests: Sequence[ChatRequest]) -> "Future[list[Answer]]":
        with self._starting:
            if not self._threads or not self._threads[-1].alive:
                self._slots = asyncio.Semaphore(
                    self._concurrency
                )  # belongs to the loop that first waits for it
                thread = LoopThread(
                    "pegboard-llm", cast("_Close | None", getattr(self._completer, "aclose", None))
                )
                weakref.finalize(self, thread.stop)
                self._threads.append(thread)
            return self._threads[-1].run(self._all(tuple(requests)))

    async def _all(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(self, request: ChatRequest) -> Answer:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout), self._slots:
                reply = await self._attempts(request, began + self.timeout)
            if not isinstance(reply, ChatReply):  # pyright: ignore[reportUnnecessaryIsInstance]
                return _failed(
                    f"no answer: {self.name} returned {type(reply).__name__}, expected a ChatReply",
                    began,
                )
        except TimeoutError:
            return _timed_out(self.timeout, began)
        except CompletionError as error:
            if error.kind == "timeout" and error.status is None:
                return _timed_out(self.timeout, began)
            return _failed(
                f"{_SHORT.get(error.kind, 'no answer')}: {error}", began, status=error.status
            )
        # a completer of someone's own may raise anything; the search goes on without it
        except Exception as error:
            return _failed(f"no answer: {type(error).__name__}: {error}", began)
        return _read(reply, request, time.monotonic() - began)

    async def _attempts(self, request: ChatRequest, until: float) -> ChatReply:
        try:
            return await self._completer.complete(request)
        except CompletionError as error:
            wait = _RETRY_SECONDS if error.retry_after is None else error.retry_after
            if not error.may_pass or time.monotonic() + wait >= until:
                raise
        await asyncio.sleep(wait)
        return await self._completer.complete(request)


def completer_of(
    llm: str | Completer | None,
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    timeout: float = TIMEOUT,
    price: tuple[float, float] | None = None,
) -> Completer | None:
    """The completer that is meant: a model as LiteLLM names it, a completer as it is, or none.

    The options are those of `HostedCompleter` and concern a name only. Loads LiteLLM, which takes
    seconds.

    Raises:
        ConfigurationError: it is neither a name nor a completer, or LiteLLM knows no such provider.
        CompletionError: LiteLLM is not installed; the message says how to install it.
    """
    if llm is None:
        return None
    if isinstance(llm, str):
        from pegboard.llm.hosted import HostedCompleter

        return HostedCompleter(
            llm, api_base=api_base, api_key_env=api_key_env, timeout=timeout, price=price
        )
    if callable(getattr(llm, "complete", None)) and isinstance(getattr(llm, "name", None), str):
        return llm
    raise ConfigurationError(
        f"llm = {llm!r:.80} is no LLM. Give a model's name such as 'openai/gpt-4o-mini', or an "
        f"object with `name` and `complete`."
    )


_Close = Callable[[], Awaitable[None]]


def _read(reply: Any, request: ChatRequest, seconds: float) -> Answer:
    why: str | None = None
    if reply.finish_reason == "content_filter":
        why = "refused: the provider withheld the reply"
    elif reply.finish_reason == "length":
        why = f"cut off after {request.max_tokens} tokens"
    elif not reply.text.strip():
        why = "the reply was empty"
    return Answer(
        text=None if why else reply.text,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
        seconds=seconds,
        why=why,
    )


def _failed(why: str, began: float, status: int | None = None) -> Answer:
    # Providers bill no call that they answer with an error; of one that was given up nobody knows.
    cost = 0.0 if status is not None else None
    return Answer(
        text=None,
        cost_usd=cost,
        seconds=time.monotonic() - began,
        why=redact_line(why, _WHY_CHARACTERS),
    )


def _timed_out(timeout: float, began: float) -> Answer:
    return replace(_failed(f"timed out after {timeout:g} s", began), timed_out=True)


def _closed(requests: Sequence[ChatRequest]) -> list[Answer]:
    return [Answer(text=None, why=_CLOSED) for _ in requests]
