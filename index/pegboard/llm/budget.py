"""Budgets: money and tokens are reserved before a call and counted after it.

So a budget is never exceeded, however many calls are under way."""

import asyncio
from dataclasses import dataclass

from pegboard.errors import BudgetExhausted
from pegboard.llm import ChatReply, ChatRequest
from pegboard.llm.chat_format import prompt_text
from pegboard.tokens import token_bound

_PROMPT_OVERHEAD_TOKENS = 16

Price = tuple[float, float]
"""USD per prompt token and per reply token."""


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

    Args:
        usd: the most that may be spent; None is no limit.
        tokens: likewise.
    """

    def __init__(self, usd: float | None = None, tokens: int | None = None) -> None:
        self.usd, self.tokens = usd, tokens
        self.spent_usd = 0.0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.replies = 0
        self.unpriced = 0
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
                self.count(reply)
            self._changed.notify_all()

    def count(self, reply: ChatReply) -> None:
        """Count a reply without a reservation."""
        self.replies += 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self.spent_usd += reply.cost_usd or 0.0
        self.unpriced += reply.cost_usd is None

    @property
    def spent_tokens(self) -> int:
        """Tokens of all prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def limited(self) -> bool:
        """Whether any limit is set."""
        return self.usd is not None or self.tokens is not None

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
