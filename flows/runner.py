"""How a build calls its phases and steps, which are plain functions: `DirectRunner` calls them in
this process, `flows.prefect.runner` as Prefect subflows and tasks. Both publish the same release.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeVar

POLL_SECONDS = 0.5
"""Polars handles SIGINT with SA_RESTART, so Ctrl-C interrupts no wait without a timeout."""
P = ParamSpec("P")
T = TypeVar("T")


class Runner(Protocol):
    """Calls phases and steps. Their exceptions are raised to the caller as they are.

    The inputs of a step are the results of earlier steps that it builds on, by name: they order a
    graph of the build and are not passed to the step.
    """

    def phase(self, phase: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a phase, which calls steps. Its arguments are names, digests and paths."""
        ...

    def call(self, step: partial[T], **inputs: Any) -> T:
        """Call one step and return its result."""
        ...

    def each(self, steps: Sequence[partial[T]], at_once: int, **inputs: Any) -> list[T]:
        """Call steps, at most `at_once` at a time; return the results in the order of the steps."""
        ...


class DirectRunner:
    """Calls phases and steps in this process, concurrent steps in threads."""

    def phase(self, phase: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return phase(*args, **kwargs)

    def call(self, step: partial[T], **inputs: Any) -> T:
        return step()

    def each(self, steps: Sequence[partial[T]], at_once: int, **inputs: Any) -> list[T]:
        """Call steps; see `Runner.each`.

        After an error, pending steps are dropped, running ones end, and the error is raised. After
        an interrupt none is waited for: the threads are daemons, unlike those of
        `ThreadPoolExecutor`, so a source that hangs does not delay the exit.
        """
        if at_once == 1 or len(steps) < 2:
            return [step() for step in steps]
        futures = [Future[T]() for _ in steps]
        todo = SimpleQueue[tuple[Future[T], partial[T]]]()
        for pair in zip(futures, steps, strict=True):
            todo.put(pair)
        for number in range(min(at_once, len(steps))):
            Thread(target=_work, args=(todo,), name=f"step-{number}", daemon=True).start()
        try:
            while not _is_over(futures):
                pass
        finally:
            started = [future for future in futures if not future.cancel()]
        while wait(started, POLL_SECONDS).not_done:
            pass
        return [future.result() for future in started]


def _is_over(futures: Sequence[Future[Any]]) -> bool:
    """Wait for a moment; return whether all are done or any failed."""
    done, waiting = wait(futures, POLL_SECONDS, FIRST_EXCEPTION)
    return not waiting or any(future.exception() is not None for future in done)


def _work(todo: SimpleQueue[tuple[Future[T], partial[T]]]) -> None:
    """Call steps in order until none is left, or one fails."""
    with suppress(Empty):
        while True:
            future, step = todo.get_nowait()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(step())
                except BaseException as error:
                    _drop(todo)
                    future.set_exception(error)


def _drop(todo: SimpleQueue[tuple[Future[T], partial[T]]]) -> None:
    with suppress(Empty):
        while True:
            todo.get_nowait()[0].cancel()
