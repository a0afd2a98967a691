"""The LLM client: budget, pacing, retries, fallbacks and outcome counts.

Together with a ledger no reply is paid for twice. `ask` says what to ask when the ledger has no
answer; the reply is durable before anything else happens:

    ledger = Ledger(JsonlFile(path, Reply)).load()
    client = Client([HostedCompleter("openai/gpt-4o-mini")], budget=Budget(usd=1), pacing=Pacing())

    async def ask(question: Question) -> None:
        if ledger.last(question.key) is None:
            reply = await client.ask(question.request)     # raises CompletionError
            await ledger.add(Reply(question.key, reply.text, ...))

    async def run() -> None:
        async with client:                                  # closes its connections at the end
            await client.for_each(questions, ask)

`client.stopped` is the reason why no more calls are made (budget exhausted, no key, model away), if
there is one. A client belongs to one event loop."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.budget import Budget, Price, reservation_for
from pegboard.llm.pacing import Pacing, TokenBucket
from pegboard.llm.retry import asynchronous

logger = logging.getLogger(__name__)

PERMANENT_FAILURES = frozenset({"key", "model", "quota"})
"""Failures that every later call to the same model would repeat."""
MAX_RETRY_SECONDS = 180.0
"""Total seconds of retries per request. Beyond that, the next run tries again."""
MAX_FAILURES = 20
"""Consecutive requests that failed after all attempts, after which a model is unavailable."""
MAX_FAILURES_BEFORE_REPLY = 5
"""The same for a model without any reply so far."""

_Item = TypeVar("_Item")
_Sleep = Callable[[float], Awaitable[Any]]


class Client:
    """Gets a reply from the first model that answers. For one event loop.

    Args:
        completers: the model and its fallbacks, in the order in which they are called.
        budget: what may be spent; by default unlimited.
        pacing: concurrency, rate limits and attempts.
        prices: USD for a token of prompt and of reply, by completer; by default as the completers
            know them.
        sleep: waits between attempts and for rate limits.

    Attributes:
        outcomes: calls by (model, outcome), attempts that were retried among them.
        stopped: why no more calls are made, if that is so.
    """

    def __init__(
        self,
        completers: Sequence[Completer],
        *,
        budget: Budget | None = None,
        pacing: Pacing | None = None,
        prices: Sequence[Price | None] | None = None,
        sleep: _Sleep = asyncio.sleep,
    ) -> None:
        self.budget = budget or Budget()
        self.pacing = pacing = pacing or Pacing()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.stopped: CompletionError | None = None
        if prices is None:
            prices = [price_of(completer) for completer in completers]
        self._models = [
            _Model(completer, pacing, price, self.outcomes, sleep)
            for completer, price in zip(completers, prices, strict=True)
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request.

        Raises:
            CompletionError: no model answered; `stopped` says if no later request would succeed.
            BudgetExhausted: the call does not fit into the budget.
        """
        error: CompletionError | None = None
        for model in self._models:
            if model.unusable is not None:
                error = model.unusable
                continue
            try:
                return await self._ask(model, request)
            except BudgetExhausted as exhausted:
                self.stopped = self.stopped or exhausted
                raise
            except CompletionError as failure:
                error = failure
        assert error is not None, "a client needs a completer"
        if all(model.unusable is not None for model in self._models):
            self.stopped = self.stopped or self._models[-1].unusable
        raise error

    async def for_each(
        self, items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]], width: int = 0
    ) -> None:
        """Run `work` for every item, until the client stops.

        Args:
            items: taken one by one, each when a worker is free.
            width: items under way at once; by default the pacing's concurrency.
        """
        remaining = iter(items)

        async def worker() -> None:
            for item in remaining:
                if self.stopped is not None:
                    return
                await work(item)

        async with asyncio.TaskGroup() as group:
            for _ in range(width or self.pacing.concurrency):
                group.create_task(worker())

    async def aclose(self) -> None:
        """Close the completers' connections of the running event loop."""
        for model in self._models:
            await close_completer(model.completer)

    async def _ask(self, model: "_Model", request: ChatRequest) -> ChatReply:
        reservation = reservation_for(request, model.price)
        await self.budget.reserve(reservation)
        reply: ChatReply | None = None
        try:
            reply = await model.ask(request)
            return reply
        finally:
            await self.budget.settle(reservation, reply)


def price_of(completer: Completer) -> Price | None:
    """Return USD for a token of prompt and of reply; None if the completer does not know."""
    price: Callable[[], Price | None] = getattr(completer, "price_per_token", lambda: None)
    return price()


async def close_completer(completer: Completer) -> None:
    """Close a completer's connections of the running event loop, if any."""
    close: Callable[[], Awaitable[None]] | None = getattr(completer, "aclose", None)
    if close is not None:
        await close()


class _Model:
    """One model: its rate limits, its concurrency, and why it is unusable, if it is."""

    def __init__(
        self,
        completer: Completer,
        pacing: Pacing,
        price: Price | None,
        outcomes: Counter[tuple[str, str]],
        sleep: _Sleep,
    ) -> None:
        self.completer, self.price = completer, price
        self.unusable: CompletionError | None = None
        self._slots = asyncio.Semaphore(pacing.concurrency)
        self._resume_at = 0.0
        self._attempts, self._sleep = pacing.attempts, sleep
        self._requests = TokenBucket(pacing.requests_per_minute, sleep=sleep)
        self._tokens = TokenBucket(pacing.tokens_per_minute, sleep=sleep)
        self._outcomes = outcomes
        self._failures = 0
        self._max_failures = MAX_FAILURES_BEFORE_REPLY

    async def ask(self, request: ChatRequest) -> ChatReply:
        retrying = asynchronous(self._attempts, MAX_RETRY_SECONDS, sleep=self._sleep)
        try:
            reply: ChatReply = await retrying(self._attempt, request)
        except CompletionError as error:
            self._count_failure(error)
            raise
        self._failures, self._max_failures = 0, MAX_FAILURES
        return reply

    async def _attempt(self, request: ChatRequest) -> ChatReply:
        self._raise_if_unusable()
        expected = reservation_for(request, None).tokens
        await self._requests.take(1)
        await self._tokens.take(expected)
        async with self._slots:
            if (wait := self._resume_at - time.monotonic()) > 0:  # for which the server asked
                await self._sleep(wait)
            self._raise_if_unusable()
            try:
                reply = await self.completer.complete(request)
            except CompletionError as error:
                self._count_refusal(error)
                raise
        self._outcomes[self.completer.name, "answered"] += 1
        self._tokens.correct(expected, reply.prompt_tokens + reply.completion_tokens)
        return reply

    def _raise_if_unusable(self) -> None:
        if self.unusable is not None:
            raise self.unusable

    def _count_refusal(self, error: CompletionError) -> None:
        outcome = f"{error.status} {error.kind}" if error.status else error.kind
        self._outcomes[self.completer.name, outcome] += 1
        if error.retry_after:
            self._resume_at = max(self._resume_at, time.monotonic() + error.retry_after)
        logger.info("%s: %s", self.completer.name, error)

    def _count_failure(self, error: CompletionError) -> None:
        self._failures += error.may_pass
        if error.kind in PERMANENT_FAILURES:
            self.unusable = error
        elif self._failures >= self._max_failures:
            self.unusable = CompletionError(
                f"{self._failures} requests in a row failed. Last error: {error}", kind="away"
            )
