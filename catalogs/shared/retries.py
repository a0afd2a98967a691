"""The one retry policy of all sources: which failures are retried, how often, and when.

Each request to a server (a document, a page of a registry, an agent card, one MCP server) is
retried where it is made, so that one failure does not repeat the requests that succeeded. A failure
that is left after the last attempt is final: it is not retried again further up. A plug-in's `read`
is retried as a whole if it raises `SourceError(..., may_pass=True)`."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from pegboard.errors import SourceError
from pegboard.servers.config import ServerProblem
from pegboard.text.redaction import redact_line

T = TypeVar("T")

ATTEMPTS = 4
"""Default number of attempts, the first one included."""
MAX_WAIT = 60.0
"""Default of the longest wait between two attempts, in seconds."""
SHARE_OF_TIME = 0.5
"""Share of a source's `max_seconds` after which nothing is retried any more, so that the rest can
still be listed."""
MAX_REASON = 300
"""Characters of a reason in the log."""
JITTER = wait_random_exponential(multiplier=0.5, max=30)
"""Wait without a Retry-After: a random time up to 0.5, 1, 2, ... 30 seconds."""


def _no_report(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Retries:
    """Retries calls that fail with a transient error.

    Attributes:
        attempts: number of attempts, the first one included.
        max_wait: longest wait between two attempts, in seconds. A source that asks to wait longer
            (Retry-After) fails at once.
        seconds: time since `started` after which no attempt begins.
        report: called with each failure that is followed by another attempt.
        sleep: waits between attempts, in a thread for asynchronous calls.
    """

    attempts: int = ATTEMPTS
    max_wait: float = MAX_WAIT
    seconds: float = float("inf")
    report: Callable[[str], None] = _no_report
    sleep: Callable[[float], None] = time.sleep
    started: float = field(default_factory=time.monotonic)

    def named(self, name: str) -> "Retries":
        """Return the same policy with reports that begin with a name."""
        return replace(self, report=lambda text: self.report(f"{name}: {text}"))

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function, called until it succeeds.

        Raises:
            SourceError: the last failure, with `may_pass` unset.
        """
        return Retrying(sleep=self.sleep, **self._policy())(function)

    async def call_async(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an asynchronous function, called until it succeeds.

        Raises:
            SourceError, ServerProblem: the last failure, with `may_pass` unset.
        """
        import anyio.to_thread

        async def sleep(seconds: float) -> None:
            await anyio.to_thread.run_sync(self.sleep, seconds)

        return await AsyncRetrying(sleep=sleep, **self._policy())(function)

    def _policy(self) -> dict[str, Any]:
        return {
            "retry": retry_if_exception(may_pass),
            "wait": self._wait,
            "stop": self._stop,
            "before_sleep": self._report,
            "retry_error_callback": self._give_up,
        }

    def _wait(self, state: RetryCallState) -> float:
        seconds = _retry_after(state)
        return min(JITTER(state), self.max_wait) if seconds is None else seconds

    def _stop(self, state: RetryCallState) -> bool:
        return (
            stop_after_attempt(self.attempts)(state)
            or state.upcoming_sleep > self.max_wait
            or self._out_of_time(state)
        )

    def _out_of_time(self, state: RetryCallState) -> bool:
        return time.monotonic() - self.started + state.upcoming_sleep > self.seconds

    def _report(self, state: RetryCallState) -> None:
        reason = redact_line(_reason(state), MAX_REASON)
        self.report(
            f"attempt {state.attempt_number} of {self.attempts} failed, the next one follows in "
            f"{state.upcoming_sleep:.1f} s: {reason}"
        )

    def _give_up(self, state: RetryCallState) -> NoReturn:
        """Raise the last failure as a final one, with what was tried."""
        error = _error(state)
        text = _reason(state)
        if state.attempt_number > 1:
            text = f"{state.attempt_number} attempts failed, the last one because: {text}"
        if state.upcoming_sleep > self.max_wait:
            text = _with_sentence(
                text,
                f"The server asks to wait {state.upcoming_sleep:,.0f} seconds (Retry-After), "
                f"longer than max_wait = {self.max_wait:g}. Run again after that time, or raise "
                f"`max_wait` of the catalog.",
            )
        elif state.attempt_number < self.attempts and self._out_of_time(state):
            text = _with_sentence(
                text, "There was no time for another attempt: half of `max_seconds` has passed."
            )
        final = ServerProblem if isinstance(error, ServerProblem) else SourceError
        raise final(text) from None


def may_pass(error: BaseException) -> bool:
    """Return whether a failure is transient.

    Failures of sources say so themselves. Of other exceptions, the standard library's
    ConnectionError and TimeoutError are.
    """
    if isinstance(error, SourceError | ServerProblem):
        return error.may_pass
    return isinstance(error, ConnectionError | TimeoutError)


def _with_sentence(text: str, sentence: str) -> str:
    return f"{text.removesuffix('.')}. {sentence}"


def _error(state: RetryCallState) -> BaseException:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert error is not None
    return error


def _reason(state: RetryCallState) -> str:
    error = _error(state)
    if isinstance(error, SourceError | ServerProblem):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _retry_after(state: RetryCallState) -> float | None:
    error = _error(state)
    return error.retry_after if isinstance(error, SourceError | ServerProblem) else None
