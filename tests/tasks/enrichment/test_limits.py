"""The token bucket and the adaptive width, with a clock that only moves when somebody sleeps."""

import asyncio

import pytest

from tasks.enrichment.limits import BURST_SECONDS, AdaptiveWidth, TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_bucket_lets_a_burst_through_and_then_keeps_the_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(600, clock=clock, sleep=clock.sleep)

    async def take(times: int) -> None:
        for _ in range(times):
            await bucket.take(1)

    asyncio.run(take(int(10 * BURST_SECONDS)))
    assert clock.now == 0
    asyncio.run(take(100))
    assert clock.now == pytest.approx(10, abs=0.2)


def test_a_bucket_makes_a_request_wait_that_is_larger_than_the_bucket() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock=clock, sleep=clock.sleep)
    asyncio.run(bucket.take(63))
    assert clock.now == pytest.approx(60)


def test_a_bucket_takes_back_what_a_reply_did_not_use() -> None:
    clock = Clock()
    bucket = TokenBucket(60_000, clock=clock, sleep=clock.sleep)

    async def use() -> None:
        for _ in range(100):
            await bucket.take(1_000)
            bucket.correct(1_000, 10)

    asyncio.run(use())
    assert clock.now < 1


def test_a_bucket_without_a_limit_never_waits() -> None:
    clock = Clock()
    asyncio.run(TokenBucket(None, clock=clock, sleep=clock.sleep).take(1e9))
    assert clock.now == 0


def test_the_width_begins_at_its_maximum_and_stays_there_while_all_is_well() -> None:
    width = AdaptiveWidth(64)
    for _ in range(500):
        width.succeeded()
    assert width.width == width.narrowest == 64


def test_a_window_of_refusals_halves_the_width_once() -> None:
    width = AdaptiveWidth(32)
    for place in range(50):
        width.succeeded() if place == 0 else width.refused()
    assert width.width == width.narrowest == 16


def test_a_few_refusals_among_many_answers_change_nothing() -> None:
    width = AdaptiveWidth(64)
    for number in range(400):
        width.refused() if number % 20 == 0 else width.succeeded()
    assert width.width == 64


def test_after_a_refusal_the_width_grows_slowly() -> None:
    width = AdaptiveWidth(32)
    for place in range(50):
        width.succeeded() if place == 0 else width.refused()
    for _ in range(50):
        width.succeeded()
    assert width.width == 17


def test_the_width_finds_what_a_provider_bears_and_stays_near_it() -> None:
    width, bears = AdaptiveWidth(128), 10
    seen: list[float] = []
    for _ in range(400):
        running = int(width.width)
        for place in range(running):
            width.succeeded() if place < bears else width.refused()
        seen.append(width.width)
    assert min(seen[100:]) >= 5
    assert max(seen[100:]) <= 16


def test_failures_that_do_not_come_from_the_width_do_not_narrow_it_to_nothing() -> None:
    width = AdaptiveWidth(64)
    for number in range(4_000):
        width.refused() if number % 4 == 0 else width.succeeded()
    assert width.narrowest == 32
    assert width.width > 32


def test_the_width_never_falls_below_one() -> None:
    width = AdaptiveWidth(4)
    for place in range(400):
        width.succeeded() if place % 20 == 0 else width.refused()
    assert width.width >= 1


def test_a_provider_that_is_down_says_nothing_of_the_width() -> None:
    width = AdaptiveWidth(64)
    for _ in range(400):
        width.refused()
    assert width.width == 64


def test_no_call_starts_while_the_provider_asks_to_wait() -> None:
    clock = Clock()
    width = AdaptiveWidth(8, clock=clock, sleep=clock.sleep)
    width.refused(retry_after=30)

    async def call() -> float:
        async with width.slot():
            return clock.now

    assert asyncio.run(call()) >= 30


def test_no_more_calls_run_at_once_than_the_width() -> None:
    width = AdaptiveWidth(3)
    most = 0

    async def call() -> None:
        nonlocal most
        async with width.slot():
            most = max(most, width.running)
            await asyncio.sleep(0)

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(30)))

    asyncio.run(all_calls())
    assert most == 3
    assert width.running == 0


def test_a_call_that_fails_gives_its_place_back() -> None:
    width = AdaptiveWidth(2)

    async def call() -> None:
        async with width.slot():
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  raised by this test
        asyncio.run(call())
    assert width.running == 0
