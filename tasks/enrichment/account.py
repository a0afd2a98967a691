"""What a run of buying came to: figures beside the estimate, and sentences for the person who
started it.
"""

import json
from collections import Counter
from typing import Any, Protocol

from pegboard.errors import CompletionError, PegboardError
from pegboard.llm.client import Client
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.enrichment.order_book import OrderBook
from tasks.enrichment.orders import Order
from tasks.settings.enrichment import Product

FAILURES_NAMED = 5
"""Pieces that could not be written and are named; the rest are counted."""


class Purchase(Protocol):
    """What live calls and batches both leave behind."""

    bought: Counter[Product]
    failures: list[tuple[Order, CompletionError]]
    stopped: PegboardError | None
    waiting: list[str]

    async def run(self) -> None:
        """Buy what the ledger lacks."""
        ...


def actual_figures(
    book: OrderBook,
    ledger: LakeLedger,
    purchase: Purchase,
    client: Client,
    seconds: float,
) -> dict[str, Any]:
    """Counts, tokens, cost and time of a run as JSON values, in the same places as the
    estimate's.
    """
    answers, budget = _answers(book, ledger), client.budget
    calls: dict[str, dict[str, int]] = {}
    for (model, outcome), count in sorted(client.outcomes.items()):
        calls.setdefault(model, {})[outcome] = count
    dropped = Counter(
        (product, reason)
        for product, answer in answers
        for _, reason in json.loads(answer.dropped)
        if answer.value
    )
    rejected = Counter(
        (product, answer.reason) for product, answer in answers if answer.value is None
    )
    return {
        "bought": dict(purchase.bought),
        "accepted": dict(
            Counter(product for product, answer in answers if answer.value is not None)
        ),
        "rejected": _by_product(rejected),
        "dropped": _by_product(dropped),
        "failed": len(purchase.failures),
        "replies": budget.replies,
        "calls": calls,
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost_usd": None if budget.unpriced else round(budget.spent_usd, 6),
        "seconds": round(seconds, 3),
        "narrowest_width": client.lowest_concurrency,
    }


def stale_prompts(book: OrderBook, ledger: LakeLedger) -> tuple[str, ...]:
    """Prompts whose wording is another than the one that earlier replies were bought with, under
    the same version.
    """
    stale: set[tuple[str, str]] = set()
    for order in book.orders():
        answer, prompt = order.answer(ledger), order.stationery.prompt
        if answer is not None and answer.prompt != order.wording:
            stale.add((str(prompt.path), prompt.version))
    return tuple(
        f"{path} was changed, but its version is still '{version}': what was bought with the old "
        f"wording is kept. Give it another "
        "version to have it bought anew."
        for path, version in sorted(stale)
    )


def _answers(book: OrderBook, ledger: LakeLedger) -> list[tuple[str, StoredReply]]:
    pairs = [(order.product, order.answer(ledger)) for order in book.orders()]
    return [(product, answer) for product, answer in pairs if answer is not None]


def _by_product(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for (product, reason), count in sorted(counts.items()):
        table.setdefault(product, {})[reason] = count
    return table


def problems_of(purchase: Purchase) -> tuple[str, ...]:
    """What could not be written this time, the first few by name."""
    failures = purchase.failures
    lines = [
        f"{order.product} of {order.subject} was not written: {error}"
        for order, error in failures[:FAILURES_NAMED]
    ]
    if len(failures) > FAILURES_NAMED:
        lines.append(
            f"... and {len(failures) - FAILURES_NAMED} more were not written; the next run asks "
            f"for them again"
        )
    return tuple(lines)


def stopped_early(error: PegboardError | None, book: OrderBook, ledger: LakeLedger) -> str:
    """Why buying ended early and how far it got; empty if it did not."""
    if error is None:
        return ""
    orders = list(book.orders())
    there = sum(order.answer(ledger) is not None for order in orders)
    return f"{str(error).rstrip('.')}. {there} of {len(orders)} pieces are written."
