"""Live enrichment: one call at a time per tool, many tools at once.

Each reply is stored before the next request about its tool."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

from pegboard.errors import CompletionError, PegboardError
from pegboard.llm.client import MAX_FAILURES, Client
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.enrichment.models import spent_budgets
from tasks.enrichment.replies import FORM_REASONS
from tasks.enrichment.requests import Chain, ProductRequest
from tasks.runtime import progress
from tasks.settings.enrichment import Product

MADE_FROM: Mapping[Product, frozenset[Product]] = {
    "questions": frozenset({"description"}),
    "topics": frozenset({"description", "questions"}),
}
"""The products whose texts stand in the prompt of another one."""


class LiveRun:
    """One live run.

    Attributes:
        completed: requests whose reply was accepted in this run, by product.
        failures: requests without a reply, with the error.
        invalid: requests whose reply was rejected in this run for its form, by product.
        stopped: why the run ended early, if it did.
    """

    def __init__(self, chains: Sequence[Chain], ledger: LakeLedger, client: Client) -> None:
        self.completed: Counter[Product] = Counter()
        self.failures: list[tuple[ProductRequest, CompletionError]] = []
        self.invalid: Counter[Product] = Counter()
        self.stopped: PegboardError | None = None
        self._chains = chains
        self._ledger = ledger
        self._client = client
        self._spent = 0
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def run(self) -> None:
        """Request everything that the ledger lacks.

        Twice as many chains as calls are at work: some judge a reply or wait for the disk.
        """
        unfinished = [
            chain
            for chain in self._chains
            if any(request.final_reply(self._ledger) is None for request in chain)
        ]
        width = 2 * self._client.concurrency
        try:
            async with self._client as client:
                await client.for_each(unfinished, self._run_chain, width)
            self.stopped = client.stopped
        except* PegboardError as errors:
            self.stopped = cast("PegboardError", errors.exceptions[0])

    async def _run_chain(self, chain: Chain) -> None:
        accepted: dict[Product, Any] = {}
        unrecorded: set[Product] = set()
        for request in chain:
            if MADE_FROM.get(request.product, frozenset()) & unrecorded:
                continue
            try:
                reply = await self._complete(request, accepted)
            except CompletionError as error:
                if self._client.stopped is None:
                    self.failures.append((request, error))
                if error.kind == "unrecorded":
                    unrecorded.add(request.product)
                    continue
                return  # what comes after would be made without it, and be kept
            if reply is None:
                return
            if reply.value is not None:
                accepted[request.product] = json.loads(reply.value)

    async def _complete(
        self, request: ProductRequest, accepted: dict[Product, Any]
    ) -> StoredReply | None:
        """Return the final reply to a request; None if the client stopped before there was one."""
        # Tools with the same content share a request: it is made once.
        lock = self._locks.setdefault(request.key, asyncio.Lock())
        async with lock:
            reply = request.final_reply(self._ledger)
            while reply is None and self._client.stopped is None:
                step, call = request.next_call(self._ledger, accepted)
                stored = request.judge_reply(step, await self._client.ask(call), self._ledger.run)
                await self._ledger.add(stored)
                if stored.final:
                    reply = stored
                    self._count(request, stored)
        return reply

    def _count(self, request: ProductRequest, reply: StoredReply) -> None:
        self.completed[request.product] += int(reply.value is not None)
        self.invalid[request.product] += int(reply.reason in FORM_REASONS)
        self._spent = self._spent + 1 if reply.reason == "spent" else 0
        if self._spent >= MAX_FAILURES:
            self._client.stopped = self._client.stopped or spent_budgets(
                self._spent, request.settings
            )
        budget = self._client.budget
        spent = f"{budget.spent_usd:.4f} USD, {budget.spent_tokens} tokens"
        progress.advance("enrich", text=spent)
