"""Step 3: buy of an LLM what the ledger lacks, and gather all that was ever accepted for these
tools and agents.

Every reply is kept the moment it arrives (`enrichment/ledger.py`); a run that was killed asks again
only what was under way."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.errors import ConfigurationError, StoreError
from pegboard.llm.client import Client
from pegboard.records import Agent, Enrichment, Tool
from tasks import progress
from tasks.embed import encoder_for
from tasks.enrichment.account import (
    Purchase,
    actual_figures,
    problems_of,
    stale_prompts,
    stopped_early,
)
from tasks.enrichment.batch_mode import BatchPurchase, batches_for, batches_out, refuse_batches_out
from tasks.enrichment.bought import Writings, write_writings
from tasks.enrichment.estimate import Estimate, estimate
from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.live import LivePurchase
from tasks.enrichment.models import NO_MODELS, Models, client_for, hosted_models
from tasks.enrichment.neighbours import Neighbour, head_text, nearest
from tasks.enrichment.order_book import OrderBook
from tasks.enrichment.prompts import load_prompts
from tasks.enrichment.vectors import vectors_of
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import load_snapshot
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import EnrichSettings


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person may ask for beyond what is due: descriptions for every change among neighbours,
    rejected replies again.
    """

    refresh_neighbours: bool = False
    retry_rejected: bool = False


@dataclass(frozen=True, slots=True)
class Enriched:
    """What there is now, what it was thought to cost, and what was really used.

    `stopped` says why buying ended early; `waiting` names batches that a later run collects.
    """

    writings: Writings
    estimate: dict[str, Any]
    actual: dict[str, Any]
    problems: tuple[str, ...] = ()
    stopped: str = ""
    waiting: tuple[str, ...] = ()


def estimate_tools(
    configuration: Configuration, snapshots: Mapping[str, str], wishes: Wishes = Wishes()
) -> Estimate:
    """What `enrich_tools` would buy, and what that would cost."""
    settings = _settings(configuration)
    book, ledger = _open(configuration, snapshots, wishes)
    models = hosted_models(configuration) if book.missing(ledger) else NO_MODELS
    return estimate(book, ledger, settings, models.count, models.price)


def enrich_tools(
    configuration: Configuration,
    snapshots: Mapping[str, str],
    wishes: Wishes = Wishes(),
    models: Models | None = None,
) -> Enriched:
    """Buy what is missing for the tools and agents of these snapshots (catalog -> digest), and
    gather what was accepted.

    Args:
        models: by default those that the configuration names.

    Raises:
        CompletionError, BudgetExhausted: buying ended early and `incomplete` is `stop`. What was
            bought is kept.
    """
    settings, lake = _settings(configuration), Lake(configuration.uri)
    book, ledger = _open(configuration, snapshots, wishes)
    needed = book.missing(ledger) or batches_out(lake)
    models = NO_MODELS if not needed else models or hosted_models(configuration)
    expected = estimate(book, ledger, settings, models.count, models.price).to_dict()
    progress.start("enrich", expected["to_buy"])
    started = time.monotonic()
    client = client_for(settings, models)
    purchase: Purchase
    if settings.mode == "batch" and needed:
        purchase = BatchPurchase(
            book, ledger, batches_for(settings), lake, client.budget, settings, models.price
        )
    else:
        refuse_batches_out(lake)
        purchase = LivePurchase(book, ledger, client)
    try:
        asyncio.run(_buy(purchase, client))
    finally:
        ledger.close()
    if isinstance(purchase.stopped, StoreError):
        raise purchase.stopped
    result = Enriched(
        writings=_gather(configuration, book, ledger),
        estimate=expected,
        actual=actual_figures(book, ledger, purchase, client, time.monotonic() - started),
        problems=(*stale_prompts(book, ledger), *problems_of(purchase)),
        stopped=stopped_early(purchase.stopped, book, ledger),
        waiting=tuple(purchase.waiting),
    )
    if result.stopped and settings.incomplete == "stop":
        assert purchase.stopped is not None
        raise type(purchase.stopped)(
            f"{result.stopped} Nothing was published. What was bought is kept: run again to go on "
            f"from here, or set "
            "incomplete = 'publish' under [enrich] to publish with what there is."
        )
    return result


async def _buy(purchase: Purchase, client: Client) -> None:
    async with client:
        await purchase.run()


def _settings(configuration: Configuration) -> EnrichSettings:
    if configuration.enrich is None:
        raise ConfigurationError(
            f"{configuration.file} has no [enrich] table. Add one with a model to ask an LLM."
        )
    return configuration.enrich


def _open(
    configuration: Configuration, snapshots: Mapping[str, str], wishes: Wishes
) -> tuple[OrderBook, LakeLedger]:
    settings = _settings(configuration)
    prompts = load_prompts(configuration.base / "prompts", settings.products)
    lake = Lake(configuration.uri)
    listings = [
        load_snapshot(lake, catalog, identity) for catalog, identity in sorted(snapshots.items())
    ]
    tools = [tool for listing in listings for tool in listing.tools]
    agents = [agent for listing in listings for agent in listing.agents]
    neighbours = (
        _neighbours(configuration, lake, tools, agents)
        if "description" in settings.products
        else {}
    )
    book = OrderBook.write(
        configuration,
        prompts,
        tools,
        agents,
        neighbours,
        refresh_neighbours=wishes.refresh_neighbours,
        retry_rejected=wishes.retry_rejected,
    )
    return book, LakeLedger(lake).load()


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


def _gather(configuration: Configuration, book: OrderBook, ledger: LakeLedger) -> Writings:
    tools: dict[str, Enrichment] = {}
    agents: dict[str, str] = {}
    for chain in book.chains:
        values = {
            order.product: json.loads(answer.value)
            for order in chain
            if (answer := order.answer(ledger)) is not None and answer.value is not None
        }
        if not values:
            continue
        if "agents" in values:
            agents[chain[0].subject] = values["agents"]
            continue
        decided = configuration.overrides.get(chain[0].subject)
        own = decided.arguments if decided else {}
        tools[chain[0].subject] = Enrichment(
            **values.get("description", {}),
            arguments={
                name: note for name, note in values.get("arguments", {}).items() if name not in own
            },
            questions=tuple(values.get("questions", ())),
            topics=tuple(values.get("topics", ())),
        )
    return write_writings(Lake(configuration.uri), "bought", tools, agents)
