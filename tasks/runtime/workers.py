"""Calls that steps can make in this process, or on the workers that `[run]` gives a build
(`flows/engines.py`)."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

T = TypeVar("T")
WAITING = 2
"""Largest number of submitted calls per worker, so that few results wait in memory."""


class Workers(Protocol):
    """Makes calls in other processes; see `flows.engines.Engine`."""

    @property
    def workers(self) -> int:
        """Number of calls that can run at once."""
        ...

    @property
    def threads(self) -> int:
        """Number of threads that one call may use."""
        ...

    def run(self, call: partial[T]) -> T:
        """Make a call, wait for it, and return its result."""
        ...


_workers: ContextVar[Workers | None] = ContextVar("workers", default=None)


@contextmanager
def using(workers: Workers | None) -> Generator[None]:
    """Let the steps that are called inside use these workers; with None they use none."""
    token = _workers.set(workers)
    try:
        yield
    finally:
        _workers.reset(token)


def available() -> bool:
    """Return whether there are workers for calls."""
    return _workers.get() is not None


def each(calls: Iterable[partial[T]]) -> Iterator[T]:
    """Yield the results of calls in their order, made by the workers if there are any.

    Workers must be able to import the functions, and a call must return the same result wherever
    and however often it is made. At most `WAITING` calls per worker are made ahead.
    """
    workers = _workers.get()
    if workers is None:
        yield from (call() for call in calls)
        return
    threads = ThreadPoolExecutor(workers.workers, "worker")
    results: deque[Future[T]] = deque()
    try:
        for call in calls:
            results.append(threads.submit(workers.run, call))
            if len(results) > WAITING * workers.workers:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
