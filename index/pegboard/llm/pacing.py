"""How fast an LLM is called: a token bucket per rate limit, and an adaptive limit of concurrency.

Everything here belongs to one event loop; nothing is shared between threads."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

BURST_SECONDS = 3.0
"""Seconds of its rate that a full bucket holds: providers measure by seconds, not minutes."""
WINDOW = 50
"""Calls by which the provider is judged, at least; as many as run at once, if those are more."""
REFUSED_SHARE = 0.1
"""Of a window: more refusals than this mean too many calls at once."""
MIN_THROUGHPUT = 0.7
"""Share of replies below which halving the concurrency is undone.

Where concurrency is the limit, half of it gets as many replies. If fewer come through, refusals
have another cause: otherwise a provider with a bad day would be called one request at a time."""
STARTS_PER_SECOND = 150.0
"""Calls start one after the other; LiteLLM manages some 130 a second in a process.

128 that start at once also end at once, and the processor idles between such waves: 84 calls a
second with replies after 1 s, against 110 when spread."""


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
    """Lets so many units through per minute, evenly.

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
        """Wait until that many units may be used, in the order of the callers."""
        if self._rate is None:
            return
        now = self._clock()
        self._level = min(self._full, self._level + (now - self._last) * self._rate)
        self._last = now
        self._level -= units  # a debt is paid by waiting; later callers wait behind it
        if self._level < 0:
            await self._sleep(-self._level / self._rate)

    def correct(self, estimated: float, used: float) -> None:
        """Replace the units given to `take` by those that the reply says were used."""
        if self._rate is not None:
            self._level = min(self._full, self._level + estimated - used)


class AdaptiveConcurrency:
    """A limit of calls under way: `maximum` at first, then as many as the provider bears.

    Calls are judged window by window. A window with too many refusals halves the limit; if that
    halves the replies too, it is undone, and refusals are tolerated up to that share. A good window
    raises the limit by one, as TCP does (RFC 5681). While a provider asks to wait, no call starts.
    """

    def __init__(
        self,
        maximum: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        self.lowest = self.limit
        self.running = 0
        self._clock, self._sleep = clock, sleep
        self._tolerated = REFUSED_SHARE
        self._before: tuple[float, float] | None = None
        """The limit before it was halved, and the replies at once under it."""
        self._succeeded = self._refused = 0
        self._earlier_calls = 0
        """Under way since before the limit last changed: they say nothing about the new one."""
        self._resume_at = self._start_at = clock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a slot, and hold it."""
        if self._waiting or self.running >= int(self.limit):
            slot = asyncio.get_running_loop().create_future()
            self._waiting.append(slot)
            await slot  # whoever frees a slot counts it as taken before this wakes
        else:
            self.running += 1
        try:
            now = self._clock()
            start = max(now, self._resume_at, self._start_at)
            self._start_at = start + 1 / STARTS_PER_SECOND
            if start > now:
                await self._sleep(start - now)
            yield
        finally:
            self.running -= 1
            self._assign_free_slots()

    def succeeded(self) -> None:
        """Count a call that was answered."""
        self._count(succeeded=1)

    def refused(self, retry_after: float | None = None) -> None:
        """Count a call that the provider refused as too much, and wait as long as it asks for."""
        if retry_after:
            self._resume_at = max(self._resume_at, self._clock() + retry_after)
        self._count(refused=1)

    def _assign_free_slots(self) -> None:
        while self._waiting and self.running < int(self.limit):
            slot = self._waiting.popleft()
            if not slot.done():  # a cancelled one is
                self.running += 1
                slot.set_result(None)

    def _count(self, succeeded: int = 0, refused: int = 0) -> None:
        if self._earlier_calls > 0:
            self._earlier_calls -= 1
            return
        self._succeeded += succeeded
        self._refused += refused
        calls = self._succeeded + self._refused
        if calls >= max(WINDOW, int(self.limit)):
            share = self._refused / calls
            self._succeeded = self._refused = 0
            self._judge_window(share)

    def _judge_window(self, refused_share: float) -> None:
        throughput = (1 - refused_share) * self.limit
        if refused_share <= self._tolerated:
            self._before = None
            self._tolerated = max(REFUSED_SHARE, self._tolerated * 0.9)
            self.limit = min(float(self.maximum), self.limit + 1)
        elif throughput == 0:
            return  # a provider that is down says nothing about concurrency
        elif self._before is not None and throughput < MIN_THROUGHPUT * self._before[1]:
            self._change_limit(self._before[0])
            self._before = None
            self._tolerated = min(1.0, refused_share * 1.5)
        else:
            self._before = (self.limit, throughput)
            self._change_limit(max(1.0, self.limit / 2))
            self.lowest = min(self.lowest, self.limit)

    def _change_limit(self, limit: float) -> None:
        self.limit = limit
        self._earlier_calls = self.running
