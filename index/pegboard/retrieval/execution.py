"""How a strategy runs: blocking in the caller's thread, or in an event loop.

The parts of a strategy are coroutines. Without an LLM none of them suspends, so `drive` runs them
to completion without an event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

Value = TypeVar("Value")


class Execution(Protocol):
    """Runs blocking calls and awaitables for a strategy."""

    async def run(self, call: Callable[[], Value]) -> Value:
        """Return what a blocking call returns."""
        ...

    async def gather(self, coroutines: Sequence[Awaitable[Value]]) -> list[Value]:
        """Return the results of several awaitables, in their order."""
        ...


class BlockingExecution:
    """Runs everything in this thread, sequentially."""

    async def run(self, call: Callable[[], Value]) -> Value:
        """Return what the call returns."""
        return call()

    async def gather(self, coroutines: Sequence[Awaitable[Value]]) -> list[Value]:
        """Return the results; where one fails, those behind it are never started."""
        results, pending = list[Value](), list(coroutines)
        try:
            while pending:
                results.append(await pending.pop(0))
        finally:
            for coroutine in pending:
                if isinstance(coroutine, Coroutine):
                    coroutine.close()
        return results


class AsyncExecution:
    """Runs calls in worker threads and awaitables concurrently, in an event loop."""

    async def run(self, call: Callable[[], Value]) -> Value:
        """Return what the call returns."""
        return await asyncio.to_thread(call)

    async def gather(self, coroutines: Sequence[Awaitable[Value]]) -> list[Value]:
        """Return the results."""
        return list(await asyncio.gather(*coroutines))


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
