"""The token bucket, with a clock that moves only in sleeps."""

import asyncio

import pytest

from pegboard.llm.pacing import BURST_SECONDS, TokenBucket


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
