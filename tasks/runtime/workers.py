"""Where steps compute rows that no other row decides: in this process, or on the workers that
`[run]` gives a build (`flows/engines`)."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

T = TypeVar("T")
WAITING = 2
"""Calls for each worker whose results may wait until those before them are taken."""


class Workers(Protocol):
    """Makes calls in other processes; see `flows.engines.Engine`."""

    @property
    def workers(self) -> int:
        """How many calls can run at once."""
        ...

    @property
    def threads(self) -> int:
        """How many threads one call may use."""
        ...

    def run(self, call: partial[T]) -> T:
        """Make a call and wait for it."""
        ...


_workers: ContextVar[Workers | None] = ContextVar("workers", default=None)


@contextmanager
def using(workers: Workers | None) -> Generator[None]:
    """Give the steps that are called inside workers; None for none."""
    token = _workers.set(workers)
    try:
        yield
    finally:
        _workers.reset(token)


def available() -> bool:
    """Return whether calls can be made elsewhere."""
    return _workers.get() is not None


def each(calls: Iterable[partial[T]]) -> Iterator[T]:
    """Yield the results of calls in their order, made by the workers if there are any.

    The calls have to be of functions that workers can import, and return the same wherever and
    however often they are made. Only some are made before their results are taken.
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
