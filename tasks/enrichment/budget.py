"""What a run may spend. Money is set aside before a call and counted after it, so that a budget is
never passed.
"""

import asyncio
from dataclasses import dataclass

from pegboard.errors import BudgetExhausted
from pegboard.llm import ChatReply


@dataclass(frozen=True, slots=True)
class Reserve:
    """What a call may cost at most."""

    usd: float
    tokens: int


class Budget:
    """What was spent and set aside, in USD and in tokens (prompt and reply together).

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
        self._aside_usd, self._aside_tokens, self._pending = 0.0, 0, 0
        self._changed = asyncio.Condition()

    async def set_aside(self, reserve: Reserve) -> None:
        """Set aside what a call may cost; wait for calls under way if only what they set aside
        stands against it.

        Raises BudgetExhausted if the call does not fit and nothing under way can change that.
        """
        async with self._changed:
            while not self._fits(reserve):
                if not self._pending:
                    raise BudgetExhausted(self._message())
                await self._changed.wait()
            self.set_aside_now(reserve)
            self._pending += 1

    def set_aside_now(self, reserve: Reserve) -> None:
        """Set aside without waiting for anything under way. Raises BudgetExhausted if it does not
        fit.
        """
        if not self._fits(reserve):
            raise BudgetExhausted(self._message())
        self._aside_usd += reserve.usd
        self._aside_tokens += reserve.tokens

    def release(self, reserve: Reserve) -> None:
        """Set aside no longer what `set_aside_now` did."""
        self._aside_usd -= reserve.usd
        self._aside_tokens -= reserve.tokens

    async def settle(self, reserve: Reserve, reply: ChatReply | None) -> None:
        """Count what the call really cost; None for a call that got no reply."""
        async with self._changed:
            self.release(reserve)
            self._pending -= 1
            if reply is not None:
                self.count(reply)
            self._changed.notify_all()

    def count(self, reply: ChatReply) -> None:
        """Count a reply for which nothing was set aside."""
        self.replies += 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self.spent_usd += reply.cost_usd or 0.0
        self.unpriced += reply.cost_usd is None

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.usd is not None or self.tokens is not None

    def _fits(self, reserve: Reserve) -> bool:
        usd = self.spent_usd + self._aside_usd + reserve.usd
        tokens = self.prompt_tokens + self.completion_tokens + self._aside_tokens + reserve.tokens
        # The smallest sums of floats must not decide: a budget of exactly what is needed is enough.
        return (self.usd is None or usd <= self.usd + 1e-9) and (
            self.tokens is None or tokens <= self.tokens
        )

    def _message(self) -> str:
        limits = [
            f"budget_usd = {self.usd:g}" if self.usd is not None else "",
            f"max_tokens = {self.tokens}" if self.tokens is not None else "",
        ]
        used = f"{self.spent_usd:.4f} USD and {self.prompt_tokens + self.completion_tokens} tokens"
        return (
            f"The next call does not fit into {' and '.join(one for one in limits if one)}: "
            f"{used} were used by {self.replies} replies"
        )
