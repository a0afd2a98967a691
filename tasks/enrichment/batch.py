"""Enrichment by batches, which providers sell at half price and answer within a day.

    lake/ledger/batches/<token>.json    a batch that was sent, or was about to be: its id, and the
                                        ledger key behind each of its calls

The file is written before the batch is created, without its id, and again with it. A run that finds
one without an id looks for the token in the provider's list of batches; so a process that dies
between the two pays for nothing twice. A later run collects what has ended."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError, PegboardError
from pegboard.llm import ChatReply
from pegboard.llm.batches import HostedBatches
from pegboard.llm.budget import Budget, Price, Reservation, reservation_for
from tasks import progress
from tasks.enrichment.ledger import LakeLedger, Step, StoredReply
from tasks.enrichment.requests import Call, Chain, ProductRequest, RequestSet, accepted_values
from tasks.lake.files import Lake
from tasks.settings.enrichment import EnrichSettings, Product

FOLDER = "ledger/batches"
POLL_SECONDS = 15.0
FIND_ATTEMPTS = 3
"""For a batch without an id: a provider's list may lag behind what it has just accepted."""
MAX_BATCHES_PER_REQUEST = 2
"""In one run, for a request that a batch gave no reply to."""
MADE_FROM: dict[Product, tuple[Product, ...]] = {
    "questions": ("description",),
    "topics": ("description", "questions"),
}

_Due = tuple[ProductRequest, Call]


def batches_for(settings: EnrichSettings) -> HostedBatches:
    """Return the batches of the configured model."""
    price = (settings.price.input, settings.price.output) if settings.price else None
    return HostedBatches(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        price=price,
    )


def open_batches(lake: Lake) -> list[str]:
    """Return the batches that were sent and not collected, as files of the lake."""
    return lake.files(FOLDER, "json")


def refuse_open_batches(lake: Lake) -> None:
    """Raise ConfigurationError if batches are open: live calls would pay for the same twice."""
    if paths := open_batches(lake):
        count = f"{len(paths)} batch{'es are' if len(paths) > 1 else ' is'}"
        shown = ", ".join(f"{lake.uri}/{path}" for path in paths[:3])
        raise ConfigurationError(
            f"{count} under way or not collected, and live calls would pay for the same replies "
            "again. Set mode = 'batch' under [enrich] and run again to collect, or delete "
            f"{shown}{' ...' if len(paths) > 3 else ''} to give them up."
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch as the lake remembers it: `calls` are [custom id, ledger key, step]."""

    token: str
    id: str | None
    calls: list[list[str]]

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.token}.json"

    def write(self, lake: Lake) -> None:
        lake.write_json(self.path, asdict(self))


class BatchRun:
    """One run by batches: collect, send what is due, wait as long as allowed.

    Attributes:
        completed: requests that got their final reply in this run, by product.
        failures: requests without a reply, with the error.
        stopped: why the run ended early, if it did.
        waiting: batches that are still under way, for a later run to collect.
    """

    def __init__(
        self,
        requests: RequestSet,
        ledger: LakeLedger,
        batches: HostedBatches,
        lake: Lake,
        budget: Budget,
        settings: EnrichSettings,
        price: Price | None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.completed: Counter[Product] = Counter()
        self.failures: list[tuple[ProductRequest, CompletionError]] = []
        self.stopped: PegboardError | None = None
        self.waiting: list[str] = []
        self._requests, self._ledger, self._batches = requests, ledger, batches
        self._lake, self._budget, self._settings = lake, budget, settings
        self._price, self._poll_seconds = price, poll_seconds
        self._by_key = {request.key: request for request in requests}
        self._unanswered: Counter[str] = Counter()
        self._reserved: dict[str, list[Reservation]] = {}

    async def run(self) -> None:
        """Continue until nothing is left to ask, or `batch_wait` is over."""
        until = time.monotonic() + self._settings.batch_wait
        try:
            while True:
                under_way = await self._collect()
                if self.stopped is None:
                    under_way += await self._send(under_way)
                if not under_way:
                    return
                if time.monotonic() >= until:
                    self.waiting = [
                        f"{batch.id} ({len(batch.calls)} requests)" for batch in under_way
                    ]
                    return
                await asyncio.sleep(min(self._poll_seconds, max(0.0, until - time.monotonic())))
        except PegboardError as error:
            self.stopped = error

    async def _collect(self) -> list[_Batch]:
        """Store the replies of batches that have ended; return those still under way."""
        under_way: list[_Batch] = []
        for path in open_batches(self._lake):
            batch = await self._identified(_Batch(**self._lake.read_json(path)))
            if batch is None:
                continue
            assert batch.id is not None
            status = await self._batches.status(batch.id)
            if status.state == "running":
                under_way.append(batch)
                continue
            results = await self._batches.results(batch.id) if status.state == "ended" else []
            self._store(batch, dict(results), status.detail)
            self._lake.delete(batch.path)
        return under_way

    async def _identified(self, batch: _Batch) -> _Batch | None:
        """The batch with its id; None if it was never created: its calls are still to be sent."""
        if batch.id is not None:
            return batch
        for attempt in range(FIND_ATTEMPTS):
            if identity := await self._batches.find(batch.token):
                batch = replace(batch, id=identity)
                batch.write(self._lake)
                return batch
            if attempt < FIND_ATTEMPTS - 1:
                await asyncio.sleep(min(self._poll_seconds, 2.0))
        self._lake.delete(batch.path)
        return None

    def _store(
        self, batch: _Batch, results: dict[str, ChatReply | CompletionError], detail: str
    ) -> None:
        for reservation in self._reserved.pop(batch.token, ()):
            self._budget.release(reservation)
        stored: list[StoredReply] = []
        for custom_id, key, step in batch.calls:
            request = self._by_key.get(key)
            if request is None:
                continue  # the tool has changed or gone since; nothing asks for this reply any more
            reply = results.get(custom_id) or CompletionError(
                detail or "the batch ended without a reply to this request"
            )
            if isinstance(reply, CompletionError):
                self._count_failure(request, reply)
            elif not self._is_stored(batch, key, step):
                run = f"{self._ledger.run}:{batch.token}"
                stored.append(request.judge_reply(cast("Step", step), reply, run))
                self._budget.count(reply)
                self.completed[request.product] += stored[-1].final
        self._ledger.add_all(stored)
        finals = sum(reply.final for reply in stored)
        progress.advance("enrich", finals, f"{self._budget.spent_usd:.4f} USD")

    def _count_failure(self, request: ProductRequest, error: CompletionError) -> None:
        self._unanswered[request.key] += 1
        if self._unanswered[request.key] >= MAX_BATCHES_PER_REQUEST:
            self.failures.append((request, error))

    def _is_stored(self, batch: _Batch, key: str, step: str) -> bool:
        """Whether a run that was killed before it could delete the batch has stored the reply."""
        return any(
            reply.run.endswith(batch.token) and reply.step == step
            for reply in self._ledger.entries(key)
        )

    async def _send(self, under_way: Sequence[_Batch]) -> list[_Batch]:
        """Send everything that can be asked now and is not under way."""
        keys = {key for batch in under_way for _, key, _ in batch.calls}
        pairs = (pair for chain in self._requests.chains for pair in self._due(chain, keys))
        due = list({request.key: (request, call) for request, call in pairs}.values())
        size = self._settings.batch_requests
        sent: list[_Batch] = []
        for start in range(0, len(due), size):
            part, reservations = self._affordable(due[start : start + size])
            if part:
                sent.append(await self._submit(part))
                self._reserved[sent[-1].token] = reservations
        return sent

    async def _submit(self, part: Sequence[_Due]) -> _Batch:
        token = f"pegboard-{uuid.uuid4().hex}"
        calls = [
            [str(number), request.key, call.step] for number, (request, call) in enumerate(part)
        ]
        batch = _Batch(token, None, calls)
        batch.write(self._lake)
        requests = [(str(number), call.request) for number, (_, call) in enumerate(part)]
        batch = replace(batch, id=await self._batches.submit(requests, token))
        batch.write(self._lake)
        return batch

    def _due(self, chain: Chain, under_way: set[str]) -> Iterator[_Due]:
        """The calls of a chain that can be made now: what they are made from is decided."""
        final = {request.product: request.final_reply(self._ledger) for request in chain}
        accepted = accepted_values(chain, self._ledger)
        for request in chain:
            sources = [
                product for product in MADE_FROM.get(request.product, ()) if product in final
            ]
            if (
                final[request.product] is None
                and all(final[source] is not None for source in sources)
                and request.key not in under_way
                and self._unanswered[request.key] < MAX_BATCHES_PER_REQUEST
            ):
                yield request, request.next_call(self._ledger, accepted)

    def _affordable(self, part: Sequence[_Due]) -> tuple[list[_Due], list[Reservation]]:
        """As many calls as fit into the budget, and what is reserved for them."""
        affordable: list[_Due] = []
        reservations: list[Reservation] = []
        for request, call in part:
            reservation = reservation_for(call.request, self._price)
            try:
                self._budget.reserve_now(reservation)
            except BudgetExhausted as error:
                self.stopped = error
                break
            affordable.append((request, call))
            reservations.append(reservation)
        return affordable, reservations
