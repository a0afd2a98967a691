"""The Prefect flows, which prefect.yaml deploys: the runs of `flows/`, their steps as tasks."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from prefect import flow
from prefect.events import emit_event
from prefect.logging.handlers import APILogHandler
from prefect.states import Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.prefect import stale_runs
from flows.prefect.runner import PrefectRunner
from flows.reindex import SOURCES_AT_ONCE
from flows.reindex import reindex as run_reindex
from flows.sweep import sweep as run_sweep
from flows.watch import watch as run_watch
from pegboard.errors import GateFailed
from tasks.embed import usable_cores
from tasks.enrichment.request_builder import EnrichOptions
from tasks.gate.messages import held_headline
from tasks.settings.configuration import load_configuration
from tasks.settings.sweep import read_sweep

# Its threads call the steps; the run limits how many of a kind run at once.
THREADS = cast(
    "TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=max(SOURCES_AT_ONCE, usable_cores()))
)
LOGGERS = ("flows", "tasks", "catalogs", "pegboard")


@flow(name="reindex", flow_run_name="reindex {catalog} of {config}", task_runner=THREADS)
def reindex(
    config: str = "pegboard.toml",
    catalog: str = "all",
    allow_empty: bool = False,
    dry_run: bool = False,
    refresh_neighbours: bool = False,
    retry_rejected: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a pegboard.toml again, and publish a release if anything changed.

    Raises GateFailed, with what is returned otherwise as its `outcome`, if the release did not pass
    its gate and is held.

    Args:
        config: the configuration's path; secrets are read from the environment where they are used,
            never passed.
        catalog: list only this one anew and take the others from their last snapshot; `all` lists
            every one.
        allow_empty: accept an empty listing from a source that had tools.
        dry_run: stop after the plan.
        refresh_neighbours: have descriptions rewritten whose nearest neighbours changed, however
            far away those are.
        retry_rejected: ask the LLM again where its reply was rejected in an earlier run.
    """
    with _logged():
        stale_runs.clean_up()
        outcome = run_reindex(
            load_configuration(config),
            catalog=catalog,
            allow_empty=allow_empty,
            dry_run=dry_run,
            enrich_options=EnrichOptions(refresh_neighbours, retry_rejected),
            runner=PrefectRunner(),
        )
    return _held(outcome) if outcome["outcome"] == "held" else outcome


@flow(name="watch", flow_run_name="watch {config}", task_runner=THREADS)
def watch(config: str = "pegboard.toml") -> dict[str, Any]:
    """List every source, and emit `catalog.changed` for the catalogs that changed since they were
    published.

    The trigger of `reindex/nightly` (prefect.yaml) starts a run for each. A source that fails is
    reported in the log, the artifact and the result; it emits no event.
    """
    configuration = load_configuration(config)
    with _logged():
        stale_runs.clean_up()
        changes = run_watch(configuration, PrefectRunner())
    changed = [change.catalog for change in changes if change.changed]
    for catalog in changed:
        emit_event(
            "catalog.changed",
            resource={"prefect.resource.id": f"pegboard.catalog.{catalog}"},
            payload={"catalog": catalog, "config": str(configuration.file)},
        )
    return {
        "changed": changed,
        "unchanged": [change.catalog for change in changes if not change.changed],
        "problems": {
            change.catalog: list(change.problems) for change in changes if change.problems
        },
    }


@flow(name="sweep", flow_run_name="sweep of {config}", task_runner=THREADS)
def sweep(
    config: str = "pegboard.toml",
    golden: str | None = None,
    strategies: list[str | dict[str, Any]] | None = None,
    k: list[int | str] | None = None,
    tools: list[int | str] | None = None,
    measures: list[str] | None = None,
    indexes: list[str] | None = None,
    seed: int | None = None,
    samples: int | None = None,
    max_tokens: float | None = None,
    max_ms: float | None = None,
    timed: int | None = None,
    board: str | None = None,
    release: str | None = None,
    out: str | None = None,
    llm: str | None = None,
    llm_api_base: str | None = None,
    write: bool = False,
) -> dict[str, Any]:
    """Measure every index of a configuration with every strategy, and name the best.

    Args:
        config: the configuration's path; what is not given here stands in its `[sweep]` table, or
            has a default: see `SweepSettings`.
        write: write the recommended index and strategy into the configuration.
    """
    parameters = {
        name: value for name, value in locals().items() if name not in ("config", "write")
    }
    with _logged():
        stale_runs.clean_up()
        return run_sweep(
            read_sweep(config, parameters, write=write), write=write, runner=PrefectRunner()
        )


def _held(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the final state of a run whose release is held: failed, raising GateFailed."""
    message = held_headline(outcome["gate"], outcome["plan"]["channel"])
    # A flow may return a state; Prefect's types do not include it.
    return cast(
        "dict[str, Any]", Failed(name="Held", message=message, data=GateFailed(message, outcome))
    )


@contextmanager
def _logged() -> Generator[None]:
    """Send the run's log to the Prefect server."""
    handler = APILogHandler()
    handler.setLevel(logging.INFO)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
