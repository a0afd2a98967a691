"""The LLM that writes golden queries, and its ledger beside their file."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pegboard.errors import ConfigurationError
from pegboard.llm.hosted import HostedCompleter
from tasks.enrichment.ledger import Ledger
from tasks.enrichment.models import Models
from tasks.lake.files import Lake
from tasks.settings.enrichment import EnrichSettings


def model_settings(model: str, **given: Any) -> EnrichSettings:
    """How a model is asked: the settings of `[enrich]` that are about that, those that are None
    left out.

    Raises ConfigurationError with every one that has no such value.
    """
    try:
        return EnrichSettings(
            model=model, **{name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as error:
        problems = [
            f"--{'-'.join(str(part) for part in one['loc']).replace('_', '-')}: "
            f"{one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False)
        ]
        raise ConfigurationError(
            "The model cannot be asked so:\n  - " + "\n  - ".join(problems)
        ) from error


def models_for(settings: EnrichSettings) -> Models:
    """The model. Raises ConfigurationError if a budget in USD is set and nobody knows its price."""
    completer = HostedCompleter(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        price=(settings.price.input, settings.price.output) if settings.price else None,
    )
    price = completer.price_per_token()
    if settings.budget_usd is not None and price is None:
        raise ConfigurationError(
            f"--budget-usd is set, but nobody knows the price of {settings.model}. Give it as "
            f"--price INPUT,OUTPUT, in USD for a million "
            "tokens, or use --max-tokens as the limit."
        )
    return Models([completer], [price], completer.count_tokens)


def ledger_beside(file: Path) -> Ledger:
    """The replies that were had for a file of golden queries: in the folder `.<name>.ledger` beside
    it.
    """
    return Ledger(Lake(str(file.resolve().with_name(f".{file.name}.ledger")))).load()
