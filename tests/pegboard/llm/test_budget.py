"""What a run may spend."""

import asyncio

import pytest

from pegboard.errors import BudgetExhausted
from pegboard.llm import ChatReply
from pegboard.llm.budget import Budget, Reservation


def reply(cost: float | None = 0.01, tokens: int = 10) -> ChatReply:
    return ChatReply(
        text="",
        finish_reason="stop",
        model="m",
        prompt_tokens=tokens,
        completion_tokens=0,
        cost_usd=cost,
        seconds=0.1,
    )


def test_a_budget_of_exactly_what_is_needed_is_enough() -> None:
    budget = Budget(usd=0.3)

    async def spend() -> None:
        for _ in range(3):
            await budget.reserve(Reservation(0.1, 10))
            await budget.settle(Reservation(0.1, 10), reply(0.1))

    asyncio.run(spend())
    assert budget.spent_usd == pytest.approx(0.3)


def test_a_call_that_does_not_fit_is_refused_and_the_message_says_what_was_used() -> None:
    budget = Budget(usd=0.1)

    async def spend() -> None:
        await budget.reserve(Reservation(0.08, 10))
        await budget.settle(Reservation(0.08, 10), reply(0.05))
        await budget.reserve(Reservation(0.08, 10))

    with pytest.raises(
        BudgetExhausted, match=r"budget_usd = 0.1: 1 replies used 0.0500 USD and 10 tokens"
    ):
        asyncio.run(spend())


def test_a_call_waits_for_those_under_way_before_it_is_refused() -> None:
    budget = Budget(tokens=100)
    order: list[str] = []

    async def first() -> None:
        await budget.reserve(Reservation(0, 90))
        await asyncio.sleep(0)  # the second one comes to wait
        order.append("first")
        await budget.settle(Reservation(0, 90), reply(tokens=20))

    async def second() -> None:
        await budget.reserve(Reservation(0, 70))
        order.append("second")
        await budget.settle(Reservation(0, 70), reply(tokens=20))

    async def both() -> None:
        await asyncio.gather(first(), second())

    asyncio.run(both())
    assert order == ["first", "second"]


def test_a_call_without_a_reply_costs_nothing() -> None:
    budget = Budget(usd=0.1)

    async def spend() -> None:
        for _ in range(5):
            await budget.reserve(Reservation(0.1, 10))
            await budget.settle(Reservation(0.1, 10), None)

    asyncio.run(spend())
    assert budget.spent_usd == 0
    assert budget.replies == 0


def test_replies_of_unknown_price_are_counted_apart() -> None:
    budget = Budget()
    budget.count(reply(None))
    budget.count(reply(0.5))
    assert (budget.replies, budget.unpriced, budget.spent_usd) == (2, 1, 0.5)
