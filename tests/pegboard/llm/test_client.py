"""Calls under limits: budget, concurrency, retries, models that are away, and outcome counts."""

import asyncio

import pytest

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.client import MAX_FAILURES, Budget, Client

REQUEST = ChatRequest(messages=(Message("user", "hello"),), max_tokens=10)


def reply(model="m", cost=0.5, tokens=4):
    return ChatReply(
        text="hi",
        finish_reason="stop",
        model=model,
        prompt_tokens=tokens,
        completion_tokens=1,
        cost_usd=cost,
        seconds=0.0,
    )


class Scripted:
    """A completer that fails as its script says, and answers from then on."""

    def __init__(self, name, *script):
        self.name, self.script, self.calls = name, list(script), 0

    async def complete(self, request):
        self.calls += 1
        await asyncio.sleep(0)
        if self.script:
            raise self.script.pop(0)
        return reply(self.name)


def client(completer, budget=None, slept=None, **limits):
    async def sleep(seconds):
        if slept is not None:
            slept.append(seconds)
        await asyncio.sleep(0)

    return Client(completer, budget=budget, sleep=sleep, **limits)


def error(kind, status=None, retry_after=None):
    may_pass = kind in ("rate", "server")
    return CompletionError(
        kind, kind=kind, may_pass=may_pass, status=status, retry_after=retry_after
    )


def ask(client, times=1, waves=1):
    """What so many calls at once return or raise, wave after wave."""

    async def work():
        replies = []
        for _ in range(waves):
            calls = (client.ask(REQUEST) for _ in range(times))
            replies += await asyncio.gather(*calls, return_exceptions=True)
        return replies

    return asyncio.run(work())


def test_a_failure_that_may_pass_is_retried_and_every_attempt_is_counted():
    asking = client(Scripted("m/a", error("rate", 429), error("server", 503)))

    assert ask(asking)[0].text == "hi"
    assert asking.outcomes == {"429 rate": 1, "503 server": 1, "answered": 1}


def test_the_wait_that_a_server_asks_for_holds_for_the_call_and_for_later_ones():
    slept = []

    ask(client(Scripted("m/a", error("rate", 429, retry_after=100.0)), slept=slept))

    retry_wait, next_wait = slept
    assert retry_wait == 100
    assert (
        0 < next_wait <= 100
    )  # what is left of it by the clock, which no sleep of this test moves


@pytest.mark.parametrize(("kind", "calls"), [("length", 1), ("rate", 3)])
def test_the_last_failure_is_raised(kind, calls):
    model = Scripted("m/a", *[error(kind)] * 9)

    [failure] = ask(client(model, attempts=3))

    assert (failure.kind, model.calls) == (kind, calls)


def test_no_further_call_is_made_without_a_valid_key():
    model = Scripted("m/a", *[error("key", 401)] * 9)
    asking = client(model, concurrency=1)

    assert [failure.kind for failure in ask(asking, 6)] == ["key"] * 6
    assert (model.calls, asking.stopped.kind) == (1, "key")


def test_a_server_counts_as_away_after_some_failures_in_a_row():
    model = Scripted("m/a", *[error("server")] * (MAX_FAILURES - 1))
    asking = client(model, attempts=1, concurrency=2)
    assert isinstance(ask(asking, 1, waves=MAX_FAILURES)[-1], ChatReply)
    model.calls, model.script = 0, [error("server")] * 9_999

    replies = ask(asking, 4, waves=50)

    assert all(isinstance(reply, CompletionError) for reply in replies)
    assert model.calls <= MAX_FAILURES + 4
    assert asking.stopped.kind == "away"


def test_no_more_calls_run_at_once_than_the_limit_and_a_failed_one_frees_its_slot():
    running = 0
    peak = 0

    class Watched(Scripted):
        async def complete(self, request):
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            try:
                return await super().complete(request)
            finally:
                running -= 1

    replies = ask(client(Watched("m/a", *[error("request")] * 5), concurrency=3), 30)

    assert (peak, running) == (3, 0)
    assert sum(isinstance(reply, ChatReply) for reply in replies) == 25


def test_the_budget_holds_however_many_calls_run_at_once():
    budget = Budget(tokens=200)
    model = Scripted("m/a")

    replies = ask(client(model, budget=budget), 100)

    assert budget.spent_tokens <= 200
    assert sum(isinstance(reply, BudgetExhausted) for reply in replies) == 100 - model.calls
    assert model.calls >= 30


async def fail():
    raise CompletionError("away", kind="server")


async def answer():
    return reply(cost=0.1)


def test_a_budget_of_exactly_what_is_needed_is_enough_and_then_refuses():
    budget = Budget(usd=0.3)

    async def spend_all():
        for _ in range(3):
            with pytest.raises(CompletionError, match="away"):
                await budget.spend(0.1, 10, fail)  # a call without a reply is free
            await budget.spend(0.1, 10, answer)
        await budget.spend(0.08, 10, answer)

    with pytest.raises(
        BudgetExhausted, match=r"budget_usd = 0.3: 3 replies used 0.3000 USD and 15 tokens"
    ):
        asyncio.run(spend_all())
