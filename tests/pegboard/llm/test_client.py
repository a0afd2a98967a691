"""Asking under limits: retries, fallbacks, models that are of no use any more, and the count of
what became of every call.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.budget import Budget, reservation_for
from pegboard.llm.client import MAX_FAILURES, MAX_FAILURES_BEFORE_REPLY, Client
from pegboard.llm.pacing import Pacing

REQUEST = ChatRequest(messages=(Message("user", "hello"),), max_tokens=10)


class Scripted:
    """A completer that fails as its script says, and answers from then on."""

    def __init__(self, name: str, *script: CompletionError) -> None:
        self.name = name
        self.script = list(script)
        self.calls = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.calls += 1
        await asyncio.sleep(0)
        if self.script:
            raise self.script.pop(0)
        return ChatReply(
            text="hi",
            finish_reason="stop",
            model=self.name,
            prompt_tokens=4,
            completion_tokens=1,
            cost_usd=0.5,
            seconds=0.0,
        )


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def client(
    *completers: Any, budget: Budget | None = None, sleep: Any = None, **pacing: Any
) -> Client:
    return Client(completers, budget=budget, pacing=Pacing(**pacing), sleep=sleep or Sleeper())


def busy(retry_after: float | None = None) -> CompletionError:
    return CompletionError("busy", kind="rate", may_pass=True, retry_after=retry_after, status=429)


def ask(client: Client, times: int = 1, waves: int = 1) -> Sequence[Any]:
    """What so many calls at once return or raise, wave after wave."""

    async def work() -> Sequence[Any]:
        replies: list[Any] = []
        for _ in range(waves):
            replies += await asyncio.gather(
                *(client.ask(REQUEST) for _ in range(times)), return_exceptions=True
            )
        return replies

    return asyncio.run(work())


def test_a_call_that_may_pass_is_tried_again_and_every_attempt_is_counted() -> None:
    model = Scripted(
        "m/a", busy(), CompletionError("down", kind="server", may_pass=True, status=503)
    )
    asking = client(model)
    assert ask(asking)[0].text == "hi"
    assert asking.outcomes == {
        ("m/a", "429 rate"): 1,
        ("m/a", "503 server"): 1,
        ("m/a", "answered"): 1,
    }


def test_the_wait_that_a_server_asks_for_is_kept_by_the_call_and_by_those_after_it() -> None:
    sleeper = Sleeper()
    ask(client(Scripted("m/a", busy(retry_after=100.0)), sleep=sleeper))
    own, of_all = sleeper.slept
    assert own == 100
    assert 0 < of_all <= 100  # what is left of it by the clock, which no sleep of this test moves


def test_what_cannot_pass_is_not_tried_again() -> None:
    model = Scripted("m/a", CompletionError("too long", kind="length", status=400))
    (error,) = ask(client(model))
    assert isinstance(error, CompletionError)
    assert model.calls == 1


def test_attempts_end_and_the_last_failure_is_told() -> None:
    model = Scripted("m/a", *(busy() for _ in range(9)))
    (error,) = ask(client(model, attempts=3))
    assert (str(error), model.calls) == ("busy", 3)


def test_a_fallback_is_asked_when_the_model_gave_up() -> None:
    first, second = Scripted("m/a", *(busy() for _ in range(9))), Scripted("m/b")
    assert ask(client(first, second, attempts=2))[0].model == "m/b"


def test_a_model_without_a_valid_key_is_asked_once_and_never_again() -> None:
    first, second = (
        Scripted("m/a", *(CompletionError("no key", kind="key", status=401) for _ in range(9))),
        Scripted("m/b"),
    )
    asking = client(first, second, concurrency=2)
    assert [reply.model for reply in ask(asking, 6)] == ["m/b"] * 6
    assert first.calls == 1
    assert asking.stopped is None


def test_when_no_model_is_left_the_client_says_why() -> None:
    asking = client(Scripted("m/a", CompletionError("no key", kind="key", status=401)))
    ask(asking)
    assert str(asking.stopped) == "no key"


def test_a_server_that_is_away_is_not_asked_a_thousand_times() -> None:
    model = Scripted(
        "m/a", *(CompletionError("refused", kind="server", may_pass=True) for _ in range(9_999))
    )
    asking = client(model, attempts=2, concurrency=4)
    replies = ask(asking, 4, waves=50)
    assert all(isinstance(reply, CompletionError) for reply in replies)
    assert model.calls <= 2 * MAX_FAILURES_BEFORE_REPLY + 8
    assert asking.stopped is not None
    assert asking.stopped.kind == "away"


def test_a_server_that_has_answered_may_fail_longer_before_it_counts_as_away() -> None:
    model = Scripted("m/a")
    asking = client(model, attempts=1, concurrency=2)
    ask(asking)
    model.script = [
        CompletionError("refused", kind="server", may_pass=True) for _ in range(MAX_FAILURES - 1)
    ]
    ask(asking, MAX_FAILURES)
    assert asking.stopped is None


def test_a_refusal_for_its_rate_narrows_the_width_and_a_wrong_request_does_not() -> None:
    crowded = client(Scripted("m/a", *(busy() for _ in range(45))), concurrency=32)
    ask(crowded, 40)
    assert crowded.lowest_concurrency == 16
    wrong = client(
        Scripted("m/a", *(CompletionError("bad", kind="request", status=400) for _ in range(45))),
        concurrency=64,
    )
    ask(wrong, 60)
    assert wrong.lowest_concurrency == 64


def test_the_budget_holds_however_many_calls_run_at_once() -> None:
    budget = Budget(tokens=200)
    model = Scripted("m/a")
    replies = ask(client(model, budget=budget), 100)
    exhausted = [reply for reply in replies if isinstance(reply, BudgetExhausted)]
    assert budget.prompt_tokens + budget.completion_tokens <= 200
    assert len(exhausted) == 100 - model.calls
    assert model.calls >= 30


def test_a_reserve_covers_the_prompt_and_the_longest_reply() -> None:
    request = ChatRequest(messages=(Message("user", "word " * 300),), max_tokens=100)
    reserve = reservation_for(request, (1e-6, 4e-6))
    assert reserve.tokens >= 300 + 100
    assert reserve.usd >= 300e-6 + 400e-6
