"""The runner of a flow: every step is a task run of the flow run that is under way."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.futures import PrefectFuture
from prefect.utilities.annotations import quote

from flows.runner import Artifact
from flows.steps import task_of

P = ParamSpec("P")
T = TypeVar("T")


class PrefectRunner:
    """Submits steps to the task runner of the flow run."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return cast("T", task_of(step)(*_quoted(args), **_quoted_named(kwargs)))

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        results: list[T] = []
        waiting: list[PrefectFuture[T]] = []
        advance = _progress_bar(calls)
        for call in calls:
            if len(waiting) == at_once:
                results.append(waiting.pop(0).result())
                advance(len(results))
            waiting.append(
                task_of(call.func).submit(*_quoted(call.args), **_quoted_named(call.keywords))
            )
        for future in waiting:
            results.append(future.result())
            advance(len(results))
        return results

    def show(self, artifact: Artifact) -> None:
        if artifact.rows:
            create_table_artifact(artifact.rows, key=artifact.key, description=artifact.description)
        else:
            create_markdown_artifact(
                artifact.markdown, key=artifact.key, description=artifact.description
            )


def _quoted(args: tuple[Any, ...]) -> list[Any]:
    """The arguments, marked so that Prefect does not look into them for futures: a plan may hold
    thousands of names.
    """
    return [quote(value) for value in args]


def _quoted_named(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: quote(value) for name, value in kwargs.items()}


def _progress_bar(calls: Sequence[partial[Any]]) -> Callable[[int], None]:
    """A progress artifact of the calls; returns what is told how many are done. None is made for a
    single call: it would only jump.
    """
    if len(calls) < 2:
        return lambda _: None
    name = task_of(calls[0].func).name
    bar = create_progress_artifact(0.0, key=name, description=f"{name}: {len(calls)} tasks")

    def advance(done: int) -> None:
        if isinstance(bar, UUID):
            update_progress_artifact(bar, progress=100 * done / len(calls))

    return advance
