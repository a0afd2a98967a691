"""The runner of a flow: every step is a task run of the current flow run.

Prefect neither caches nor retries a task: every step finds in the lake what an earlier run
finished, and sources, stores and LLMs are retried where they are called, with their own limits.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Failed
from prefect.utilities.annotations import quote

from pegboard.canonical import digest
from pegboard.errors import PegboardError
from pegboard.formatting import plain
from pegboard.store.database import public_uri
from tasks.steps.compose import compose_agents, compose_index
from tasks.steps.embed import embed_shard
from tasks.steps.snapshot import take_snapshot

P = ParamSpec("P")
T = TypeVar("T")
MAX_SLUG = 40
"""Characters of the board's address in a name."""
logger = logging.getLogger(__name__)
RUN_NAMES: dict[Callable[..., Any], str] = {
    take_snapshot: "snapshot {catalog}",
    compose_index: "compose {settings.name}",
    compose_agents: "compose agents of {settings.name}",
    embed_shard: "embed {shard.table} {shard.number}",
}
"""Names of the task runs of steps that a run calls several times, filled in from their arguments;
the others are named after their function.
"""


class FailedStep(PegboardError):
    """Ends a task as failed though its run goes on with `result`, what the step returned."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


def report_source(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a step that lists a source: if anything could not be listed, its task logs it and ends
    as SourceFailed.
    """

    @wraps(step)
    def reported(*args: Any, **kwargs: Any) -> Any:
        result = step(*args, **kwargs)
        problems = [plain(problem) for problem in result.problems]
        for problem in problems:
            logger.warning("%s: %s", result.catalog, problem)
        if not problems:
            return result
        message = "; ".join(problems)
        return Failed(name="SourceFailed", message=message, data=FailedStep(message, result))

    return reported


@cache
def task_of(step: Callable[..., Any]) -> Task[..., Any]:
    """Return the Prefect task of a step."""
    function = report_source(step) if step is take_snapshot else step
    name = step.__name__.replace("_", " ")
    run_name = RUN_NAMES.get(step, name)
    return Task(function, name=name, task_run_name=run_name, cache_policy=NO_CACHE, retries=0)


def board_slug(uri: str) -> str:
    """Return a board's address as letters, digits and dashes, with a digest that tells it apart."""
    address = public_uri(uri)
    slug = re.sub("[^a-z0-9]+", "-", address.lower())[-MAX_SLUG:].strip("-")
    return f"{slug}-{digest(address)[:6]}"


class PrefectRunner:
    """Submits steps to the task runner of the flow run."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return _result(task_of(step)(*_quoted(args), **_quoted_named(kwargs), return_state=True))

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        results: list[T] = []
        waiting: list[PrefectFuture[T]] = []
        for call in calls:
            if len(waiting) == at_once:
                results.append(_result(waiting.pop(0)))
            task = task_of(call.func)
            waiting.append(task.submit(*_quoted(call.args), **_quoted_named(call.keywords)))
        return results + [_result(future) for future in waiting]


def _result(run: "PrefectFuture[T] | State[T]") -> T:
    """What a step returned, also where its task ended as failed."""
    try:
        return cast("T", run.result())
    except FailedStep as failed:
        return cast("T", failed.result)


def _quoted(args: tuple[Any, ...]) -> list[Any]:
    """Keep Prefect from searching the arguments for futures: a plan may hold thousands of names."""
    return [quote(value) for value in args]


def _quoted_named(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: quote(value) for name, value in kwargs.items()}
