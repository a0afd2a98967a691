"""The models that a configuration names: how they are asked, and what they cost. LiteLLM is loaded
when they are made, not before.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from pegboard.errors import ConfigurationError
from pegboard.llm import Completer
from pegboard.llm.hosted import HostedCompleter
from pegboard.llm.workers import WorkersCompleter
from tasks.enrichment.calls import Price
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import EnrichSettings

CALLS_PER_PROCESS = 64
"""More at once than this in one process wait for the processor, not for the model: see
benchmarks/performance/llm.py.
"""


@dataclass(frozen=True, slots=True)
class Models:
    """The model and its fallbacks, in the order in which they are asked.

    `prices` are USD for a token of prompt and of reply, None where nobody knows; `count` says how
    many tokens a text has."""

    completers: Sequence[Completer]
    prices: Sequence[Price | None]
    count: Callable[[str], int]

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        for completer in self.completers:
            if isinstance(completer, (HostedCompleter, WorkersCompleter)):
                await completer.aclose()


NO_MODELS = Models((), (), len)
"""For a run in which there is nothing to buy: loading LiteLLM would take longer than all of the
rest.
"""


def hosted_completers(configuration: Configuration) -> list[HostedCompleter]:
    """The model of `[enrich]` and its fallbacks, each asked from this process."""
    settings = configuration.enrich
    assert settings is not None
    first = HostedCompleter(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        price=_price(settings),
    )
    return [
        first,
        *(HostedCompleter(name, timeout=settings.timeout) for name in settings.fallbacks),
    ]


def hosted_models(configuration: Configuration) -> Models:
    """The models of `[enrich]`. Raises ConfigurationError if a budget in USD is set and nobody
    knows a price.
    """
    settings, completers = configuration.enrich, hosted_completers(configuration)
    assert settings is not None
    batch = settings.mode == "batch"
    prices = [one.batch_price_per_token() if batch else one.price_per_token() for one in completers]
    unknown = [one.name for one, known in zip(completers, prices, strict=True) if known is None]
    if settings.budget_usd is not None and unknown:
        raise ConfigurationError(
            f"{configuration.file}: enrich.budget_usd is set, but nobody knows the price of "
            f"{' and '.join(unknown)}. Give it "
            "as [enrich.price] with input and output in USD for a million tokens, or use "
            "max_tokens as the limit."
        )
    processes = min(ceil(settings.concurrency / CALLS_PER_PROCESS), os.cpu_count() or 1)
    if batch or processes == 1:
        return Models(completers, prices, completers[0].count_tokens)
    options = {
        "api_base": settings.api_base,
        "api_key_env": settings.api_key_env,
        "timeout": settings.timeout,
        "price": _price(settings),
    }
    workers = WorkersCompleter(settings.model, processes=processes, **options)
    return Models([workers, *completers[1:]], prices, completers[0].count_tokens)


def _price(settings: EnrichSettings) -> Price | None:
    return (settings.price.input, settings.price.output) if settings.price else None
