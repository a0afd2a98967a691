"""An event loop in a thread of its own, for work that is bound to one loop while its callers have
many, or none.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")

_LEAVING_SECONDS = 5
"""How long whoever ends the loop waits for it: connections may be slow to close, and nobody needs
them any more.
"""


class LoopThread:
    """Runs coroutines until it is stopped. The thread is a daemon: it keeps no process alive.

    A process that forks takes no threads along, so `alive` is false in the child.

    Args:
        name: the thread's.
        last: awaited in the loop when it ends.
    """

    def __init__(self, name: str, last: Callable[[], Awaitable[None]] | None = None) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(_serve(ready, self._running, last)), name=name, daemon=True
        )
        self._thread.start()
        self._loop, self._stop = ready.result()

    @property
    def alive(self) -> bool:
        """Whether it takes work: it was not stopped, and this is the process that started it
        (Python sees to that).
        """
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Start a coroutine; cancelling the future cancels it, and so does `stop`."""
        return asyncio.run_coroutine_threadsafe(_noted(work, self._running), self._loop)

    def stop(self) -> None:
        """Cancel what runs, and end the thread."""
        if not self.alive or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_LEAVING_SECONDS)


async def _serve(
    ready: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]",
    running: set[asyncio.Task[Any]],
    last: Callable[[], Awaitable[None]] | None,
) -> None:
    stop = asyncio.Event()
    ready.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    # Only what was started here: the tasks of a library are needed by `last`, which ends them.
    left = tuple(running)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if last is not None:
        await last()


async def _noted(work: Coroutine[Any, Any, Result], running: set[asyncio.Task[Any]]) -> Result:
    task = asyncio.current_task()
    assert task is not None
    running.add(task)
    try:
        return await work
    finally:
        running.discard(task)
