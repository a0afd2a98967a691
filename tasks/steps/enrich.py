"""Request missing replies from an LLM, and collect all accepted values of the tools.

Every reply is stored the moment it arrives (`enrichment/ledger.py`); a run that was killed repeats
only the calls that were under way."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.errors import CompletionError, ConfigurationError, PegboardError, StoreError
from pegboard.llm import Completer
from pegboard.llm.recorded import missing_message
from pegboard.records import Agent, Enrichment, Tool
from tasks.enrichment.enrichment_sets import PreviousTexts, write_enrichments
from tasks.enrichment.figures import (
    actual_figures,
    estimate,
    failure_messages,
    outdated_messages,
    stale_prompts,
    stop_message,
    unusable_messages,
)
from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.live import LiveRun
from tasks.enrichment.models import NoCompleter, client_for, configured_completer
from tasks.enrichment.neighbours import Neighbour, head_text, nearest
from tasks.enrichment.prompts import load_enrichment_prompts
from tasks.enrichment.requests import AcceptedValues, Chain, ProductRequest, build_requests
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, tools_of
from tasks.lake.vectors import vectors_of
from tasks.runtime import progress
from tasks.settings.configuration import Configuration
from tasks.settings.encoders import encoder_for
from tasks.settings.enrichment import EnrichSettings, OverrideSettings, Product
from tasks.steps.preflight import raise_together


@dataclass(frozen=True, slots=True)
class Enriched:
    """The current enrichments, the estimate, and the actual figures.

    Attributes:
        path: the folder of the lake with the enrichments.
        problems: warnings, and what could not be generated.
        stopped: why the run ended early; empty if it did not.
    """

    path: str
    estimate: dict[str, Any]
    actual: dict[str, Any]
    problems: tuple[str, ...] = ()
    stopped: str = ""


def estimate_tools(configuration: Configuration, snapshots: Mapping[str, str]) -> dict[str, Any]:
    """Return `figures.estimate` of the requests that `enrich_tools` would make."""
    chains, ledger = _open(configuration, snapshots)
    requests = _requests(chains)
    completer = _checked_completer(configuration, requests, ledger, None)
    return estimate(requests, ledger, _settings(configuration), completer)


def enrich_tools(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    completer: Completer | None = None,
) -> Enriched:
    """Request what is missing for the tools and agents of these snapshots (catalog -> digest).

    Args:
        completer: by default the model that the configuration names.

    Raises:
        ConfigurationError: what would fail was found before the first call.
        CompletionError, BudgetExhausted: the run ended early and `incomplete` is `stop`. Replies
            are kept.
    """
    settings = _settings(configuration)
    chains, ledger = _open(configuration, snapshots)
    requests = _requests(chains)
    completer = _checked_completer(configuration, requests, ledger, completer)
    expected = estimate(requests, ledger, settings, completer)
    progress.start("enrich", expected["pending"])
    client = client_for(settings, completer)
    run = LiveRun(chains, ledger, client)
    try:
        asyncio.run(run.run())
    finally:
        ledger.close()
    if isinstance(run.stopped, StoreError):
        raise run.stopped
    values = AcceptedValues(ledger, _previous_texts(configuration, chains, ledger))
    path = _collect(configuration, chains, values)
    actual = actual_figures(requests, ledger, run, client)
    actual |= {"kept": dict(values.kept), "outdated": dict(values.outdated)}
    unusable = unusable_messages(run, actual, settings)
    missing = missing_message(completer)
    enriched = Enriched(
        path=path,
        estimate=expected,
        actual=actual,
        problems=(
            *failure_messages(run),
            *filter(None, [missing]),
            *unusable,
            *outdated_messages(values.outdated),
        ),
        stopped=stop_message(run.stopped, requests, ledger),
    )
    if run.stopped is not None and settings.incomplete == "stop":
        raise type(run.stopped)(
            f"{enriched.stopped} Nothing was published. Replies are stored: run again to continue "
            "from here, or set incomplete = 'publish' under [enrich] to publish with what there is."
        )
    if missing and settings.incomplete == "stop":
        raise CompletionError(f"{missing} Nothing was published.", kind="unrecorded")
    if unusable and settings.incomplete == "stop":
        raise CompletionError(
            f"{' '.join(unusable)} Nothing was published. Correct the model, its options or the "
            "prompt and run again, or set incomplete = 'publish' under [enrich] to publish without "
            "them."
        )
    return enriched


def _checked_completer(
    configuration: Configuration,
    requests: Sequence[ProductRequest],
    ledger: LakeLedger,
    completer: Completer | None,
) -> Completer:
    """Return the model to call.

    Raises:
        ConfigurationError: a prompt changed without its version, a price is unknown that a budget
            needs, or LiteLLM knows no such model.
    """
    failures: list[PegboardError] = [*stale_prompts(requests, ledger)]
    if all(request.final_reply(ledger) for request in requests):
        completer = NoCompleter()
    elif completer is None:
        try:
            completer = configured_completer(_settings(configuration), configuration.base)
        except PegboardError as error:
            failures.append(error)
    raise_together(configuration, failures)
    assert completer is not None
    return completer


def _settings(configuration: Configuration) -> EnrichSettings:
    if configuration.enrich is None:
        raise ConfigurationError(
            f"{configuration.file} has no [enrich] table. Add one with a model to ask an LLM."
        )
    return configuration.enrich


def _open(
    configuration: Configuration, snapshots: Mapping[str, str]
) -> tuple[Sequence[Chain], LakeLedger]:
    settings = _settings(configuration)
    prompts = load_enrichment_prompts(configuration.base / "prompts", settings.products)
    lake = Lake(configuration.uri)
    tools = tools_of(lake, snapshots)
    agents = agents_of(lake, snapshots)
    described = "description" in settings.products
    neighbours = _neighbours(configuration, lake, tools, agents) if described else {}
    chains = build_requests(configuration, prompts, tools, agents, neighbours)
    return chains, LakeLedger(lake).load()


def _requests(chains: Sequence[Chain]) -> list[ProductRequest]:
    return [request for chain in chains for request in chain]


def _neighbours(
    configuration: Configuration, lake: Lake, tools: Sequence[Tool], agents: Sequence[Agent]
) -> Mapping[str, Sequence[Neighbour]]:
    settings = _settings(configuration)
    if not settings.neighbours or len(tools) < 2:
        return {}
    encoder = encoder_for(configuration.index(configuration.default))
    owners = {agent.id: agent for agent in agents}
    vectors = vectors_of(lake, encoder, [head_text(tool, owners[tool.agent]) for tool in tools])
    return nearest([tool.id for tool in tools], vectors, settings.neighbours)


def _previous_texts(
    configuration: Configuration, chains: Sequence[Chain], ledger: LakeLedger
) -> PreviousTexts:
    lacking: list[str] = []
    for chain in chains:
        replies = [request.final_reply(ledger) for request in chain]
        if any(reply is None or reply.value is None for reply in replies):
            lacking.append(chain[0].subject)
    return PreviousTexts(Lake(configuration.uri), lacking)


def _collect(
    configuration: Configuration, chains: Sequence[Chain], accepted: AcceptedValues
) -> str:
    tools: dict[str, Enrichment] = {}
    agents: dict[str, str] = {}
    for chain in chains:
        values = accepted.of(chain)
        subject = chain[0].subject
        if "agents" in values:
            agents[subject] = values["agents"]
        elif values:
            tools[subject] = _enrichment(values, configuration.overrides.get(subject))
    return write_enrichments(Lake(configuration.uri), tools, agents)


def _enrichment(values: Mapping[Product, Any], override: OverrideSettings | None) -> Enrichment:
    """The accepted values of a tool; notes on arguments that a person described are left out."""
    overridden = override.arguments if override else {}
    notes = values.get("arguments", {})
    return Enrichment(
        **values.get("description", {}),
        arguments={name: note for name, note in notes.items() if name not in overridden},
        questions=tuple(values.get("questions", ())),
        topics=tuple(values.get("topics", ())),
    )
