"""The LLM client: budget, pacing, retries, fallbacks and outcome counts.

Together with a ledger no reply is paid for twice: look a question up there first, call
`client.ask`, and store the reply before it is used.

    async with Client([HostedCompleter("openai/gpt-4o-mini")], budget=Budget(usd=1)) as client:
        await client.for_each(questions, ask)
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.failures import retrying
from pegboard.llm.hosted import prompt_text
from pegboard.tokens import token_bound

logger = logging.getLogger(__name__)

PERMANENT_FAILURES = frozenset({"key", "model", "quota"})
"""Failures that every later call to the same model would repeat."""
MAX_RETRY_SECONDS = 180.0
"""Total seconds of retries per request. Beyond that, the next run tries again."""
MAX_FAILURES = 20
"""Consecutive requests that failed after all attempts, after which a model is unavailable."""
MAX_FAILURES_BEFORE_REPLY = 5
"""The same for a model without any reply so far."""
BURST_SECONDS = 3.0
"""Seconds of its rate that a full bucket holds: providers measure by seconds, not minutes."""
_PROMPT_OVERHEAD_TOKENS = 16

Price = tuple[float, float]
"""USD per prompt token and per reply token."""
_Item = TypeVar("_Item")
_Sleep = Callable[[float], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Pacing:
    """How an LLM is called.

    Attributes:
        concurrency: the most calls under way at once.
        attempts: calls for one request in all, where failures may pass.
        requests_per_minute, tokens_per_minute: the provider's rate limits; None is no limit.
    """

    concurrency: int = 8
    attempts: int = 4
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """The maximum cost of a call."""

    usd: float
    tokens: int


def reservation_for(request: ChatRequest, price: Price | None) -> Reservation:
    """Return the maximum cost of a call: its prompt and a reply of maximum length."""
    texts = prompt_text(request), str(request.schema or "")
    prompt = token_bound(*texts) + _PROMPT_OVERHEAD_TOKENS
    usd = prompt * price[0] + request.max_tokens * price[1] if price else 0.0
    return Reservation(usd, prompt + request.max_tokens)


class Budget:
    """USD and tokens (of prompts and replies) that were spent and reserved. For one event loop.

    A call's maximum cost is reserved before it and its actual cost counted after it, so a budget is
    never exceeded, however many calls are under way.

    Args:
        usd: the most that may be spent; None is no limit.
        tokens: likewise.
    """

    def __init__(self, usd: float | None = None, tokens: int | None = None) -> None:
        self.usd, self.tokens = usd, tokens
        self.spent_usd = 0.0
        self.prompt_tokens = self.completion_tokens = 0
        self.replies = self.unpriced = 0
        self._reserved_usd, self._reserved_tokens, self._pending = 0.0, 0, 0
        self._changed = asyncio.Condition()

    async def reserve(self, reservation: Reservation) -> None:
        """Reserve the cost of a call; wait for calls in flight if too little is left.

        Raises:
            BudgetExhausted: the call does not fit, and nothing under way can change that.
        """
        async with self._changed:
            while not self._fits(reservation) and self._pending:
                await self._changed.wait()
            if not self._fits(reservation):
                raise BudgetExhausted(self._message())
            self._reserved_usd += reservation.usd
            self._reserved_tokens += reservation.tokens
            self._pending += 1

    async def settle(self, reservation: Reservation, reply: ChatReply | None) -> None:
        """Replace a reservation by the actual cost; None for a call without a reply."""
        async with self._changed:
            self._reserved_usd -= reservation.usd
            self._reserved_tokens -= reservation.tokens
            self._pending -= 1
            if reply is not None:
                self.replies += 1
                self.prompt_tokens += reply.prompt_tokens
                self.completion_tokens += reply.completion_tokens
                self.spent_usd += reply.cost_usd or 0.0
                self.unpriced += reply.cost_usd is None
            self._changed.notify_all()

    @property
    def spent_tokens(self) -> int:
        """Tokens of all prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def _fits(self, reservation: Reservation) -> bool:
        usd = self.spent_usd + self._reserved_usd + reservation.usd
        tokens = self.spent_tokens + self._reserved_tokens + reservation.tokens
        # Float rounding must not decide: a budget of exactly what is needed is enough.
        return (self.usd is None or usd <= self.usd + 1e-9) and (
            self.tokens is None or tokens <= self.tokens
        )

    def _message(self) -> str:
        limits = [
            f"budget_usd = {self.usd:g}" if self.usd is not None else "",
            f"max_tokens = {self.tokens}" if self.tokens is not None else "",
        ]
        return (
            f"The next LLM call does not fit into {' and '.join(filter(None, limits))}: "
            f"{self.replies} replies used {self.spent_usd:.4f} USD and {self.spent_tokens} tokens. "
            "Replies are stored: raise the limit and run again to continue"
        )


class TokenBucket:
    """A token bucket: limits units per minute, for one event loop.

    One request may take more than the bucket holds: it waits longer.

    Args:
        per_minute: units; None lets everything through.
    """

    def __init__(
        self,
        per_minute: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: _Sleep = asyncio.sleep,
    ) -> None:
        self._rate = per_minute / 60 if per_minute else None
        self._clock, self._sleep = clock, sleep
        self._level = self._full = max(1.0, (self._rate or 0) * BURST_SECONDS)
        self._last = clock()

    async def take(self, units: float) -> None:
        """Wait until these units are available, first come, first served."""
        if self._rate is None:
            return
        now = self._clock()
        self._level = min(self._full, self._level + (now - self._last) * self._rate)
        self._last = now
        self._level -= units  # a debt is paid by waiting; later callers wait behind it
        if self._level < 0:
            await self._sleep(-self._level / self._rate)

    def correct(self, estimated: float, used: float) -> None:
        """Correct the units of `take` by the usage that the reply reports."""
        if self._rate is not None:
            self._level = min(self._full, self._level + estimated - used)


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
        stopped: why no more calls are made (budget exhausted, no key, model away), if that is so.
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
        """Close the completers' connections of the running event loop."""
        for model in self._models:
            close: Callable[[], Awaitable[None]] | None = getattr(model.completer, "aclose", None)
            if close is not None:
                await close()

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
        calls = retrying("AsyncRetrying", self._attempts, MAX_RETRY_SECONDS, sleep=self._sleep)
        try:
            reply: ChatReply = await calls(self._attempt, request)
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
