"""Buying orders one call at a time, many at once: each reply is in the ledger before the next thing
is asked for its tool.
"""

import asyncio
import json
from collections import Counter
from typing import Any

from pegboard.errors import BudgetExhausted, CompletionError, PegboardError
from tasks import progress
from tasks.enrichment.calls import Caller
from tasks.enrichment.ledger import Entry, Ledger
from tasks.enrichment.order_book import Chain, OrderBook
from tasks.enrichment.orders import Order
from tasks.settings.enrichment import Product


class LivePurchase:
    """One run of buying. `stopped` says why it ended early, `failures` what could not be had this
    time.
    """

    def __init__(self, book: OrderBook, ledger: Ledger, caller: Caller, width: int) -> None:
        self.bought: Counter[Product] = Counter()
        self.failures: list[tuple[Order, CompletionError]] = []
        self.stopped: PegboardError | None = None
        self.waiting: list[str] = []
        self._book, self._ledger, self._caller, self._width = book, ledger, caller, width
        self._locks = {key: asyncio.Lock() for key in book.shared}

    async def run(self) -> None:
        """Buy what the ledger lacks. More tools are at work than calls may run: some judge a reply
        or wait for the disk.
        """
        wanting = [
            chain
            for chain in self._book.chains
            if any(order.answer(self._ledger) is None for order in chain)
        ]
        chains = iter(wanting)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(2 * self._width, len(wanting))):
                    group.create_task(self._work(chains))
        except* PegboardError as errors:
            self.stopped = _first(errors)
        finally:
            await self._ledger.flush()

    async def _work(self, chains: Any) -> None:
        for chain in chains:
            if self.stopped is not None:
                return
            await self._buy_chain(chain)

    async def _buy_chain(self, chain: Chain) -> None:
        made: dict[Product, Any] = {}
        for order in chain:
            entry = order.answer(self._ledger)
            if entry is None:
                try:
                    entry = await self._buy_once(order, made)
                except BudgetExhausted as error:
                    self.stopped = self.stopped or error
                except CompletionError as error:
                    if self._caller.lost is not None:
                        self.stopped = self.stopped or self._caller.lost
                    else:
                        self.failures.append((order, error))
            if entry is None:
                return  # what comes after would be made without it, and be kept
            if entry.value is not None:
                made[order.product] = json.loads(entry.value)

    async def _buy_once(self, order: Order, made: dict[Product, Any]) -> Entry | None:
        """Buy an order, unless a tool with the same content has it bought just now."""
        lock = self._locks.get(order.key)
        if lock is None:
            return await self._buy(order, made)
        async with lock:
            return order.answer(self._ledger) or await self._buy(order, made)

    async def _buy(self, order: Order, made: dict[Product, Any]) -> Entry | None:
        while self.stopped is None:
            ask = order.next(self._ledger, made)
            reply = await self._caller.ask(ask.request)
            entry = order.receive(ask.step, reply, self._ledger.run)
            await self._ledger.add(entry)
            if entry.final:
                self.bought[order.product] += 1
                progress.advance("enrich", text=self._spent())
                return entry
        return None

    def _spent(self) -> str:
        budget = self._caller.budget
        return (
            f"{budget.spent_usd:.4f} USD, {budget.prompt_tokens + budget.completion_tokens} tokens"
        )


def _first(errors: BaseExceptionGroup[PegboardError]) -> PegboardError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, PegboardError)
    return error
