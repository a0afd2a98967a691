"""How fast an LLM is asked: a token bucket for each limit of the provider, and a width that finds
what it bears.

All of it runs in one event loop; nothing here is shared between threads.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

BURST_SECONDS = 3.0
"""What a bucket holds when it is full. Providers measure by seconds, though they write minutes."""
WINDOW = 50
"""Calls, at least, by which the provider is judged; as many as run at once, if those are more."""
CROWDED_SHARE = 0.1
"""Of a window: more refusals than this mean that the provider is asked too much at once."""
WORTHWHILE = 0.7
"""Where width is the limit, half of it gets as many answers. If fewer than this share come through
at once, the refusals have
another cause, and narrowing is undone: a provider with a bad day would otherwise be asked one thing
at a time. """
STARTS_PER_SECOND = 150.0
"""Calls are started one after the other. A LiteLLM process manages some 130 a second; 128 that
start at once also answer
at once, and the processor idles between such waves: 84 calls a second with replies after 1 s,
against 110 when spread. """


class TokenBucket:
    """Lets so many units through per minute, evenly. One request may take more than the bucket
    holds: it waits longer.

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
        """Wait until that many units may be used. The order of callers is kept."""
        if self._rate is None:
            return
        now = self._clock()
        self._level = min(self._full, self._level + (now - self._last) * self._rate)
        self._last = now
        self._level -= units  # a debt is paid by waiting; whoever comes later waits behind it
        if self._level < 0:
            await self._sleep(-self._level / self._rate)

    def correct(self, estimated: float, used: float) -> None:
        """Set right what `take` was told, once the reply says what was really used."""
        if self._rate is not None:
            self._level = min(self._full, self._level + estimated - used)


class AdaptiveWidth:
    """How many calls run at once: `maximum` at first, and as many as the provider bears from then
    on.

    Calls are judged window by window. A window with too many refusals halves the width; if that
    only halves the answers too, it is undone, and refusals are tolerated up to that share. A good
    window widens it by one, as TCP does (RFC 5681). While a provider asks to wait, no call starts.
    """

    def __init__(
        self,
        maximum: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.maximum = maximum
        self.width = float(maximum)
        self.narrowest = self.width
        self.running = 0
        self._clock, self._sleep = clock, sleep
        self._tolerated = CROWDED_SHARE
        self._before: tuple[float, float] | None = (
            None  # the width before it was halved, and the answers at once
        )
        self._answered = self._refused = 0
        self._old_calls = (
            0  # under way since before the width was last changed: they say nothing of the new one
        )
        self._resume_at = clock()
        self._start_at = clock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a place, and hold it."""
        if self._waiting or self.running >= int(self.width):
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place  # whoever frees a place counts it as taken before this wakes
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
            self._hand_on()

    def _hand_on(self) -> None:
        """Give free places to those who have waited longest."""
        while self._waiting and self.running < int(self.width):
            place = self._waiting.popleft()
            if not place.done():  # a cancelled one is
                self.running += 1
                place.set_result(None)

    def succeeded(self) -> None:
        """A call came through."""
        self._count(answered=1)

    def refused(self, retry_after: float | None = None) -> None:
        """The provider said that it was too much, and perhaps how long to wait."""
        if retry_after:
            self._resume_at = max(self._resume_at, self._clock() + retry_after)
        self._count(refused=1)

    def _count(self, answered: int = 0, refused: int = 0) -> None:
        if self._old_calls > 0:
            self._old_calls -= 1
            return
        self._answered += answered
        self._refused += refused
        seen = self._answered + self._refused
        if seen >= max(WINDOW, int(self.width)):
            share = self._refused / seen
            self._answered = self._refused = 0
            self._judge(share)

    def _judge(self, share: float) -> None:
        at_once = (1 - share) * self.width
        if share <= self._tolerated:
            self._before = None
            self._tolerated = max(CROWDED_SHARE, self._tolerated * 0.9)
            self.width = min(float(self.maximum), self.width + 1)
        elif at_once == 0:
            return  # nothing comes through, which says nothing of the width
        elif self._before is not None and at_once < WORTHWHILE * self._before[1]:
            self._change(self._before[0])
            self._before = None
            self._tolerated = min(1.0, share * 1.5)
        else:
            self._before = (self.width, at_once)
            self._change(max(1.0, self.width / 2))
            self.narrowest = min(self.narrowest, self.width)

    def _change(self, width: float) -> None:
        self.width = width
        self._old_calls = self.running
