"""Per-client concurrency limits: one client cannot take all places."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from pegboard.serve.access.clients import ANYONE, Client
from pegboard.serve.errors import CallProblem


class ConcurrencyLimit:
    """A limit on what runs at once, with at most half of the places for one client.

    Where no clients are configured, the requests of all may take every place.

    Args:
        size: the number of places.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._places = asyncio.Semaphore(size)
        self._client_places: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def place(
        self, client: Client, timeout: float | None = None, busy: str = ""
    ) -> AsyncGenerator[None]:
        """Hold a place for a client in the block.

        Args:
            timeout: seconds to wait for a place; None waits for as long as it takes.
            busy: the message of the error.

        Raises:
            CallProblem: no place became free in time.
        """
        share = self._size if client == ANYONE else max(1, self._size // 2)
        client_places = self._client_places.setdefault(client.name, asyncio.Semaphore(share))
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(timeout):
                    await held.enter_async_context(client_places)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise CallProblem("timeout", busy) from None
            yield
