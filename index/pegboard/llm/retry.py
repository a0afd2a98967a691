"""The retry policy for failed calls of encoders and completers.

    async for attempt in asynchronous(attempts=5, max_seconds=300): ...
    reply = await asynchronous(attempts=5, max_seconds=300)(completer.complete, request)

Nothing else retries: LiteLLM and the clients beneath it are told not to, since their attempts would
multiply with these."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pegboard.encoders import import_extra
from pegboard.llm.failures import may_pass, retry_after

if TYPE_CHECKING:
    import tenacity


def asynchronous(
    attempts: int,
    max_seconds: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    before_sleep: Callable[["tenacity.RetryCallState"], Any] | None = None,
) -> "tenacity.AsyncRetrying":
    """Return the policy for coroutines; the last failure is raised as it is.

    Args:
        attempts: calls in all.
        max_seconds: no wait ends later than this after the first attempt, even if the server asks
            for it: quotas by the hour and the day answer with such times.
        sleep: waits between attempts.
        before_sleep: called for every failure that is followed by another attempt.
    """
    policy = _policy(import_extra("tenacity"), attempts, max_seconds)
    return import_extra("tenacity").AsyncRetrying(sleep=sleep, before_sleep=before_sleep, **policy)


def synchronous(
    attempts: int,
    max_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    before_sleep: Callable[["tenacity.RetryCallState"], None] | None = None,
) -> "tenacity.Retrying":
    """Return the policy for functions; arguments as of `asynchronous`."""
    policy = _policy(import_extra("tenacity"), attempts, max_seconds)
    return import_extra("tenacity").Retrying(sleep=sleep, before_sleep=before_sleep, **policy)


def _policy(tenacity: Any, attempts: int, max_seconds: float) -> dict[str, Any]:
    jitter = tenacity.wait_random_exponential(multiplier=0.5, max=30)

    def wait(state: Any) -> float:
        seconds = retry_after(state.outcome.exception())
        return jitter(state) if seconds is None else seconds

    return {
        "retry": tenacity.retry_if_exception(may_pass),
        "wait": wait,
        "stop": tenacity.stop_after_attempt(attempts) | tenacity.stop_before_delay(max_seconds),
        "reraise": True,
    }
