"""The runner of a flow: phases are subflows of the current flow run, and steps are task runs.

The edges of the graph are the inputs that a build names for each step. A step receives its own
arguments in this process: no configuration, secret or table passes through Prefect.
"""

import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from prefect import Flow, Task, tags
from prefect.assets import add_asset_metadata
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, StateDetails, TaskRun
from prefect.context import FlowRunContext, TagsContext
from prefect.futures import PrefectFuture
from prefect.states import Completed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import MaterializingTask

from flows.prefect.events import (
    catalog_assets,
    emit_release,
    emit_run_ended,
    emit_source,
    release_asset,
    release_facts,
)
from flows.prefect.names import board_key, board_tag
from pegboard.errors import PegboardError, StoreError
from pegboard.formatting import plain
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.lake.files import DamagedFile
from tasks.safety.changed import unapproved
from tasks.settings.configuration import Configuration
from tasks.steps.compose import compose_agents, compose_index
from tasks.steps.embed import embed_shard
from tasks.steps.plan import Plan
from tasks.steps.publish import publish_release
from tasks.steps.release_spec import ReleaseSpec
from tasks.steps.snapshot import Snapshot, take_snapshot

P = ParamSpec("P")
T = TypeVar("T")
THREADS = cast("TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=sys.maxsize))
"""Threads call the steps or wait for the workers that do; the build limits their number."""
RETRY_SECONDS = [10, 60]
"""Seconds before a step is called again whose store failed. Sources, LLMs and encoders retry their
own requests, so no other failure is retried."""
RUN_NAMES: dict[Callable[..., Any], str] = {
    take_snapshot: "snapshot {catalog}",
    compose_index: "compose {settings.name}",
    compose_agents: "compose agents of {settings.name}",
    embed_shard: "embed {shard.table} {shard.number}",
}
"""Names of the task runs of steps that a build calls several times, filled in from their arguments;
the others are named after their function.
"""
logger = logging.getLogger(__name__)


class FailedStep(PegboardError):
    """Ends a task as failed though its build goes on with `result`, what the step returned."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class PrefectRunner:
    """Calls phases as subflows, and steps on the task runner of the flow run.

    Args:
        board: its address, after which subflow runs are named. They have its tag and those of their
            parent, by which automations match them.
    """

    def __init__(self, board: str) -> None:
        self._key = board_key(board)
        self._tag = board_tag(board)
        self._producers: dict[int, tuple[Any, UUID]] = {}

    def phase(self, phase: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a phase as a subflow; see `Runner.phase`.

        Prefect's server may be away: then the phase runs without a subflow, and one that ended
        keeps its result though Prefect could not be told.
        """
        self._producers = {}  # edges stay within a flow run
        call = _Call(phase)
        subflow = Flow(
            call.function(),
            name=phase.__name__,
            flow_run_name=f"{phase.__name__} {self._key}",
            task_runner=THREADS,
            validate_parameters=False,
        )
        try:
            with tags(*_tags_of_run(), "pegboard", self._tag):
                subflow(*args, **kwargs)
        except Exception as error:
            if call.error is not None:
                raise call.error from None
            logger.warning("Prefect does not record the phase %s: %s", phase.__name__, error)
            if not call.ended:
                return phase(*args, **kwargs)
        finally:
            self._producers = {}
        return cast("T", call.result)

    def call(self, step: partial[T], **inputs: Any) -> T:
        task = step_task(step, inputs)
        state = task(**self._edges(inputs), return_state=True)
        return self._remember(_result(state), state.state_details.task_run_id)

    def each(self, steps: Sequence[partial[T]], at_once: int, **inputs: Any) -> list[T]:
        edges = self._edges(inputs)
        results: list[T] = []
        running: list[PrefectFuture[T]] = []
        for step in steps:
            if len(running) == at_once:
                results.append(self._wait(running.pop(0)))
            running.append(step_task(step, inputs).submit(**edges))
        return results + [self._wait(future) for future in running]

    def _wait(self, future: "PrefectFuture[T]") -> T:
        return self._remember(_result(future), future.task_run_id)

    def _remember(self, result: T, task_run: UUID | None) -> T:
        """Note the task run of a result, which is held so that its id stays its own."""
        if task_run is not None and not isinstance(result, str | bool | int | None):
            self._producers[id(result)] = result, task_run
        return result

    def _edges(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what stands for the inputs: the states of the task runs that they are from."""
        return {name: self._edge(value) for name, value in inputs.items()}

    def _edge(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._edge(part) for part in cast("list[Any]", value)]
        if isinstance(value, str):
            return value  # the result of a phase, which Prefect itself knows
        if (producer := self._producers.get(id(value))) is None:
            return None
        return Completed(data=True, state_details=StateDetails(task_run_id=producer[1]))


def _tags_of_run() -> list[str]:
    """Return the tags with which the current flow run began, such as those of its deployment."""
    context = FlowRunContext.get()
    return context.flow_run.tags if context is not None and context.flow_run is not None else []


class _Call:
    """A phase as the function of a subflow, and how it ended.

    Prefect raises its own errors where the phase's are raised.
    """

    def __init__(self, phase: Callable[..., Any]) -> None:
        self._phase = phase
        self.result: Any = None
        self.error: Exception | None = None
        self.ended = False

    def function(self) -> Callable[..., Any]:
        @wraps(self._phase)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                # Tags are for the subflow: a task with tags asks the server for slots.
                with TagsContext(current_tags=set()):
                    self.result = self._phase(*args, **kwargs)
            except Exception as error:
                self.error = error
                raise
            finally:
                emit_run_ended()
            self.ended = True
            return self.result

        return run


def step_task(step: partial[Any], inputs: dict[str, Any]) -> Task[..., Any]:
    """Return the Prefect task of a step, whose parameters are the inputs that draw its edges."""
    function = SHOWN[step.func](step.func) if step.func in SHOWN else step.func
    arguments = inspect.signature(step.func).bind(*step.args, **step.keywords).arguments

    def run(**_: Any) -> Any:
        return function(*step.args, **step.keywords)

    run.__name__ = step.func.__name__
    run.__doc__ = step.func.__doc__
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind) for name in inputs]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    name = step.func.__name__.replace("_", " ")
    options: dict[str, Any] = {
        "name": name,
        "task_run_name": RUN_NAMES.get(step.func, name).format(**arguments),
        "cache_policy": NO_CACHE,
        "retries": len(RETRY_SECONDS),
        "retry_delay_seconds": RETRY_SECONDS,
        "retry_condition_fn": store_failed,
    }
    if step.func is publish_release and not _is_held(arguments):
        configuration = arguments["configuration"]
        return MaterializingTask(
            run,
            assets=[release_asset(configuration)],
            materialized_by="pegboard",
            asset_deps=[*catalog_assets(configuration)],
            **options,
        )
    return Task(run, **options)


def store_failed(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Return whether a step failed because the board's store did. A damaged file is not retried:
    the build removes it and starts again.
    """
    try:
        state.result()
    except DamagedFile:
        return False
    except StoreError:
        return True
    except Exception:
        return False
    return False


def report_source(step: Callable[..., Snapshot]) -> Callable[..., Any]:
    """Wrap a step that lists a source: if anything could not be listed, its task logs it and ends
    as SourceFailed. The first failure emits an event, and so does the first listing after it.
    """

    @wraps(step)
    def reported(configuration: Configuration, *args: Any, **kwargs: Any) -> Any:
        snapshot = step(configuration, *args, **kwargs)
        if kwargs.get("fresh", True):  # a stored snapshot does not tell how its source is now
            emit_source(configuration.uri, snapshot)
        problems = [plain(problem) for problem in snapshot.problems]
        for problem in problems:
            logger.warning("%s: %s", snapshot.catalog, problem)
        if not problems:
            return snapshot
        message = "; ".join(problems)
        return Failed(name="SourceFailed", message=message, data=FailedStep(message, snapshot))

    return reported


def announce_release(step: Callable[..., Release]) -> Callable[..., Release]:
    """Wrap the step that publishes: a published release is recorded as an asset and emits an event;
    one that is held emits an event the first time.
    """

    @wraps(step)
    def announced(
        configuration: Configuration,
        plan: Plan,
        snapshots: list[Snapshot],
        spec: ReleaseSpec,
        pins: dict[str, Pin],
        gate: dict[str, Any] | None = None,
        suspicious: Any = MappingProxyType({}),
    ) -> Release:
        held = _is_held({"gate": gate, "suspicious": suspicious})
        repeated = held and _is_recorded(configuration.uri, spec.release)
        release = step(configuration, plan, snapshots, spec, pins, gate, suspicious)
        if not held:
            facts = release_facts(configuration, plan, release)
            add_asset_metadata(release_asset(configuration), facts)
        if not repeated:
            emit_release(configuration, plan, release, held=held)
        return release

    return announced


SHOWN: dict[Callable[..., Any], Callable[..., Any]] = {
    take_snapshot: report_source,
    publish_release: announce_release,
}
"""Steps of which Prefect shows more than that they ended."""


def _is_held(arguments: dict[str, Any]) -> bool:
    """Return whether `publish_release` with these arguments records a release without promoting."""
    gate = arguments.get("gate")
    failed = gate is not None and not gate["passed"]
    return failed or bool(unapproved(arguments.get("suspicious", {})))


def _is_recorded(uri: str, release: str) -> bool:
    return any(stored.id == release for stored in ReleaseStore(uri).all())


def _result(run: "PrefectFuture[T] | State[T]") -> T:
    """Return what a step returned, also where its task ended as failed."""
    try:
        return cast("T", run.result())
    except FailedStep as failed:
        return cast("T", failed.result)
