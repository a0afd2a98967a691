"""What a run may spend on an agent: money is set aside before a call and counted after it, so that
a budget is never passed.
"""

import asyncio
import math

from pegboard.errors import BudgetExhausted


class Purse:
    """USD that were spent and set aside. For one event loop.

    Args:
        limit: the most that may be spent; None is no limit.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.spent = 0.0
        self._limit = math.inf if limit is None else limit
        self._aside, self._pending = 0.0, 0
        self._changed = asyncio.Condition()

    async def take(self, usd: float) -> None:
        """Set aside what a call may cost; wait for calls under way where only what they set aside
        stands against it.

        Raises BudgetExhausted if the call does not fit and nothing under way can change that.
        """
        async with self._changed:
            # The smallest sums of floats must not decide: a budget of exactly what is needed is
            # enough.
            while self.spent + self._aside + usd > self._limit + 1e-9:
                if not self._pending:
                    raise BudgetExhausted(
                        f"The next call does not fit into the budget of {self._limit:g} USD, of "
                        f"which {self.spent:.4f} are spent. What "
                        "was answered is kept: run again with a larger budget, fewer queries or "
                        "fewer tools."
                    )
                await self._changed.wait()
            self._aside += usd
            self._pending += 1

    async def settle(self, usd: float, cost: float) -> None:
        """Count what a call for which `usd` was set aside really cost."""
        async with self._changed:
            self.spent += cost
            self._aside -= usd
            self._pending -= 1
            self._changed.notify_all()
