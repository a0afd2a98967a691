"""The model that a configuration names: how it is called, and what it costs.

LiteLLM is loaded when it is made, not before."""

from functools import partial
from pathlib import Path

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.client import Budget, Client
from pegboard.llm.failures import NEXT_STEPS
from pegboard.llm.hosted import HostedCompleter
from pegboard.llm.recorded import recorded_completer
from tasks.settings.enrichment import EnrichSettings


class NoCompleter:
    """For a run without LLM calls: loading LiteLLM would take longer than everything else."""

    name = "none"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Fail: nothing is missing in such a run."""
        raise AssertionError("a run without LLM calls made one")


def client_for(settings: EnrichSettings, completer: Completer) -> Client:
    """Return a client of this model, with the budget and limits of the settings."""
    return Client(
        completer,
        budget=Budget(settings.budget_usd, settings.max_tokens),
        concurrency=settings.concurrency,
        attempts=settings.attempts,
        max_wait=settings.max_wait,
    )


def configured_completer(settings: EnrichSettings, base: Path) -> Completer:
    """Return the model of the settings, behind their recorded replies if they name a folder.

    Args:
        base: the folder to which that of the replies is relative.

    Raises:
        ConfigurationError: as `hosted_completer` does, or the recorded replies cannot be read.
    """
    folder = None if settings.replies is None else base / Path(settings.replies).expanduser()
    make = partial(hosted_completer, settings)
    return recorded_completer(settings.model, folder, settings.missing_replies, make)


def hosted_completer(settings: EnrichSettings) -> HostedCompleter:
    """Return the model of the settings.

    Raises:
        ConfigurationError: a budget in USD is set, and the price is unknown.
    """
    completer = HostedCompleter(
        settings.model,
        api_base=settings.api_base,
        api_key_env=settings.api_key_env,
        timeout=settings.timeout,
        options=settings.options,
        price=(settings.price.input, settings.price.output) if settings.price else None,
    )
    if settings.budget_usd is not None and completer.price_per_token() is None:
        raise ConfigurationError(
            f"A budget in USD is set, but the price of {completer.name} is unknown. Give it as "
            f"[enrich.price] with input and output, in USD for a million tokens, or limit tokens "
            f"instead (max_tokens)."
        )
    return completer


def spent_budgets(count: int, settings: EnrichSettings) -> CompletionError:
    """Return the error of a run in which `count` replies in a row spent their budget."""
    return CompletionError(
        f"{count} replies in a row spent their budget (max_reply_tokens = "
        f"{settings.max_reply_tokens}) before any text was written. {NEXT_STEPS['spent']}",
        kind="spent",
    )
