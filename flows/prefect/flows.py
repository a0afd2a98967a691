"""The Prefect flow, which prefect.yaml deploys: the run of `flows/reindex`, its steps as tasks."""

import inspect
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from typing import Any, cast

from prefect import flow, get_client
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists
from prefect.logging.handlers import APILogHandler
from prefect.states import Completed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.cli.printing import outcome_line, run_lines
from flows.options import BuildOptions, failure_of
from flows.prefect.runner import PrefectRunner, board_slug
from flows.reindex import reindex as run_reindex
from pegboard.errors import GateFailed, PegboardError
from pegboard.formatting import plain
from tasks.runtime import progress
from tasks.settings.configuration import load_configuration

# Its threads call the steps, or wait for the workers that do; the run limits how many of a kind run
# at once.
THREADS = cast("TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=sys.maxsize))
LOGGERS = ("flows", "tasks", "catalogs", "pegboard")
PREFECT_LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
LEASE_SECONDS = 60
"""How long the slot of a board stays taken after its run was killed; Prefect's minimum."""
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


def _with_build_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the fields of BuildOptions as parameters in place of **options: Prefect validates
    what a deployment passes, and shows each with its default.
    """
    signature = inspect.signature(function)
    own = [row for row in signature.parameters.values() if row.kind is not row.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.type,
        )
        for option in fields(BuildOptions)
    ]
    vars(function)["__signature__"] = signature.replace(parameters=[*own, *added])
    return function


@flow(name="reindex", flow_run_name="reindex {catalog} of {config}", task_runner=THREADS)
@_with_build_options
def reindex(
    config: str = "pegboard.toml", run: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Index the catalogs of a pegboard.toml again, and publish a release if anything changed.

    The state of the run is named after its outcome, such as Published or Unchanged. Held (raises
    GateFailed) and, with `strict`, Incomplete are failures; the error's `outcome` is what is
    returned otherwise. Builds of one board run one at a time: each takes the slot of a global
    concurrency limit that is named after the board.

    Args:
        config: the configuration's path; secrets are read from the environment where they are used,
            never passed.
        run: a table `[run]` in place of the configuration's, such as `{"engine": "processes"}`.
        options: the fields of `flows.options.BuildOptions`, each a parameter.
    """
    build_options = BuildOptions(**options)
    with _logged():
        configuration = load_configuration(config, run)
        with nullcontext() if build_options.dry_run else _only_build(configuration.uri):
            outcome = run_reindex(configuration, build_options, PrefectRunner())
        _show(run_lines(outcome), f"build-{board_slug(configuration.uri)}", outcome_line(outcome))
    return _state(outcome, failure_of(outcome, strict=build_options.strict))


def _show(lines: list[str], key: str, title: str) -> None:
    """Show lines in the log and as an artifact, whose key has the board's address so that the UI
    shows the history of each board by itself. Their text is catalogs' in part: it is indented, as
    code that no page renders.
    """
    for line in lines:
        logger.info(line)
    code = "\n".join(f"    {plain(line)}" for line in lines)
    create_markdown_artifact(code, key=key, description=plain(title))


def _state(outcome: dict[str, Any], failure: PegboardError | None) -> dict[str, Any]:
    """Return the final state of a run, named after its outcome; a failed one raises `failure`."""
    message = outcome_line(outcome)
    if failed := [name for name, row in outcome["catalogs"].items() if row["problems"]]:
        message += f" Sources that failed: {', '.join(failed)}; see the artifact."
    if failure is not None:
        name = "Held" if isinstance(failure, GateFailed) else "Incomplete"
        state = Failed(name=name, message=str(failure), data=failure)
    else:
        state = Completed(name=outcome["outcome"].capitalize(), message=message, data=outcome)
    # A flow may return a state; Prefect's types do not include it.
    return cast("dict[str, Any]", state)


@contextmanager
def _only_build(board: str) -> Generator[None]:
    """Wait until no other flow builds the board.

    A lost lease, such as after a restart of the server, does not end a build: promotion is a
    compare-and-set, so two builds are safe, and only work in vain.
    """
    name = f"pegboard-{board_slug(board)}"
    limit = GlobalConcurrencyLimitCreate(name=name, limit=1)
    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):
            client.create_global_concurrency_limit(limit)
        if client.read_global_concurrency_limit_by_name(name).active_slots:
            progress.note(
                "Another run builds this board, or was killed less than a minute ago; waiting for "
                f"the slot of the limit {name}."
            )
    with concurrency(
        name, strict=True, lease_duration=LEASE_SECONDS, raise_on_lease_renewal_failure=False
    ):
        yield


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
