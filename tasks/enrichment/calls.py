"""Asking an LLM under its limits: paced, at the width it bears, retried in one place, within the
budget, with fallbacks.

What became of every single call is counted, also of those that were tried again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pegboard.errors import CompletionError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.retry import asynchronous
from pegboard.tokens import token_bound
from tasks.enrichment.budget import Budget, Reserve
from tasks.enrichment.limits import AdaptiveWidth, TokenBucket
from tasks.settings.enrichment import EnrichSettings

logger = logging.getLogger(__name__)

HOPELESS = frozenset({"key", "model", "quota"})
"""Failures that every later call to the same model would meet too."""
PATIENCE_SECONDS = 180.0
"""How long one call is tried again in all. A provider that asks for more is asked by the next run.
"""
SILENT_CALLS = 20
"""So many calls in a row that were given up, and the model is taken to be away."""

Price = tuple[float, float]


def reserve_for(request: ChatRequest, price: Price | None) -> Reserve:
    """What a call may cost at most: its prompt, and a reply as long as it may be. `price` is USD
    for a token in and out.
    """
    contents = [message.content for message in request.messages]
    prompt = token_bound(*contents, str(request.schema or "")) + 16
    usd = prompt * price[0] + request.max_tokens * price[1] if price else 0.0
    return Reserve(usd, prompt + request.max_tokens)


class Caller:
    """Gets replies from the first of several models that answers.

    Args:
        completers: the model and its fallbacks, in the order in which they are asked.
        settings: limits, attempts and timeout.
        budget: what may be spent.
        prices: USD for a token of prompt and of reply, by completer; None where nobody knows.
        sleep: waits: between attempts, for the limits, and as long as a provider asks for.
    """

    def __init__(
        self,
        completers: Sequence[Completer],
        settings: EnrichSettings,
        budget: Budget,
        prices: Sequence[Price | None],
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.budget = budget
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self._lines = [
            _Line(completer, settings, price, self.outcomes, sleep)
            for completer, price in zip(completers, prices, strict=True)
        ]

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The reply to a request.

        Raises:
            CompletionError: no model answered. If `kind` is one of `HOPELESS` or `away`, no later
                call would fare better.
            BudgetExhausted: the call does not fit into the budget.
        """
        error: CompletionError | None = None
        for line in self._lines:
            if line.dead is not None:
                error = line.dead
                continue
            reserve = reserve_for(request, line.price)
            await self.budget.set_aside(reserve)
            reply: ChatReply | None = None
            try:
                reply = await line.ask(request)
            except CompletionError as failure:
                error = failure
            finally:
                await self.budget.settle(reserve, reply)
            if reply is not None:
                return reply
        assert error is not None
        raise error

    @property
    def lost(self) -> CompletionError | None:
        """Why no model can be asked any more, if that is so."""
        dead = [line.dead for line in self._lines if line.dead is not None]
        return dead[-1] if dead and len(dead) == len(self._lines) else None

    @property
    def narrowest(self) -> int:
        """The smallest width to which the first model's refusals brought it."""
        return int(self._lines[0].width.narrowest) if self._lines else 0


class _Line:
    """One model: its limits, its width, and whether it is of any use."""

    def __init__(
        self,
        completer: Completer,
        settings: EnrichSettings,
        price: Price | None,
        outcomes: Counter[tuple[str, str]],
        sleep: Callable[[float], Awaitable[Any]],
    ) -> None:
        self.price = price
        self.dead: CompletionError | None = None
        self.width = AdaptiveWidth(settings.concurrency, sleep=sleep)
        self._completer, self._attempts, self._sleep, self._outcomes = (
            completer,
            settings.attempts,
            sleep,
            outcomes,
        )
        self._requests = TokenBucket(settings.requests_per_minute, sleep=sleep)
        self._tokens = TokenBucket(settings.tokens_per_minute, sleep=sleep)
        self._given_up = 0

    async def ask(self, request: ChatRequest) -> ChatReply:
        retrying = asynchronous(
            attempts=self._attempts, max_seconds=PATIENCE_SECONDS, sleep=self._sleep
        )
        try:
            reply: ChatReply = await retrying(self._once, request)
        except CompletionError as error:
            self._given_up += error.may_pass
            if error.kind in HOPELESS:
                self.dead = error
            elif self._given_up >= SILENT_CALLS:
                self.dead = CompletionError(
                    f"{SILENT_CALLS} calls in a row failed, the last so: {error}", kind="away"
                )
            raise
        self._given_up = 0
        return reply

    async def _once(self, request: ChatRequest) -> ChatReply:
        if self.dead is not None:
            raise self.dead
        expected = reserve_for(request, None).tokens
        await self._requests.take(1)
        await self._tokens.take(expected)
        async with self.width.slot():
            if self.dead is not None:
                raise self.dead
            try:
                reply = await self._completer.complete(request)
            except CompletionError as error:
                self._outcomes[self._completer.name, _outcome(error)] += 1
                if _is_crowded(error):
                    self.width.refused(error.retry_after)
                logger.info("%s: %s", self._completer.name, error)
                raise
        self._outcomes[self._completer.name, "answered"] += 1
        self._tokens.correct(expected, reply.prompt_tokens + reply.completion_tokens)
        self.width.succeeded()
        return reply


def _is_crowded(error: CompletionError) -> bool:
    """Whether the failure may come from asking too much at once: 429, 529 (overloaded), 503 with a
    time to wait, no answer in time.
    """
    return error.kind in ("rate", "timeout") or error.status == 529 or error.retry_after is not None


def _outcome(error: CompletionError) -> str:
    return f"{error.status} {error.kind}" if error.status else error.kind
