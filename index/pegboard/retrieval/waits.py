"""How a strategy waits: in the thread of a caller that blocks, or beside an event loop that goes
on.

The parts of a strategy are coroutines, written once. Where nothing waits for an LLM, `drive` runs
them to their end without an event loop: then nothing in them ever suspends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

Answer = TypeVar("Answer")


class Waits(Protocol):
    """What may take a while, done one way or the other."""

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """What a call returns that computes or reads."""
        ...

    async def all(self, works: Sequence[Awaitable[Answer]]) -> list[Answer]:
        """What several works return, in their order."""
        ...


class Blocking:
    """In this thread, one after the other."""

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """What the call returns."""
        return call()

    async def all(self, works: Sequence[Awaitable[Answer]]) -> list[Answer]:
        """What several works return; where one fails, those behind it are not begun."""
        done, waiting = list[Answer](), list(works)
        try:
            while waiting:
                done.append(await waiting.pop(0))
        finally:
            for work in waiting:
                if isinstance(work, Coroutine):
                    work.close()
        return done


class Yielding:
    """In other threads, while the event loop goes on; works side by side."""

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """What the call returns."""
        return await asyncio.to_thread(call)

    async def all(self, works: Sequence[Awaitable[Answer]]) -> list[Answer]:
        """What several works return."""
        return list(await asyncio.gather(*works))


def drive(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What a coroutine returns that never suspends. Raises RuntimeError if it does."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError(
        "A part of the strategy waited for something although it was run without an event loop."
    )


def run_to_end(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What a coroutine returns, by an event loop of its own: in this thread or, if a loop runs here
    already, in another.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "pegboard-strategy") as pool:
        return pool.submit(asyncio.run, work).result()
