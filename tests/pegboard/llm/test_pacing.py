"""The token bucket and the adaptive concurrency, with a clock that moves only in sleeps."""

import asyncio

import pytest

from pegboard.llm.pacing import BURST_SECONDS, AdaptiveConcurrency, TokenBucket


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


def seconds_for(per_minute, *takes, used=None):
    """The time until all units are taken; with `used`, each take turns out to be that much."""
    clock = Clock()
    bucket = TokenBucket(per_minute, clock=clock, sleep=clock.sleep)

    async def run():
        for units in takes:
            await bucket.take(units)
            if used is not None:
                bucket.correct(units, used)

    asyncio.run(run())
    return clock.now


def test_a_bucket_passes_a_burst_and_then_keeps_the_rate():
    burst = int(10 * BURST_SECONDS)

    assert seconds_for(600, *[1] * burst) == 0
    assert seconds_for(600, *[1] * (burst + 100)) == pytest.approx(10, abs=0.2)
    # A request larger than the bucket waits longer.
    assert seconds_for(60, 63) == pytest.approx(60)
    assert seconds_for(60_000, *[1_000] * 100, used=10) < 1
    assert seconds_for(None, 1e9) == 0


def judged(maximum, calls, refused):
    """The concurrency after so many calls, of which `refused` selects some by their place."""
    concurrency = AdaptiveConcurrency(maximum)
    for place in range(calls):
        concurrency.refused() if refused(place) else concurrency.succeeded()
    return concurrency


@pytest.mark.parametrize(
    ("maximum", "calls", "refused", "lowest"),
    [
        (64, 500, lambda place: False, 64),
        # A window of refusals halves the limit once.
        (32, 50, lambda place: place > 0, 16),
        (64, 400, lambda place: place % 20 == 0, 64),
        # Failures that do not come from the concurrency.
        (64, 4_000, lambda place: place % 4 == 0, 32),
        # A provider that is down says nothing about the concurrency.
        (64, 400, lambda place: True, 64),
    ],
)
def test_the_limit_falls_only_by_refusals_that_less_concurrency_helps_against(
    maximum, calls, refused, lowest
):
    concurrency = judged(maximum, calls, refused)

    assert concurrency.lowest == lowest
    assert concurrency.limit >= lowest


def test_the_limit_grows_slowly_after_refusals_and_never_falls_below_one():
    assert judged(32, 100, lambda place: 0 < place < 50).limit == 17
    assert judged(4, 400, lambda place: place % 20 != 0).limit >= 1


def test_the_limit_stays_near_what_a_provider_bears():
    concurrency, capacity = AdaptiveConcurrency(128), 10
    limits = []
    for _ in range(400):
        for place in range(int(concurrency.limit)):
            concurrency.succeeded() if place < capacity else concurrency.refused()
        limits.append(concurrency.limit)

    assert min(limits[100:]) >= 5
    assert max(limits[100:]) <= 16


def test_no_call_starts_while_the_provider_asks_to_wait():
    clock = Clock()
    concurrency = AdaptiveConcurrency(8, clock=clock, sleep=clock.sleep)
    concurrency.refused(retry_after=30)

    async def call():
        async with concurrency.slot():
            return clock.now

    assert asyncio.run(call()) >= 30


def test_no_more_calls_run_at_once_than_the_limit_and_a_failed_one_frees_its_slot():
    concurrency = AdaptiveConcurrency(3)
    running = []

    async def call(number):
        async with concurrency.slot():
            running.append(concurrency.running)
            await asyncio.sleep(0)
            if number % 2:
                raise ValueError

    async def all_calls():
        await asyncio.gather(*map(call, range(30)), return_exceptions=True)

    asyncio.run(all_calls())
    assert max(running) == 3
    assert concurrency.running == 0
