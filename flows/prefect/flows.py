"""The Prefect flows, which prefect.yaml deploys: the runs of `flows/`, their steps as tasks."""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from prefect import flow
from prefect.events import emit_event
from prefect.logging.handlers import APILogHandler
from prefect.states import Completed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.build import BuildOptions
from flows.cli.printing import outcome_line, run_lines
from flows.prefect import stale_runs
from flows.prefect.runner import PrefectRunner
from flows.reindex import reindex as run_reindex
from flows.sweep import sweep as run_sweep
from flows.watch import watch as run_watch
from pegboard.errors import GateFailed, PegboardError
from tasks.gate.messages import held_headline
from tasks.settings.configuration import load_configuration
from tasks.settings.sweep import read_sweep

# Its threads call the steps, or wait for the workers that do; the run limits how many of a kind run
# at once.
THREADS = cast("TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=sys.maxsize))
LOGGERS = ("flows", "tasks", "catalogs", "pegboard")
PREFECT_LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
logger = logging.getLogger(__name__)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Drop the traceback of Pegboard's own errors: their message says what to do."""
    if record.exc_info and isinstance(record.exc_info[1], PegboardError):
        record.exc_info = None
    return True


for _name in PREFECT_LOGGERS:
    logging.getLogger(_name).addFilter(_without_traceback)


@flow(name="reindex", flow_run_name="reindex {catalog} of {config}", task_runner=THREADS)
def reindex(
    config: str = "pegboard.toml",
    catalog: str = "all",
    allow_removal: bool = False,
    dry_run: bool = False,
    refresh_neighbours: bool = False,
    retry_rejected: bool = False,
    run: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Index the catalogs of a pegboard.toml again, and publish a release if anything changed.

    The state of the run is named after its outcome, such as Published or Unchanged. A release that
    did not pass its gate ends the run as Held, which is a failure, and raises GateFailed with what
    is returned otherwise as its `outcome`.

    Args:
        config: the configuration's path; secrets are read from the environment where they are used,
            never passed.
        catalog: list only this one anew and take the others from their last snapshot; `all` lists
            every one.
        allow_removal: accept that a source lists far fewer tools than before, or none.
        dry_run: stop after the plan.
        refresh_neighbours: have descriptions rewritten whose nearest neighbours changed, however
            far away those are.
        retry_rejected: ask the LLM again where its reply was rejected in an earlier run.
        run: a table `[run]` in place of the configuration's, such as `{"engine": "processes"}`.
    """
    with _logged():
        stale_runs.clean_up()
        configuration = load_configuration(config, run)
        outcome = run_reindex(
            configuration,
            BuildOptions(catalog, allow_removal, dry_run, refresh_neighbours, retry_rejected),
            PrefectRunner(configuration.uri),
        )
        for line in run_lines(outcome):
            logger.info(line)
    return _state(outcome)


@flow(name="watch", flow_run_name="watch {config}", task_runner=THREADS)
def watch(config: str = "pegboard.toml") -> dict[str, Any]:
    """List every source, and emit `catalog.changed` for the catalogs that changed since they were
    published.

    The trigger of `reindex/nightly` (prefect.yaml) starts a run for each. A source that fails is
    reported in the log, the artifact and the result; it emits no event.
    """
    with _logged():
        stale_runs.clean_up()
        configuration = load_configuration(config)
        changes = run_watch(configuration, PrefectRunner(configuration.uri))
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
    margin: float | None = None,
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
        settings = read_sweep(config, parameters, write=write)
        return run_sweep(settings, write=write, runner=PrefectRunner(settings.uri))


def _state(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the final state of a run, named after its outcome; Held raises GateFailed."""
    name = outcome["outcome"].capitalize()
    if outcome["outcome"] == "held":
        message = held_headline(outcome["gate"], outcome["plan"]["channel"])
        state = Failed(name=name, message=message, data=GateFailed(message, outcome))
    else:
        state = Completed(name=name, message=outcome_line(outcome), data=outcome)
    # A flow may return a state; Prefect's types do not include it.
    return cast("dict[str, Any]", state)


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
