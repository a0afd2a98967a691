"""What a run would buy and what that would cost, said before any money is spent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.order_book import OrderBook
from tasks.enrichment.orders import Order
from tasks.enrichment.products import typical_output_tokens
from tasks.settings.enrichment import EnrichSettings, Product

SAMPLE = 40
"""Prompts of each product that are rendered and counted; the rest is taken to be like them."""
ENOUGH_REPLIES = 20
"""From so many replies on, the ledger knows better than a table how long they are."""

Price = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ProductEstimate:
    """One product: its orders, those that the ledger holds (accepted, or rejected for good), and
    those to be bought.

    `calls` counts one or, with think, two for each order to be bought; repairs and retries come on
    top. `cost_usd` is None if nobody knows the price.
    """

    orders: int
    accepted: int
    rejected: int
    to_buy: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The whole run, by product."""

    model: str
    products: dict[str, ProductEstimate]

    def to_dict(self) -> dict[str, Any]:
        """The estimate as JSON values, with the sums over all products."""
        parts = list(self.products.values())
        costs = [part.cost_usd for part in parts]
        return {
            "model": self.model,
            "products": {
                name: {field: getattr(part, field) for field in part.__slots__}
                for name, part in self.products.items()
            },
            "to_buy": sum(part.to_buy for part in parts),
            "calls": sum(part.calls for part in parts),
            "prompt_tokens": sum(part.prompt_tokens for part in parts),
            "completion_tokens": sum(part.completion_tokens for part in parts),
            "cost_usd": None
            if None in costs
            else round(sum(cost for cost in costs if cost is not None), 6),
        }


def estimate(
    book: OrderBook,
    ledger: LakeLedger,
    settings: EnrichSettings,
    count: Callable[[str], int],
    price: Price | None,
) -> Estimate:
    """What these orders would cost.

    Args:
        count: the tokens of a text, without any network.
        price: USD for a token of prompt and of reply; None if nobody knows.
    """
    by_product: dict[Product, list[Order]] = {product: [] for product in settings.products}
    for order in book.orders():
        by_product[order.product].append(order)
    lengths = _lengths(ledger, settings.model)
    return Estimate(
        settings.model,
        {
            product: _product(orders, ledger, settings, count, price, lengths.get(product))
            for product, orders in by_product.items()
        },
    )


def _product(
    orders: Sequence[Order],
    ledger: LakeLedger,
    settings: EnrichSettings,
    count: Callable[[str], int],
    price: Price | None,
    length: float | None,
) -> ProductEstimate:
    answers = [order.answer(ledger) for order in orders]
    accepted = sum(answer is not None and answer.value is not None for answer in answers)
    rejected = sum(answer is not None and answer.value is None for answer in answers)
    # Tools with the same content share one reply.
    missing = list(
        {
            order.key: order
            for order, answer in zip(orders, answers, strict=True)
            if answer is None
        }.values()
    )
    calls = len(missing) * (2 if settings.think else 1)
    prompt = round(_mean_prompt(missing, ledger, count) * calls)
    reply = (
        round((length or typical_output_tokens(missing[0].product, settings)) * calls)
        if missing
        else 0
    )
    cost = prompt * price[0] + reply * price[1] if price else (None if missing else 0.0)
    return ProductEstimate(
        len(orders), accepted, rejected, len(missing), calls, prompt, reply, cost
    )


def _mean_prompt(
    missing: Sequence[Order], ledger: LakeLedger, count: Callable[[str], int]
) -> float:
    """Tokens of a prompt: counted in a sample, spread evenly over the orders."""
    sample = missing[:: max(1, len(missing) // SAMPLE)][:SAMPLE]
    if not sample:
        return 0.0
    requests = [order.next(ledger, {}).request for order in sample]
    texts = [
        "\n".join(message.content for message in request.messages) + str(request.schema or "")
        for request in requests
    ]
    return sum(count(text) for text in texts) / len(texts)


def _lengths(ledger: LakeLedger, model: str) -> dict[str, float]:
    """Mean tokens of a reply by product, where enough of them are known."""
    seen: dict[str, list[int]] = {}
    for entry in ledger.all():
        if entry.model == model:
            seen.setdefault(entry.product, []).append(entry.completion_tokens)
    return {
        product: sum(counts) / len(counts)
        for product, counts in seen.items()
        if len(counts) >= ENOUGH_REPLIES
    }
