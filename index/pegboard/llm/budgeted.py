"""A completer that spends no more than a budget, for strategies that are measured."""

from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.client import Budget, price_of, prompt_bound


class BudgetedCompleter:
    """Asks another completer while its budget lasts.

    Args:
        completer: the model; its price must be known.
        usd: the most that may be spent.

    Raises:
        ConfigurationError: the price of the model is unknown, or the budget is negative.
    """

    def __init__(self, completer: Completer, usd: float) -> None:
        price = price_of(completer)
        if price is None:
            raise ConfigurationError(
                f"The price of {completer.name} is unknown, so a budget cannot be kept. Leave "
                "budget_usd out and begin with few queries."
            )
        if usd < 0:
            raise ConfigurationError(f"budget_usd is {usd:g}, expected 0 or more.")
        self.name = completer.name
        self.budget = Budget(usd)
        self._completer = completer
        self._price = price

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply.

        Raises:
            BudgetExhausted: the call does not fit into what is left.
            CompletionError: as the other completer.
        """
        tokens = prompt_bound(request)
        prompt_price, reply_price = self._price
        usd = tokens * prompt_price + request.max_tokens * reply_price

        async def call() -> ChatReply:
            return await self._completer.complete(request)

        return await self.budget.spend(usd, tokens + request.max_tokens, call)

    def price_per_token(self) -> tuple[float, float]:
        """Return USD for a token of prompt and of reply."""
        return self._price

    async def aclose(self) -> None:
        """Close the other completer's connections."""
        close: Any = getattr(self._completer, "aclose", None)
        if close is not None:
            await close()
