"""One policy for when a call is made again, and after which wait."""

import asyncio

import pytest

from pegboard.errors import CompletionError
from pegboard.llm.failures import retrying

BUSY = CompletionError("busy", kind="rate", may_pass=True)
WRONG = CompletionError("wrong", kind="request")


def busy(seconds):
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

    def run(self, attempts=4, max_seconds=120, kind="AsyncRetrying", **options):
        if kind == "Retrying":
            return retrying(kind, attempts, max_seconds, self.slept.append, **options)(self)
        calls = retrying(kind, attempts, max_seconds, self.sleep, **options)
        return asyncio.run(calls(self.later))


@pytest.mark.parametrize("kind", ["AsyncRetrying", "Retrying"])
@pytest.mark.parametrize(
    ("errors", "raised", "made"),
    [
        ([], None, 1),
        ([BUSY, BUSY], None, 3),
        ([BUSY, WRONG], WRONG, 2),
        ([BUSY] * 9, BUSY, 4),
        # A wait that is too long is not waited for.
        ([failure := busy(3600)], failure, 1),
    ],
)
def test_what_may_pass_is_retried_and_the_last_failure_is_raised(kind, errors, raised, made):
    call = Call(*errors)

    if raised is None:
        assert call.run(kind=kind) == "answer"
    else:
        with pytest.raises(CompletionError) as caught:
            call.run(kind=kind)
        assert caught.value is raised

    assert (call.made, len(call.slept)) == (made, made - 1)
    assert all(0 <= seconds <= 30 for seconds in call.slept)


@pytest.mark.parametrize("kind", ["AsyncRetrying", "Retrying"])
def test_the_wait_that_the_server_asks_for_is_kept_and_reported(kind):
    call, seen = Call(busy(7), busy(0.5)), []

    call.run(
        kind=kind,
        before_sleep=lambda state: seen.append((state.attempt_number, state.next_action.sleep)),
    )

    assert call.slept == [7, 0.5]
    assert seen == [(1, 7), (2, 0.5)]


def test_a_cancelled_call_is_not_made_again():
    call = Call(asyncio.CancelledError())

    with pytest.raises(asyncio.CancelledError):
        call.run()

    assert call.made == 1
