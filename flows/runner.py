"""How a run calls its steps: `Direct` calls them in this process; `flows.prefect.runner` submits them as Prefect tasks.

A step is a plain function. What a run decides must not depend on the runner: both publish the same release.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

__all__ = ["Artifact", "Direct", "Runner"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something to look at in the UI of an orchestrator: Markdown, or a table if it has rows.

    Attributes:
        key: lower-case letters, digits and dashes; the same in every run, so that a UI can show its history.
    """

    key: str
    description: str
    markdown: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Runner(Protocol):
    """Calls steps. An exception of a step is raised to the caller as it is."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call one step and return its result."""
        ...

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        """Call a step several times, at most `at_once` at a time, and return the results in the order of the calls."""
        ...

    def show(self, artifact: Artifact) -> None:
        """Publish something to look at, where there is a place for it."""
        ...


class Direct:
    """Calls the steps in this process, concurrent ones in threads. Shows no artifacts: the command prints what is in them."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(*args, **kwargs)

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        if at_once == 1 or len(calls) < 2:
            return [call() for call in calls]
        pool = ThreadPoolExecutor(min(at_once, len(calls)), thread_name_prefix="step")
        try:
            futures = [pool.submit(call) for call in calls]
            return [future.result() for future in futures]
        finally:
            # After an error or an interrupt, what has not begun is dropped.
            pool.shutdown(wait=False, cancel_futures=True)

    def show(self, artifact: Artifact) -> None:
        pass
