"""LLM calls at request time: concurrent, bounded in time, and without exceptions.

    caller = LlmCaller(completer_of("openai/gpt-4o-mini"), timeout=10)
    completions = await caller.ask([ChatRequest(...)])
    caller.close()

Threads and event loops may share a caller.
"""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.redaction import redact_line

Result = TypeVar("Result")

TIMEOUT = 10.0
"""Default seconds for one question: a slower search is better answered without an LLM."""
CONCURRENCY = 8
"""Default number of concurrent questions: a request of six steps and two more."""

_JOIN_SECONDS = 5
"""Longest wait for the loop's thread to close its connections and end."""

_MODEL_OPTIONS = ("api_base", "api_key_env", "price", "timeout")
_CALLER_OPTIONS = ("timeout", "concurrency")
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
class Completion:
    """The outcome of one question.

    Attributes:
        text: the reply; None if there is no usable one.
        prompt_tokens, completion_tokens: of the reply, usable or not; 0 if there was none.
        cost_usd: None if unknown: the model has no listed price, or the question was abandoned.
        why: why there is no text: timed out, cut off, refused, no key, what the server reported.
        timed_out: whether the time ran out.
    """

    text: str | None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    why: str | None = None
    timed_out: bool = False


class LlmCaller:
    """Calls a completer from any thread or event loop.

    A completer belongs to one event loop, so the caller has its own, in a daemon thread that starts
    with the first question, and again after `close` or in a forked process. `close` closes its
    connections; a caller that is garbage-collected closes itself.

    Args:
        completer: called in that loop; one that blocks the loop delays every question and breaks
            the timeouts.
        timeout: seconds for each question, including its one retry, which is made if the error
            is transient and time is left.
        concurrency: the most concurrent questions.

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
        self._completer, self._concurrency = completer, concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._starting = threading.Lock()
        # All threads that were ever started: LiteLLM tells loops apart by their id, so that of a
        # lost one must not be given again.
        self._threads: list[LoopThread] = []

    async def ask(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return the completions in order, asked concurrently; a failing LLM raises nothing.

        Call it from any event loop; cancelling cancels the calls.
        """
        try:
            return await asyncio.wrap_future(self._start(requests))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _closed(requests)

    def close(self) -> None:
        """Cancel pending questions and close connections; the next question opens new ones."""
        with self._starting:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.stop()

    def _start(self, requests: Sequence[ChatRequest]) -> "Future[list[Completion]]":
        with self._starting:
            if not self._threads or not self._threads[-1].alive:
                # It belongs to the loop that first waits for it.
                self._slots = asyncio.Semaphore(self._concurrency)
                thread = LoopThread(getattr(self._completer, "aclose", None))
                weakref.finalize(self, thread.stop)
                self._threads.append(thread)
            return self._threads[-1].run(self._all(tuple(requests)))

    async def _all(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(self, request: ChatRequest) -> Completion:
        until = time.monotonic() + self.timeout
        try:
            async with asyncio.timeout(self.timeout), self._slots:
                reply = await self._attempts(request, until)
            if not isinstance(reply, ChatReply):  # pyright: ignore[reportUnnecessaryIsInstance]
                return _failed(
                    f"no answer: {self.name} returned {type(reply).__name__}, expected a ChatReply"
                )
        except TimeoutError:
            return _timed_out(self.timeout)
        except CompletionError as error:
            if error.kind == "timeout" and error.status is None:
                return _timed_out(self.timeout)
            return _failed(f"{_SHORT.get(error.kind, 'no answer')}: {error}", error.status)
        # A custom completer may raise anything; the search goes on without it.
        except Exception as error:
            return _failed(f"no answer: {type(error).__name__}: {error}")
        return _read(reply, request)

    async def _attempts(self, request: ChatRequest, until: float) -> ChatReply:
        try:
            return await self._completer.complete(request)
        except CompletionError as error:
            wait = _RETRY_SECONDS if error.retry_after is None else error.retry_after
            if not error.may_pass or time.monotonic() + wait >= until:
                raise
        await asyncio.sleep(wait)
        return await self._completer.complete(request)


def completer_of(llm: str | Completer | None, **options: Any) -> Completer | None:
    """Return the completer of a model's name in LiteLLM, a completer as it is, or None for None.

    Args:
        options: those of `HostedCompleter`, for a name.

    Raises:
        ConfigurationError: it is neither a name nor a completer, or LiteLLM knows no such provider.
        CompletionError: LiteLLM is not installed; the message says how to install it.
    """
    if llm is None:
        return None
    if isinstance(llm, str):
        from pegboard.llm.hosted import HostedCompleter  # loads LiteLLM, which takes seconds

        options.setdefault("timeout", TIMEOUT)
        return HostedCompleter(llm, **options)
    if callable(getattr(llm, "complete", None)) and isinstance(getattr(llm, "name", None), str):
        return llm
    raise ConfigurationError(
        f"Invalid llm: {llm!r:.80}. Expected a model's name such as 'openai/gpt-4o-mini', or an "
        f"object with `name` and `complete`."
    )


def open_caller(
    llm: str | Completer | None, options: Mapping[str, Any] | None = None
) -> LlmCaller | None:
    """Return the caller of an LLM, by name or completer; None for None.

    Args:
        options: `llm_options` of `pegboard.open`.

    Raises:
        ConfigurationError: an option that does not exist or has an invalid value.
    """
    given = dict(options or {})
    if unknown := sorted(given.keys() - {*_MODEL_OPTIONS, *_CALLER_OPTIONS}):
        raise ConfigurationError(
            f"llm_options has no {', '.join(unknown)}. Expected: "
            f"{', '.join(dict.fromkeys((*_MODEL_OPTIONS, *_CALLER_OPTIONS)))}."
        )
    model = {name: given[name] for name in _MODEL_OPTIONS if name in given}
    bounds = {name: given[name] for name in _CALLER_OPTIONS if name in given}
    completer = completer_of(llm, **model)
    return LlmCaller(completer, **bounds) if completer is not None else None


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


def _closed(requests: Sequence[ChatRequest]) -> list[Completion]:
    return [Completion(text=None, why=_CLOSED) for _ in requests]


class LoopThread:
    """Runs coroutines until it is stopped. The thread is a daemon: it keeps no process alive.

    A process that forks takes no threads along, so `alive` is false in the child.

    Args:
        last: awaited in the loop when it ends.
    """

    def __init__(self, last: Callable[[], Awaitable[None]] | None) -> None:
        self._last, self._tasks = last, weakref.WeakSet[asyncio.Task[Any]]()
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="pegboard-llm", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it accepts work: false once it is stopped, and in a forked process."""
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Start a coroutine; cancelling the future cancels it, and so does `stop`."""
        return asyncio.run_coroutine_threadsafe(self._noted(work), self._loop)

    def stop(self) -> None:
        """Cancel what runs, and end the thread."""
        if not self.alive or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_SECONDS)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stop.wait()
        # Only what was started here: the tasks of a library are needed by `last`, which ends them.
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._last is not None:
            await self._last()

    async def _noted(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        return await work
