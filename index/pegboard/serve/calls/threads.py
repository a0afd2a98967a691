"""Threads for work that may not end: so many and no more, and none that the process waits for."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Value = TypeVar("Value")


class Threads:
    """Runs functions in threads of its own, which cost nothing else when they hang.

    An executor would do neither: that of the event loop is everyone's, and a process that ends
    waits for the threads of each.

    Args:
        size: of how many run at once. A thread counts until it ends, whoever still waits for it.
    """

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)

    @property
    def busy(self) -> bool:
        """Whether all threads are occupied, so that the next function waits for one to end."""
        return self._free.locked()

    async def run(self, function: Callable[..., Value], *args: Any) -> Value:
        """Return what a function returns, and raise the Exception that it raises.

        Who stops waiting does not end the function.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def end(value: Any, error: Exception | None) -> None:
            self._free.release()
            if done.cancelled():
                return
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)

        def work() -> None:
            value, error = None, None
            try:
                value = context.run(function, *args)
            except Exception as problem:
                error = problem
            except BaseException as problem:  # it would end the event loop
                error = RuntimeError(f"{type(problem).__name__}: {problem}")
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(end, value, error)

        try:
            threading.Thread(target=work, daemon=True).start()
        except BaseException:
            self._free.release()
            raise
        return await done


class LoopEnded(Exception):
    """The event loop of a coroutine ended first, since a task in it exited or it was closed."""


class ThreadLoop:
    """An event loop in a thread of its own: coroutines that block hold up only each other."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handing_over = threading.Lock()

    async def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Return what a coroutine returns; who stops waiting cancels it.

        Raises:
            LoopEnded: the loop ended before the coroutine; the next call gets a new one.
        """
        with self._handing_over:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(loop,), daemon=True).start()
                self._loop = loop
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            raise LoopEnded from None

    def close(self) -> None:
        """End the loop and cancel its coroutines, as soon as they let it."""
        with self._handing_over:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(SystemExit, KeyboardInterrupt):  # of a task that a coroutine started
            loop.run_forever()
        with self._handing_over:
            self._loop = None  # from here on, nothing is handed over to it
        end = loop.create_task(_cancel_tasks())
        while not end.done():
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_until_complete(end)
        loop.close()


async def _cancel_tasks() -> None:
    """Cancel all other tasks of this event loop, and wait until they end."""
    await asyncio.sleep(0)  # what was handed over last becomes a task
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
