"""How a strategy runs: blocking in the caller's thread, or in an event loop.

The parts of a strategy are coroutines. Without an LLM none of them suspends, so `drive` runs them
to completion without an event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs the blocking calls and the coroutines of a strategy.

    Attributes:
        concurrent: in an event loop, with blocking calls in worker threads; else one after the
            other in the thread that drives the strategy.
    """

    concurrent: bool

    async def run(self, call: Callable[[], Value]) -> Value:
        """Return what a blocking call returns."""
        return await asyncio.to_thread(call) if self.concurrent else call()

    async def gather(self, calls: Sequence[Callable[[], Awaitable[Value]]]) -> list[Value]:
        """Return the results of several coroutine functions, in their order."""
        if self.concurrent:
            return list(await asyncio.gather(*(call() for call in calls)))
        return [await call() for call in calls]


def drive(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine that never suspends. Raises RuntimeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError(
        "A part of the strategy awaited something although it was run without an event loop."
    )


def run_to_end(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine in an event loop of its own, in another thread if this one has a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, "pegboard-strategy") as pool:
        return pool.submit(asyncio.run, coroutine).result()
