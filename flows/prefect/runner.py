"""The runner of a flow: every step is a task run of the current flow run.

No task caches its result or is retried by Prefect: every step finds in the lake what an earlier run
finished, and what may fail for a moment (a source, a store, an LLM) is retried where it is called,
with its own limits.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from prefect import Task, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.utilities.annotations import quote

from flows.engines import Engine
from flows.runner import Artifact, run_elsewhere
from pegboard.canonical import digest
from pegboard.store.database import public_uri
from tasks.calibrate import calibrate_release
from tasks.compose import compose_agents, compose_index
from tasks.edges import compose_edges
from tasks.embed import embed_shard
from tasks.enrich import enrich_tools, estimate_tools
from tasks.filter import filter_enrichments
from tasks.gate.decision import gate_release
from tasks.plan import compare_with_source, make_plan
from tasks.prune import prune_board
from tasks.publish import publish_release
from tasks.release_spec import compose_records, make_release_spec
from tasks.report.storage import report_release
from tasks.revise import revise_snapshots
from tasks.safety.capture import find_suspicious
from tasks.snapshot import take_snapshot
from tasks.stage import stage_tables
from tasks.sweep.cells import measure_cell
from tasks.sweep.design import design
from tasks.sweep.report import report_sweep

P = ParamSpec("P")
T = TypeVar("T")
MAX_SLUG = 40
"""Characters of the board's address in the key of an artifact."""
# step: (name of the task, name of its runs, filled in from the arguments of the step)
STEPS: dict[Callable[..., Any], tuple[str, str]] = {
    take_snapshot: ("snapshot", "snapshot {catalog}"),
    revise_snapshots: ("revise", "revise"),
    make_plan: ("plan", "plan {channel}"),
    estimate_tools: ("estimate", "estimate the cost of the LLM"),
    enrich_tools: ("enrich", "enrich with an LLM"),
    filter_enrichments: ("filter", "filter"),
    compose_index: ("compose", "compose {settings.name}"),
    compose_agents: ("compose agents", "compose agents of {settings.name}"),
    compose_edges: ("edges", "edges"),
    compose_records: ("records", "records"),
    make_release_spec: ("release", "release"),
    embed_shard: ("embed", "embed {shard.table} {shard.number}"),
    stage_tables: ("stage", "stage {spec.release}"),
    find_suspicious: ("suspicious tools", "look for suspicious tools"),
    calibrate_release: ("calibrate", "calibrate {spec.release}"),
    gate_release: ("gate", "gate {spec.release}"),
    publish_release: ("publish", "publish {spec.release}"),
    prune_board: ("prune", "prune"),
    report_release: ("report", "report {release}"),
    compare_with_source: ("compare", "compare {catalog}"),
    design: ("lay out", "lay out the sweep"),
    measure_cell: ("measure", "measure {cell.name}"),
    report_sweep: ("report sweep", "report the sweep"),
}


def _task(step: Callable[..., Any], function: Callable[..., Any]) -> Task[..., Any]:
    """The task of a step, which calls `function` with the step's arguments."""
    name, run_name = STEPS[step]
    return task(name=name, task_run_name=run_name, cache_policy=NO_CACHE, retries=0)(function)


_TASKS: dict[Callable[..., Any], Task[..., Any]] = {step: _task(step, step) for step in STEPS}


def task_of(step: Callable[..., Any]) -> Task[..., Any]:
    """Return the Prefect task of a step. Raises KeyError for a function that is none."""
    return _TASKS[step]


class PrefectRunner:
    """Submits steps to the task runner of the flow run.

    Args:
        board: the board's address. The keys of artifacts end with it, so that the UI shows the
            history of each board by itself.
    """

    def __init__(self, board: str) -> None:
        address = public_uri(board)
        slug = re.sub("[^a-z0-9]+", "-", address.lower())[-MAX_SLUG:].strip("-")
        self._suffix = f"-{slug}-{digest(address)[:6]}"

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return cast("T", task_of(step)(*_quoted(args), **_quoted_named(kwargs)))

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        return self._submit_each(calls, at_once, [task_of(call.func) for call in calls])

    def spread(
        self, calls: Sequence[partial[T]], engine: Engine, ended: Callable[[int], None]
    ) -> list[T]:
        """Make calls on an engine's workers; see `Runner.spread`.

        Their task runs wait for them in threads of the flow run. So workers need no Prefect, no
        access to its server, and none of its keys.
        """
        tasks = [
            _task_elsewhere(engine, call.func, partial(ended, position))
            for position, call in enumerate(calls)
        ]
        return self._submit_each(calls, engine.workers, tasks)

    def _submit_each(
        self, calls: Sequence[partial[T]], at_once: int, tasks: Sequence[Task[..., Any]]
    ) -> list[T]:
        results: list[T] = []
        waiting: list[PrefectFuture[T]] = []
        advance = self._progress_bar(calls)
        for call, step in zip(calls, tasks, strict=True):
            if len(waiting) == at_once:
                results.append(waiting.pop(0).result())
                advance(len(results))
            waiting.append(step.submit(*_quoted(call.args), **_quoted_named(call.keywords)))
        for future in waiting:
            results.append(future.result())
            advance(len(results))
        return results

    def show(self, artifact: Artifact) -> None:
        key = artifact.key + self._suffix
        if artifact.rows:
            create_table_artifact(artifact.rows, key=key, description=artifact.description)
        else:
            create_markdown_artifact(artifact.markdown, key=key, description=artifact.description)

    def _progress_bar(self, calls: Sequence[partial[Any]]) -> Callable[[int], None]:
        """Create a progress artifact, unless there is only one call; returns the function that
        takes the number of calls that are done.
        """
        if len(calls) < 2:
            return lambda _: None
        name = task_of(calls[0].func).name
        bar = create_progress_artifact(
            0.0, key=name + self._suffix, description=f"{name}: {len(calls)} tasks"
        )

        def advance(done: int) -> None:
            if isinstance(bar, UUID):
                update_progress_artifact(bar, progress=100 * done / len(calls))

        return advance


def _task_elsewhere(
    engine: Engine, step: Callable[..., Any], ended: Callable[[], None]
) -> Task[..., Any]:
    """The task of a step that an engine runs."""

    @wraps(step)
    def elsewhere(*args: Any, **kwargs: Any) -> Any:
        return run_elsewhere(engine, partial(step, *args, **kwargs), ended)

    return _task(step, elsewhere)


def _quoted(args: tuple[Any, ...]) -> list[Any]:
    """Keep Prefect from searching the arguments for futures: a plan may hold thousands of names."""
    return [quote(value) for value in args]


def _quoted_named(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: quote(value) for name, value in kwargs.items()}
