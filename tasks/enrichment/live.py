"""Buying orders one call at a time, many at once: each reply is in the ledger before the next thing
is asked for its tool.
"""

import asyncio
import json
from collections import Counter
from typing import Any

from pegboard.errors import CompletionError, PegboardError
from pegboard.llm.client import Client
from tasks import progress
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.enrichment.order_book import Chain, OrderBook
from tasks.enrichment.orders import Order
from tasks.settings.enrichment import Product


class LivePurchase:
    """One run of buying. `stopped` says why it ended early, `failures` what could not be had this
    time.
    """

    def __init__(self, book: OrderBook, ledger: LakeLedger, client: Client) -> None:
        self.bought: Counter[Product] = Counter()
        self.failures: list[tuple[Order, CompletionError]] = []
        self.stopped: PegboardError | None = None
        self.waiting: list[str] = []
        self._book, self._ledger, self._client = book, ledger, client
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
        try:
            width = min(2 * self._client.pacing.concurrency, len(wanting))
            if wanting:
                await self._client.for_each(wanting, self._buy_chain, width)
            self.stopped = self._client.stopped
        except* PegboardError as errors:
            self.stopped = _first(errors)
        finally:
            await self._ledger.flush()

    async def _buy_chain(self, chain: Chain) -> None:
        made: dict[Product, Any] = {}
        for order in chain:
            entry = order.answer(self._ledger)
            if entry is None:
                try:
                    entry = await self._buy_once(order, made)
                except CompletionError as error:
                    if self._client.stopped is None:
                        self.failures.append((order, error))
            if entry is None:
                return  # what comes after would be made without it, and be kept
            if entry.value is not None:
                made[order.product] = json.loads(entry.value)

    async def _buy_once(self, order: Order, made: dict[Product, Any]) -> StoredReply | None:
        """Buy an order, unless a tool with the same content has it bought just now."""
        lock = self._locks.get(order.key)
        if lock is None:
            return await self._buy(order, made)
        async with lock:
            return order.answer(self._ledger) or await self._buy(order, made)

    async def _buy(self, order: Order, made: dict[Product, Any]) -> StoredReply | None:
        while self._client.stopped is None:
            ask = order.next(self._ledger, made)
            reply = await self._client.ask(ask.request)
            entry = order.receive(ask.step, reply, self._ledger.run)
            await self._ledger.add(entry)
            if entry.final:
                self.bought[order.product] += 1
                progress.advance("enrich", text=self._spent())
                return entry
        return None

    def _spent(self) -> str:
        budget = self._client.budget
        return f"{budget.spent_usd:.4f} USD, {budget.spent_tokens} tokens"


def _first(errors: BaseExceptionGroup[PegboardError]) -> PegboardError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, PegboardError)
    return error
