"""The models that a configuration names: how they are called, and what they cost.

LiteLLM is loaded when they are made, not before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegboard.errors import ConfigurationError
from pegboard.llm import Completer
from pegboard.llm.client import Budget, Client, Pacing, Price
from pegboard.llm.hosted import HostedCompleter
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import EnrichSettings


@dataclass(frozen=True, slots=True)
class Models:
    """The model and its fallbacks, in the order in which they are called.

    Attributes:
        prices: USD for a token of prompt and of reply; None if unknown.
        count: counts the tokens of a text.
    """

    completers: Sequence[Completer]
    prices: Sequence[Price | None]
    count: Callable[[str], int]

    @property
    def price(self) -> Price | None:
        """The first model's price."""
        return next(iter(self.prices), None)


NO_MODELS = Models((), (), len)
"""For a run without LLM calls: loading LiteLLM would take longer than everything else."""


def client_for(settings: EnrichSettings, models: Models) -> Client:
    """Return a client of these models, with the budget and pacing of the settings."""
    pacing = Pacing(
        concurrency=settings.concurrency,
        attempts=settings.attempts,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    budget = Budget(settings.budget_usd, settings.max_tokens)
    return Client(models.completers, budget=budget, pacing=pacing, prices=models.prices)


def hosted_completers(settings: EnrichSettings) -> list[HostedCompleter]:
    """Return the model of `[enrich]` and its fallbacks."""
    first = HostedCompleter(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        price=(settings.price.input, settings.price.output) if settings.price else None,
    )
    return [
        first,
        *(HostedCompleter(name, timeout=settings.timeout) for name in settings.fallbacks),
    ]


def models_of(settings: EnrichSettings, *, place: str, price_option: str) -> Models:
    """Return the models of the settings with their prices.

    Args:
        place: what an error names as the place of the budget, such as `--budget-usd`.
        price_option: how an error says that a price is given.

    Raises:
        ConfigurationError: a budget in USD is set, and a price is unknown.
    """
    completers = hosted_completers(settings)
    prices = [completer.price_per_token() for completer in completers]
    unknown = [
        completer.name for completer, price in zip(completers, prices, strict=True) if price is None
    ]
    if settings.budget_usd is not None and unknown:
        raise ConfigurationError(
            f"{place} is set, but the price of {' and '.join(unknown)} is unknown. Give it "
            f"{price_option}, in USD for a million tokens, or limit tokens instead (max_tokens)."
        )
    return Models(completers, prices, completers[0].count_tokens)


def hosted_models(configuration: Configuration) -> Models:
    """Return the models of `[enrich]`; raises as `models_of`."""
    settings = configuration.enrich
    assert settings is not None
    return models_of(
        settings,
        place=f"{configuration.file}: enrich.budget_usd",
        price_option="as [enrich.price] with input and output",
    )
