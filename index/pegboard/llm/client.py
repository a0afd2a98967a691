"""The LLM client: budget, concurrency, retries and outcome counts.

Together with a ledger no reply is paid for twice: look a question up there first, call
`client.ask`, and store the reply before it is used.

    async with Client(HostedCompleter("openai/gpt-4o-mini"), budget=Budget(usd=1)) as client:
        await client.for_each(questions, ask)
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self, TypeVar

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.failures import NEXT_STEPS, retrying
from pegboard.llm.hosted import prompt_text
from pegboard.tokens import token_bound

logger = logging.getLogger(__name__)

PERMANENT_FAILURES = frozenset({"key", "variable", "model", "quota", "structured", "budget"})
"""Failures that every later call would repeat."""
TEXT_FAILURES = frozenset({"content", "length", "unrecorded"})
"""Failures that are due to one request, and say nothing of other requests."""
MAX_RETRY_SECONDS = 180.0
"""Seconds that the retries of one request may take, besides a wait that the server asks for."""
MAX_WAIT = 180.0
"""Default for the longest Retry-After, in seconds, that a client waits for."""
MAX_FAILURES = 10
"""Consecutive requests that failed after all attempts, after which no more are made."""
_PROMPT_OVERHEAD_TOKENS = 16

Price = tuple[float, float]
"""USD per prompt token and per reply token."""
_Item = TypeVar("_Item")
_Sleep = Callable[[float], Awaitable[Any]]


class Budget:
    """USD and tokens (of prompts and replies) that were spent and reserved. For one event loop.

    A call's maximum cost is reserved before it and its actual cost counted after it, so a budget is
    never exceeded, however many calls are under way.

    Args:
        usd: the most that may be spent; None is no limit.
        tokens: likewise.
    """

    def __init__(self, usd: float | None = None, tokens: int | None = None) -> None:
        self.usd = usd
        self.tokens = tokens
        self.spent_usd = 0.0
        self.prompt_tokens = self.completion_tokens = 0
        self.replies = self.unpriced = 0
        self._reserved_usd = 0.0
        self._reserved_tokens = 0
        self._pending = 0
        self._changed = asyncio.Condition()

    async def spend(
        self, usd: float, tokens: int, call: Callable[[], Awaitable[ChatReply]]
    ) -> ChatReply:
        """Return the reply to a call; waits for calls in flight if too little is left for it.

        Args:
            usd, tokens: the most that the call may cost.

        Raises:
            BudgetExhausted: the call does not fit, and nothing under way can change that.
        """
        async with self._changed:
            while not self._fits(usd, tokens) and self._pending:
                await self._changed.wait()
            if not self._fits(usd, tokens):
                raise BudgetExhausted(self._message())
            self._reserve(usd, tokens, 1)
        reply: ChatReply | None = None
        try:
            reply = await call()
            return reply
        finally:
            async with self._changed:
                self._reserve(-usd, -tokens, -1)
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

    def _reserve(self, usd: float, tokens: int, calls: int) -> None:
        self._reserved_usd += usd
        self._reserved_tokens += tokens
        self._pending += calls

    def _fits(self, usd: float, tokens: int) -> bool:
        usd += self.spent_usd + self._reserved_usd
        tokens += self.spent_tokens + self._reserved_tokens
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
            "Raise the limit."
        )


class Client:
    """Calls a model within a budget. For one event loop.

    Args:
        budget: what may be spent; by default unlimited.
        concurrency: the most calls under way at once.
        attempts: calls for one request in all, where failures may pass.
        max_wait: seconds of the longest Retry-After that is waited for; a longer one stops the
            client.
        sleep: waits between attempts, and for as long as the server asks.

    Attributes:
        outcomes: the number of calls by outcome, attempts that were retried among them.
        stopped: why no more calls are made (budget exhausted, no key, model away, a wait that is
            too long), if that is so.
    """

    def __init__(
        self,
        completer: Completer,
        *,
        budget: Budget | None = None,
        concurrency: int = 8,
        attempts: int = 4,
        max_wait: float = MAX_WAIT,
        sleep: _Sleep = asyncio.sleep,
    ) -> None:
        self.budget = budget or Budget()
        self.concurrency = concurrency
        self._attempts = attempts
        self._max_wait = max_wait
        self.outcomes: Counter[str] = Counter()
        self.stopped: CompletionError | None = None
        self._completer = completer
        self._price = price_of(completer)
        self._sleep = sleep
        self._slots = asyncio.Semaphore(concurrency)
        self._resume_at = 0.0
        self._failures = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the completer's connections of the running event loop."""
        close: Callable[[], Awaitable[None]] | None = getattr(self._completer, "aclose", None)
        if close is not None:
            await close()

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request.

        Raises:
            CompletionError: the model did not answer; `stopped` says if no later request would
                succeed.
            BudgetExhausted: the call does not fit into the budget.
        """
        self._raise_if_stopped()
        seconds = MAX_RETRY_SECONDS + self._max_wait
        calls = retrying("AsyncRetrying", self._attempts, seconds, sleep=self._sleep)
        tokens = prompt_bound(request)
        prompt_price, reply_price = self._price or (0.0, 0.0)
        usd = tokens * prompt_price + request.max_tokens * reply_price
        try:
            reply = await self.budget.spend(
                usd, tokens + request.max_tokens, lambda: calls(self._attempt, request)
            )
        except CompletionError as error:
            self._count_failure(error)
            raise
        self._failures = 0
        return reply

    async def for_each(
        self, items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]], width: int = 0
    ) -> None:
        """Run `work` for every item, until the client stops.

        Args:
            items: taken one by one, each when a worker is free.
            width: items under way at once; by default the client's concurrency.
        """
        remaining = iter(items)

        async def worker() -> None:
            for item in remaining:
                if self.stopped is not None:
                    return
                await work(item)

        async with asyncio.TaskGroup() as group:
            for _ in range(width or self.concurrency):
                group.create_task(worker())

    async def _attempt(self, request: ChatRequest) -> ChatReply:
        async with self._slots:
            if (wait := self._resume_at - time.monotonic()) > 0:  # for which the server asked
                await self._sleep(wait)
            self._raise_if_stopped()
            try:
                reply = await self._completer.complete(request)
            except CompletionError as error:
                self._count_refusal(error)
                raise
        self.outcomes["answered"] += 1
        return reply

    def _raise_if_stopped(self) -> None:
        if self.stopped is not None:
            raise self.stopped

    def _count_refusal(self, error: CompletionError) -> None:
        self.outcomes[f"{error.status} {error.kind}" if error.status else error.kind] += 1
        logger.info("%s: %s", self._completer.name, error)
        if error.retry_after is None:
            return
        if error.retry_after > self._max_wait:
            self.stopped = self.stopped or _too_long_a_wait(error, self._max_wait)
            raise self.stopped from error
        self._resume_at = max(self._resume_at, time.monotonic() + error.retry_after)

    def _count_failure(self, error: CompletionError) -> None:
        if error.kind not in TEXT_FAILURES:
            self._failures += 1
        if error.kind in PERMANENT_FAILURES:
            self.stopped = self.stopped or error
        elif self._failures >= MAX_FAILURES:
            self.stopped = self.stopped or CompletionError(
                f"{self._failures} requests in a row failed. Last error: {error}", kind="away"
            )


def _too_long_a_wait(error: CompletionError, max_wait: float) -> CompletionError:
    seconds = error.retry_after or 0.0
    return CompletionError(
        f"The server asks to wait {duration_text(seconds)}, and max_wait is "
        f"{duration_text(max_wait)}: {str(error).rstrip('.')}. {NEXT_STEPS['wait']}",
        kind="wait",
        retry_after=seconds,
        status=error.status,
    )


def duration_text(seconds: float) -> str:
    """Return seconds for people: `90 s`, and from two minutes on also `7200 s (2 h)`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds:.0f} s ({seconds / size:.3g} {unit})"
    return f"{seconds:g} s"


def prompt_bound(request: ChatRequest) -> int:
    """Return the most tokens that a request's prompt may have."""
    return token_bound(prompt_text(request), str(request.schema or "")) + _PROMPT_OVERHEAD_TOKENS


def price_of(completer: Completer) -> Price | None:
    """Return USD for a token of prompt and of reply; None if the completer does not know."""
    price: Callable[[], Price | None] = getattr(completer, "price_per_token", lambda: None)
    return price()
