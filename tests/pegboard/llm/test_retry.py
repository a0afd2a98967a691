"""One policy for when a call is made again, and after which wait."""

import asyncio

import pytest

from pegboard.errors import CompletionError
from pegboard.llm.retry import asynchronous, synchronous

BUSY = CompletionError("busy", kind="rate", may_pass=True)
WRONG = CompletionError("wrong", kind="request")


def asks_to_wait(seconds):
    return CompletionError("busy", kind="rate", may_pass=True, retry_after=seconds)


class Call:
    """Fails with each of the errors, one after the other, then answers."""

    def __init__(self, *errors):
        self.errors, self.made, self.slept = list(errors), 0, []

    def __call__(self):
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def later(self):
        return self()

    async def sleep(self, seconds):
        self.slept.append(seconds)

    def run(self, attempts=4, max_seconds=120, kind="asynchronous", **options):
        if kind == "synchronous":
            return synchronous(attempts, max_seconds, self.slept.append, **options)(self)
        return asyncio.run(asynchronous(attempts, max_seconds, self.sleep, **options)(self.later))


@pytest.fixture(params=["asynchronous", "synchronous"])
def kind(request):
    return request.param


def test_a_call_that_succeeds_is_made_once(kind):
    call = Call()

    assert call.run(kind=kind) == "answer"
    assert (call.made, call.slept) == (1, [])


def test_a_failure_that_may_pass_is_tried_again(kind):
    call = Call(BUSY, BUSY)

    assert call.run(kind=kind) == "answer"
    assert call.made == 3
    assert all(0 <= seconds <= 30 for seconds in call.slept)


def test_a_failure_for_good_is_raised_as_it_is(kind):
    call = Call(BUSY, WRONG)

    with pytest.raises(CompletionError) as caught:
        call.run(kind=kind)

    assert caught.value is WRONG
    assert call.made == 2


def test_the_last_failure_is_raised_when_the_attempts_are_used_up(kind):
    call = Call(*[BUSY] * 9)

    with pytest.raises(CompletionError, match="busy"):
        call.run(attempts=3, kind=kind)

    assert (call.made, len(call.slept)) == (3, 2)


def test_the_server_says_how_long_to_wait(kind):
    call = Call(asks_to_wait(7), asks_to_wait(0.5))

    call.run(kind=kind)

    assert call.slept == [7, 0.5]


def test_a_wait_that_is_too_long_is_not_waited_for(kind):
    call = Call(asks_to_wait(3600))

    with pytest.raises(CompletionError, match="busy"):
        call.run(kind=kind)

    assert (call.made, call.slept) == (1, [])


def test_waits_without_a_word_from_the_server_grow_and_differ():
    calls = [Call(*[BUSY] * 8) for _ in range(40)]
    for call in calls:
        call.run(attempts=9, max_seconds=1000)

    means = [sum(call.slept[at] for call in calls) / len(calls) for at in range(8)]

    assert means[0] < 0.5 < means[4] < means[7]
    assert len({call.slept[7] for call in calls}) == len(calls)


def test_who_asks_hears_of_every_failure_that_is_followed_by_another_attempt(kind):
    heard = []

    Call(asks_to_wait(7)).run(
        kind=kind,
        before_sleep=lambda state: heard.append((state.attempt_number, state.next_action.sleep)),
    )

    assert heard == [(1, 7)]


def test_a_cancelled_call_is_not_made_again():
    call = Call(asyncio.CancelledError())

    with pytest.raises(asyncio.CancelledError):
        call.run()

    assert call.made == 1
