"""The flows that `pegboard deploy` deploys: `reindex`, `evaluate`, `prune` and `watch`. They call
the same functions as the commands `build`, `sweep`, `releases prune` and `watch`.
"""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, cast
from uuid import UUID

from prefect import flow, get_client
from prefect.context import FlowRunContext
from prefect.exceptions import MissingResult
from prefect.flow_engine import run_flow
from prefect.logging.handlers import APILogHandler, PrefectConsoleHandler
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed, Failed, Pending

from flows.cli.printing import outcome_line
from flows.options import BuildOptions, failure_of
from flows.prefect.artifacts import recorded, show_build, show_lines, show_table
from flows.prefect.events import emit_deferred, emit_run_ended
from flows.prefect.names import board_key, board_tag
from flows.prefect.progress import progress_artifacts
from flows.prefect.runner import THREADS, PrefectRunner
from flows.prefect.server import server_answers
from flows.prefect.turns import wait_for_older_builds
from flows.prefect.watch import older_watch, watch_sources
from flows.reindex import reindex as run_reindex
from pegboard.errors import GateFailed, PegboardError
from tasks.golden.sweep import Result, choose, measure, open_release, result_table, sentences
from tasks.settings.configuration import (
    Configuration,
    KeepSettings,
    RunSettings,
    load_configuration,
)
from tasks.settings.sweep import Sweep, read_sweep
from tasks.steps.prune import prune_board

LOGGERS = ("flows", "tasks", "catalogs", "pegboard")
PREFECT_LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
MAX_NAMED = 3
"""Catalogs in the name of a run; more are counted."""
HEARTBEAT_SECONDS = 30
"""Seconds between two heartbeats of a run; Prefect's minimum."""
SERVER_WAIT_SECONDS = 900.0
"""Seconds that a finished run waits for a server that is away, to report its outcome."""
logger = logging.getLogger(__name__)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Drop the traceback of Pegboard's own errors, whose message says what to do, and the empty one
    of a step that returned its failure.
    """
    if record.exc_info and isinstance(record.exc_info[1], PegboardError | None):
        record.exc_info = None
    return True


for _name in PREFECT_LOGGERS:
    logging.getLogger(_name).addFilter(_without_traceback)


def _log_without_reader() -> None:
    """Let a run go on whose worker was killed. Nobody reads its output any more, and Rich, which
    Prefect prints its log with, ends the process at the next line.
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler, PrefectConsoleHandler):
            console = handler.console
            console.on_broken_pipe = partial(setattr, console, "quiet", True)


_log_without_reader()


@flow(name="reindex", flow_run_name="reindex {catalog} of {config}", task_runner=THREADS)
def reindex(
    config: str = "pegboard.toml",
    catalog: str = "all",
    allow_removal: bool = False,
    allow_missing: bool = False,
    locked: bool = False,
    dry_run: bool = False,
    strict: bool = False,
    run: RunSettings | None = None,
) -> dict[str, Any]:
    """List the sources of a pegboard.toml, and publish a release if anything changed.

    The state of the run is named after its outcome: Published, Unchanged, Withdrawn or Planned.
    Held and, with `strict`, Incomplete are failures. A run waits for older builds of its board.

    Args:
        config: The configuration's path. Secrets are read from the environment of the worker, and
            never passed.
        catalog: List only this catalog, or several with commas between them, and take the others
            from their last snapshot; `all` lists every one.
        allow_removal: Accept that a source lists far fewer tools than before, or none.
        allow_missing: Accept a first release without the catalogs that could not be listed.
        locked: Hold the release if it has a definition that the lock file does not approve.
        dry_run: Stop after the plan, as `pegboard plan` does.
        strict: Fail, after publishing the rest, if a source, the report, a prune or the LLM left
            something out, or a record was rejected.
        run: A table [run] in place of the configuration's: where the heavy steps run.

    Returns:
        What `pegboard build --json` prints. The error of a failed run has it as `outcome`.
    """
    options = BuildOptions(
        catalog=catalog,
        allow_removal=allow_removal,
        allow_missing=allow_missing,
        locked=locked,
        dry_run=dry_run,
        strict=strict,
    )
    with _reported():
        table = run.model_dump(exclude_unset=True) if run else None
        configuration = load_configuration(config, table)
        catalogs = configuration.catalogs_named(catalog)
        _identify(configuration, f"reindex {_listed(catalogs)} of")
        if not dry_run:
            wait_for_older_builds(_this_run(), board_tag(configuration.uri))
        key = board_key(configuration.uri)
        with _server_at_end(), progress_artifacts(_this_run(), key):
            outcome = run_reindex(configuration, options, PrefectRunner(configuration.uri))
        show_build(outcome)
    _ended["outcome"] = outcome
    return _build_state(outcome, failure_of(outcome, strict=strict))


_ended: dict[str, dict[str, Any]] = {}
"""The outcome of this process's last build. A server that is told of an end twice, as after a
restart, returns a state without it.
"""


def start_reindex(configuration: Configuration, options: BuildOptions) -> dict[str, Any]:
    """Run the flow in this process. As a deployment's, its run has the board's tag from the start,
    and its heartbeats are as frequent: automations end a board's runs that have none.
    """
    parameters = {"config": str(configuration.file), **asdict(options), "run": None}
    tags = ["pegboard", board_tag(configuration.uri)]
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(reindex, parameters=parameters, tags=tags, state=Pending())
    _ended.clear()
    try:
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: HEARTBEAT_SECONDS}):
            return cast("dict[str, Any]", run_flow(reindex, flow_run=run, parameters=parameters))
    except MissingResult:  # the server had the end already, and answered without its data
        if "outcome" not in _ended:
            raise
    if failure := failure_of(_ended["outcome"], strict=options.strict):
        raise failure
    return _ended["outcome"]


@flow(name="evaluate", flow_run_name="evaluate {config}", task_runner=THREADS)
def evaluate(
    config: str = "pegboard.toml",
    golden: str | None = None,
    strategies: list[str] | None = None,
    k: int | str | None = None,
    release: str | None = None,
) -> dict[str, Any]:
    """Measure a release on golden queries: one strategy at one k, or a sweep over several.

    Args:
        config: The configuration's path; its table [sweep] has defaults for the other parameters.
        golden: JSON lines of golden queries; by default those of [golden].
        strategies: Names of strategies, or JSON files; by default search and clauses.
        k: How many tools a search returns: `5`, `1,5,10` or `1..20`, the default.
        release: A release of the board, by id or channel; by default that of [board] channel.

    Returns:
        What `pegboard sweep --json` prints.
    """
    with _reported():
        parameters = {"golden": golden, "strategies": strategies, "k": k, "release": release}
        sweep = read_sweep(config, parameters)
        uri = sweep.configuration.uri
        _identify(sweep.configuration, "evaluate")
        measured, results = PrefectRunner(uri).call(partial(measure_release, sweep))
        choice = choose(results, sweep.settings)
        lines = sentences(choice, sweep)
        header, rows = result_table(results, choice, sweep.settings)
        table = [dict(zip(header, row, strict=True)) for row in rows]
        title = f"Release {measured}, {len(sweep.queries)} queries; means, 95 % intervals."
        show_table(f"evaluation-{board_key(uri)}", table, title)
        show_lines(f"choice-{board_key(uri)}", lines, title)
    return {
        "release": measured,
        "queries": len(sweep.queries),
        "rows": [result.to_dict() for result in results],
        "choice": choice.to_dict(),
        "says": lines,
    }


def measure_release(sweep: Sweep) -> tuple[str, list[Result]]:
    """Measure every strategy in every index of a release, at every k; returns its id, too."""
    searcher = open_release(sweep)
    return searcher.release.id, measure(sweep, searcher)


@flow(name="prune", flow_run_name="prune {config}", task_runner=THREADS)
def prune(
    config: str = "pegboard.toml", dry_run: bool = False, complete: bool = False
) -> dict[str, Any]:
    """Remove releases of a board that [board.keep] no longer keeps, and orphaned data.

    Safe while readers search and runs publish.

    Args:
        config: The configuration's path.
        dry_run: Only show what would be removed.
        complete: Look for replaced versions and files of killed runs even if that was done
            recently.

    Returns:
        What `pegboard releases prune --json` prints.
    """
    with _reported():
        configuration = load_configuration(config)
        uri = configuration.uri
        _identify(configuration, "prune")
        keep = configuration.board.keep or KeepSettings()
        result = PrefectRunner(uri).call(
            partial(prune_board, uri, keep, dry_run=dry_run, complete=complete)
        )
        rows = [
            {"what": name, "count": len(items), "which": ", ".join(items)}
            for name, items in (
                ("kept", result.kept),
                ("removed", result.removed),
                ("tables", result.tables),
            )
        ]
        show_table(f"prune-{board_key(uri)}", rows, f"{result.bytes} bytes.")
    return asdict(result)


@flow(name="watch", flow_run_name="watch {config}", task_runner=THREADS)
def watch(
    config: str = "pegboard.toml", interval: float = 15.0, hours: float = 24.0
) -> dict[str, int]:
    """Notice changes of sources, and start the deployment `reindex` for their catalogs only.

    A run whose board is watched already ends at once, so a short schedule starts the watch again
    after whatever ended it.

    Args:
        config: The configuration's path. A change of it is read.
        interval: Seconds between two looks at a source that does not announce changes.
        hours: The run ends after this time.

    Returns:
        How often each kind of event was reported.
    """
    with _reported():
        configuration = load_configuration(config)
        _identify(configuration, "watch")
        if (other := older_watch(_this_run(), configuration.uri)) is not None:
            message = f"The run {other.name} watches this board."
            return cast("dict[str, int]", Completed(name="Skipped", message=message))
        return watch_sources(configuration, interval, hours * 3600)


def _identify(configuration: Configuration, what: str) -> None:
    """Name the run after what it does and its board, and tag it with the board."""
    key, tag = board_key(configuration.uri), board_tag(configuration.uri)
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    tags = sorted({*context.flow_run.tags, "pegboard", tag})
    with recorded("the run's name"), get_client(sync_client=True) as client:
        client.update_flow_run(_this_run(), name=f"{what} {key}", tags=tags)


def _this_run() -> UUID:
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    return context.flow_run.id


def _listed(catalogs: list[str]) -> str:
    """Return the catalogs of a build for the name of its run."""
    names = sorted(catalogs)
    return ", ".join(names) if len(names) <= MAX_NAMED else f"{len(names)} catalogs"


def _build_state(outcome: dict[str, Any], failure: PegboardError | None) -> dict[str, Any]:
    """Return the final state of a run, named after its outcome; a failed one raises `failure`."""
    message = outcome_line(outcome)
    if failed := [name for name, row in outcome["catalogs"].items() if row["problems"]]:
        message += f" Sources that failed: {', '.join(failed)}; see the artifact sources."
    if failure is not None:
        name = "Held" if isinstance(failure, GateFailed) else "Incomplete"
        state = Failed(name=name, message=str(failure), data=failure)
    else:
        state = Completed(name=outcome["outcome"].capitalize(), message=message, data=outcome)
    # A flow may return a state; Prefect's types do not include it.
    return cast("dict[str, Any]", state)


@contextmanager
def _server_at_end() -> Generator[None]:
    """Wait at the end for a server that is away, and emit the events that it missed: a run whose
    end cannot be reported counts as lost, though its work is done.
    """
    try:
        yield
    finally:
        deadline = time.monotonic() + SERVER_WAIT_SECONDS
        while not server_answers() and time.monotonic() < deadline:
            time.sleep(1)
        emit_deferred()


@contextmanager
def _reported() -> Generator[None]:
    """Send the run's log to the Prefect server, and emit that the run ends."""
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
        emit_run_ended()
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
