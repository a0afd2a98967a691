"""The token bucket and the adaptive concurrency, with a clock that moves only in sleeps."""

import asyncio

import pytest

from pegboard.llm.pacing import BURST_SECONDS, AdaptiveConcurrency, TokenBucket


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
    concurrency = AdaptiveConcurrency(64)
    for _ in range(500):
        concurrency.succeeded()
    assert concurrency.limit == concurrency.lowest == 64


def test_a_window_of_refusals_halves_the_width_once() -> None:
    concurrency = AdaptiveConcurrency(32)
    for place in range(50):
        concurrency.succeeded() if place == 0 else concurrency.refused()
    assert concurrency.limit == concurrency.lowest == 16


def test_a_few_refusals_among_many_answers_change_nothing() -> None:
    concurrency = AdaptiveConcurrency(64)
    for number in range(400):
        concurrency.refused() if number % 20 == 0 else concurrency.succeeded()
    assert concurrency.limit == 64


def test_after_a_refusal_the_width_grows_slowly() -> None:
    concurrency = AdaptiveConcurrency(32)
    for place in range(50):
        concurrency.succeeded() if place == 0 else concurrency.refused()
    for _ in range(50):
        concurrency.succeeded()
    assert concurrency.limit == 17


def test_the_width_finds_what_a_provider_bears_and_stays_near_it() -> None:
    concurrency, bears = AdaptiveConcurrency(128), 10
    seen: list[float] = []
    for _ in range(400):
        running = int(concurrency.limit)
        for place in range(running):
            concurrency.succeeded() if place < bears else concurrency.refused()
        seen.append(concurrency.limit)
    assert min(seen[100:]) >= 5
    assert max(seen[100:]) <= 16


def test_failures_that_do_not_come_from_the_width_do_not_narrow_it_to_nothing() -> None:
    concurrency = AdaptiveConcurrency(64)
    for number in range(4_000):
        concurrency.refused() if number % 4 == 0 else concurrency.succeeded()
    assert concurrency.lowest == 32
    assert concurrency.limit > 32


def test_the_width_never_falls_below_one() -> None:
    concurrency = AdaptiveConcurrency(4)
    for place in range(400):
        concurrency.succeeded() if place % 20 == 0 else concurrency.refused()
    assert concurrency.limit >= 1


def test_a_provider_that_is_down_says_nothing_of_the_width() -> None:
    concurrency = AdaptiveConcurrency(64)
    for _ in range(400):
        concurrency.refused()
    assert concurrency.limit == 64


def test_no_call_starts_while_the_provider_asks_to_wait() -> None:
    clock = Clock()
    concurrency = AdaptiveConcurrency(8, clock=clock, sleep=clock.sleep)
    concurrency.refused(retry_after=30)

    async def call() -> float:
        async with concurrency.slot():
            return clock.now

    assert asyncio.run(call()) >= 30


def test_no_more_calls_run_at_once_than_the_width() -> None:
    concurrency = AdaptiveConcurrency(3)
    most = 0

    async def call() -> None:
        nonlocal most
        async with concurrency.slot():
            most = max(most, concurrency.running)
            await asyncio.sleep(0)

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(30)))

    asyncio.run(all_calls())
    assert most == 3
    assert concurrency.running == 0


def test_a_call_that_fails_gives_its_place_back() -> None:
    concurrency = AdaptiveConcurrency(2)

    async def call() -> None:
        async with concurrency.slot():
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  raised by this test
        asyncio.run(call())
    assert concurrency.running == 0
