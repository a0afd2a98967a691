"""How a run calls its steps, which are plain functions: `DirectRunner` calls them in this process,
`flows.prefect.runner` submits them as Prefect tasks. Both publish the same release.
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
    """Calls steps. An exception of a step is raised to the caller as it is."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call one step and return its result."""
        ...

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        """Make calls, at most `at_once` at a time; return the results in the order of the calls."""
        ...


class DirectRunner:
    """Calls the steps in this process, concurrent ones in threads."""

    def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(*args, **kwargs)

    def each(self, calls: Sequence[partial[T]], at_once: int) -> list[T]:
        """Make calls; see `Runner.each`.

        After an error, pending calls are dropped, running ones end, and the error is raised. After
        an interrupt none is waited for: the threads are daemons, unlike those of
        `ThreadPoolExecutor`, so a source that hangs does not delay the exit.
        """
        if at_once == 1 or len(calls) < 2:
            return [call() for call in calls]
        futures = [Future[T]() for _ in calls]
        todo = SimpleQueue[tuple[Future[T], partial[T]]]()
        for pair in zip(futures, calls, strict=True):
            todo.put(pair)
        for number in range(min(at_once, len(calls))):
            Thread(target=_work, args=(todo,), name=f"step-{number}", daemon=True).start()
        try:
            while not _is_over(futures):
                pass
        finally:
            begun = [future for future in futures if not future.cancel()]
        while wait(begun, POLL_SECONDS).not_done:
            pass
        return [future.result() for future in begun]


def _is_over(futures: Sequence[Future[Any]]) -> bool:
    """Wait for a moment; return whether all are done or any failed."""
    done, waiting = wait(futures, POLL_SECONDS, FIRST_EXCEPTION)
    return not waiting or any(future.exception() is not None for future in done)


def _work(todo: SimpleQueue[tuple[Future[T], partial[T]]]) -> None:
    """Make calls in order until none is left, or one fails."""
    with suppress(Empty):
        while True:
            future, call = todo.get_nowait()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    _drop(todo)
                    future.set_exception(error)


def _drop(todo: SimpleQueue[tuple[Future[T], partial[T]]]) -> None:
    with suppress(Empty):
        while True:
            todo.get_nowait()[0].cancel()
