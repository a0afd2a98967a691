"""Buying orders by batches, which providers sell at half price and answer within a day.

    lake/ledger/batches/<token>.json    a batch that was sent, or was about to be: its id, and the
    order behind each request

The file is written before the batch is created, without its id, and again with it. A run that finds
one without an id looks for the token in the provider's list of batches; so a process that dies
between the two pays for nothing twice. A later run collects what has ended."""

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError, PegboardError
from pegboard.llm import ChatReply
from pegboard.llm.batches import HostedBatches
from pegboard.llm.budget import Budget, Price, Reservation, reservation_for
from tasks import progress
from tasks.enrichment.ledger import LakeLedger, Step, StoredReply
from tasks.enrichment.order_book import Chain, OrderBook
from tasks.enrichment.orders import Ask, Order
from tasks.lake.files import Lake
from tasks.settings.enrichment import EnrichSettings, Product

FOLDER = "ledger/batches"
POLL_SECONDS = 15.0
LOOKS = 3
"""How often a batch without an id is looked for: a provider's list may lag behind what it has just
accepted.
"""
TRIES = 2
"""How often in one run a request is put into a batch that then gives no reply to it."""
MADE_FROM: dict[Product, tuple[Product, ...]] = {
    "questions": ("description",),
    "topics": ("description", "questions"),
}


def batches_for(settings: EnrichSettings) -> HostedBatches:
    """The batches of the configured model."""
    price = (settings.price.input, settings.price.output) if settings.price else None
    return HostedBatches(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        price=price,
    )


def batches_out(lake: Lake) -> list[str]:
    """The batches that were sent and not collected, as files of the lake."""
    return lake.files(FOLDER, "json")


def refuse_batches_out(lake: Lake) -> None:
    """Raises ConfigurationError if batches are out: live calls would buy the same once more."""
    if out := batches_out(lake):
        raise ConfigurationError(
            f"{len(out)} batch{'es are' if len(out) > 1 else ' is'} under way or not collected, "
            f"and live calls would buy the same "
            "once more. Set mode = 'batch' under [enrich] and run again to collect, or give them "
            "up by deleting "
            f"{', '.join(f'{lake.uri}/{path}' for path in out[:3])}{' ...' if len(out) > 3 else ''}"
        )


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch as the lake remembers it: `orders` are [custom id, key, step] of its requests."""

    token: str
    batch: str | None
    orders: list[list[str]]

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.token}.json"

    def keep(self, lake: Lake) -> None:
        lake.write_json(
            self.path, {"token": self.token, "batch": self.batch, "orders": self.orders}
        )


class BatchPurchase:
    """One run of buying by batches: collect, send what is due, wait as long as allowed. `waiting`
    names what is still out.
    """

    def __init__(
        self,
        book: OrderBook,
        ledger: LakeLedger,
        batches: HostedBatches,
        lake: Lake,
        budget: Budget,
        settings: EnrichSettings,
        price: Price | None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.bought: Counter[Product] = Counter()
        self.failures: list[tuple[Order, CompletionError]] = []
        self.stopped: PegboardError | None = None
        self.waiting: list[str] = []
        self._book, self._ledger, self._batches, self._lake = book, ledger, batches, lake
        self._budget, self._settings, self._price, self._poll = (
            budget,
            settings,
            price,
            poll_seconds,
        )
        self._orders = {order.key: order for order in book.orders()}
        self._unanswered: Counter[str] = Counter()
        self._aside: dict[str, list[Reservation]] = {}

    async def run(self) -> None:
        """Go on until nothing is left to buy, or until what is out takes longer than
        `batch_wait`.
        """
        until = time.monotonic() + self._settings.batch_wait
        try:
            while True:
                sent = await self._collect()
                if self.stopped is None:
                    sent += await self._send(sent)
                if not sent:
                    return
                if time.monotonic() >= until:
                    self.waiting = [f"{one.batch} ({len(one.orders)} requests)" for one in sent]
                    return
                await asyncio.sleep(min(self._poll, max(0.0, until - time.monotonic())))
        except PegboardError as error:
            self.stopped = error

    async def _collect(self) -> list[_Sent]:
        """Take what has ended into the ledger; return what is still out."""
        out: list[_Sent] = []
        for path in batches_out(self._lake):
            sent = await self._identified(_Sent(**self._lake.read_json(path)))
            if sent is None:
                continue
            assert sent.batch is not None
            status = await self._batches.status(sent.batch)
            if status.state == "running":
                out.append(sent)
                continue
            results = await self._batches.results(sent.batch) if status.state == "ended" else []
            self._take(sent, results, status.detail)
            self._lake.delete(sent.path)
        return out

    async def _identified(self, sent: _Sent) -> _Sent | None:
        """The batch with its id; None if it was never created, so that its orders are still to be
        sent.
        """
        for look in range(LOOKS):
            if sent.batch is not None:
                return sent
            found = await self._batches.find(sent.token)
            if found is not None:
                sent = _Sent(sent.token, found, sent.orders)
                sent.keep(self._lake)
                return sent
            if look < LOOKS - 1:
                await asyncio.sleep(min(self._poll, 2.0))
        self._lake.delete(sent.path)
        return None

    def _take(
        self, sent: _Sent, results: Sequence[tuple[str, ChatReply | CompletionError]], detail: str
    ) -> None:
        for reserve in self._aside.pop(sent.token, ()):
            self._budget.release(reserve)
        replies = dict(results)
        run = f"{self._ledger.run}:{sent.token}"
        entries: list[StoredReply] = []
        for custom_id, key, step in sent.orders:
            order = self._orders.get(key)
            if order is None:
                continue  # the tool has changed or gone since; nothing asks for this reply any more
            reply = replies.get(custom_id) or CompletionError(
                detail or "the batch ended without a reply to this request"
            )
            if isinstance(reply, CompletionError):
                self._unanswered[key] += 1
                if self._unanswered[key] >= TRIES:
                    self.failures.append((order, reply))
                continue
            if any(
                entry.run.endswith(sent.token) and entry.step == step
                for entry in self._ledger.entries(key)
            ):
                # collected before, by a run that was killed before it could forget the batch
                continue
            entries.append(order.receive(cast("Step", step), reply, run))
            self._budget.count(reply)
            self.bought[order.product] += entries[-1].final
        self._ledger.add_all(entries)
        progress.advance(
            "enrich", sum(entry.final for entry in entries), f"{self._budget.spent_usd:.4f} USD"
        )

    async def _send(self, out: Sequence[_Sent]) -> list[_Sent]:
        """Send everything that can be asked now and is not out already."""
        under_way = {key for sent in out for _, key, _ in sent.orders}
        due = list({order.key: (order, ask) for order, ask in self._due(under_way)}.values())
        size = self._settings.batch_requests
        sent: list[_Sent] = []
        for start in range(0, len(due), size):
            part, aside = self._affordable(due[start : start + size])
            if part:
                sent.append(await self._submit(part))
                self._aside[sent[-1].token] = aside
        return sent

    async def _submit(self, part: Sequence[tuple[Order, Ask]]) -> _Sent:
        token = f"pegboard-{uuid.uuid4().hex}"
        orders = [[f"{number}", order.key, ask.step] for number, (order, ask) in enumerate(part)]
        sent = _Sent(token, None, orders)
        sent.keep(self._lake)
        requests = [(f"{number}", ask.request) for number, (_, ask) in enumerate(part)]
        sent = _Sent(token, await self._batches.submit(requests, token), orders)
        sent.keep(self._lake)
        return sent

    def _due(self, under_way: set[str]) -> list[tuple[Order, Ask]]:
        """Every order that has no answer, is not out, and whose earlier products are decided."""
        return [pair for chain in self._book.chains for pair in self._due_of(chain, under_way)]

    def _due_of(self, chain: Chain, under_way: set[str]) -> list[tuple[Order, Ask]]:
        answers: dict[Product, StoredReply | None] = {
            order.product: order.answer(self._ledger) for order in chain
        }
        made: dict[Product, Any] = {
            product: json.loads(one.value)
            for product, one in answers.items()
            if one is not None and one.value
        }
        due: list[tuple[Order, Ask]] = []
        for order in chain:
            needs: list[Product] = [
                product for product in MADE_FROM.get(order.product, ()) if product in answers
            ]
            if answers[order.product] is not None or any(
                answers[product] is None for product in needs
            ):
                continue
            if order.key not in under_way and self._unanswered[order.key] < TRIES:
                due.append((order, order.next(self._ledger, made)))
        return due

    def _affordable(
        self, part: Sequence[tuple[Order, Ask]]
    ) -> tuple[list[tuple[Order, Ask]], list[Reservation]]:
        """As many as fit into the budget beside what this run has sent already, and what is set
        aside for them.
        """
        fits: list[tuple[Order, Ask]] = []
        aside: list[Reservation] = []
        for order, ask in part:
            reserve = reservation_for(ask.request, self._price)
            try:
                self._budget.reserve_now(reserve)
            except BudgetExhausted as error:
                self.stopped = error
                break
            fits.append((order, ask))
            aside.append(reserve)
        return fits, aside
