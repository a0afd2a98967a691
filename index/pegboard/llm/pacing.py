"""How fast an LLM is called: concurrency, attempts, and a token bucket per rate limit.

A bucket belongs to one event loop; nothing is shared between threads."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

BURST_SECONDS = 3.0
"""Seconds of its rate that a full bucket holds: providers measure by seconds, not minutes."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """How an LLM is called.

    Attributes:
        concurrency: the most calls under way at once.
        attempts: calls for one request in all, where failures may pass.
        requests_per_minute, tokens_per_minute: the provider's rate limits; None is no limit.
    """

    concurrency: int = 8
    attempts: int = 4
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class TokenBucket:
    """A token bucket: limits units per minute.

    One request may take more than the bucket holds: it waits longer.

    Args:
        per_minute: units; None lets everything through.
    """

    def __init__(
        self,
        per_minute: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = per_minute / 60 if per_minute else None
        self._clock, self._sleep = clock, sleep
        self._level = max(1.0, (self._rate or 0) * BURST_SECONDS)
        self._full = self._level
        self._last = clock()

    async def take(self, units: float) -> None:
        """Wait until these units are available, first come, first served."""
        if self._rate is None:
            return
        now = self._clock()
        self._level = min(self._full, self._level + (now - self._last) * self._rate)
        self._last = now
        self._level -= units  # a debt is paid by waiting; later callers wait behind it
        if self._level < 0:
            await self._sleep(-self._level / self._rate)

    def correct(self, estimated: float, used: float) -> None:
        """Correct the units of `take` by the usage that the reply reports."""
        if self._rate is not None:
            self._level = min(self._full, self._level + estimated - used)
