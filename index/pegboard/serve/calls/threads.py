"""Threads for work that may not end: so many and no more, and none that the process waits for."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")


class AllOccupied(Exception):
    """No thread is free."""


class Threads:
    """Runs functions in threads of its own, which cost nothing else when they hang.

    An executor would do neither: that of the event loop is everyone's, and a process that ends
    waits for the threads of each.

    Args:
        size: of how many run at once. A thread counts until it ends, whoever still waits for it.
    """

    def __init__(self, size: int) -> None:
        self._free = threading.Semaphore(size)

    async def run(self, function: Callable[..., Value], *args: Any) -> Value:
        """Return what a function returns, and raise the Exception that it raises.

        Who stops waiting does not end the function.

        Raises:
            AllOccupied: all threads are, and it was not called.
        """
        if not self._free.acquire(blocking=False):
            raise AllOccupied
        done: Future[Value] = Future()
        done.set_running_or_notify_cancel()  # who stops waiting cancels it no more
        context = contextvars.copy_context()

        def work() -> None:
            try:
                value = context.run(function, *args)
            except BaseException as error:  # one that is no Exception would end the event loop
                self._free.release()
                own = isinstance(error, Exception)
                done.set_exception(error if own else RuntimeError(repr(error)))
            else:
                self._free.release()
                done.set_result(value)

        try:
            threading.Thread(target=work, daemon=True).start()
        except BaseException:
            self._free.release()
            raise
        return await asyncio.wrap_future(done)


class ThreadLoop:
    """An event loop in a thread of its own: coroutines that block hold up only each other."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Return what a coroutine returns; who stops waiting cancels it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(self._loop,), daemon=True).start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def close(self) -> None:
        """Cancel the coroutines, and end the loop as soon as they let it."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(_end(), self._loop)
            self._loop = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        with suppress(SystemExit, KeyboardInterrupt):  # of a task that a coroutine started
            loop.run_forever()
            loop.close()


async def _end() -> None:
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    asyncio.get_running_loop().stop()
