"""The LLM that writes golden queries, and its ledger beside their file."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pegboard.errors import ConfigurationError
from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.models import Models, models_of
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
    return models_of(settings, place="--budget-usd", price_option="as --price INPUT,OUTPUT")


def ledger_beside(file: Path) -> LakeLedger:
    """The replies that were had for a file of golden queries: in the folder `.<name>.ledger` beside
    it.
    """
    return LakeLedger(Lake(str(file.resolve().with_name(f".{file.name}.ledger")))).load()
