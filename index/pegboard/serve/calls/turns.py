"""Turns at something that few may use at once, so that one client cannot take them all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from pegboard.serve.access import ANYONE, Client
from pegboard.serve.calls.results import CallProblem


class Turns:
    """So many turns at once, and at most half of them of one client, if clients are told apart."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._all = asyncio.Semaphore(size)
        self._own: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(
        self, client: Client, timeout: float | None = None, busy: str = ""
    ) -> AsyncGenerator[None]:
        """Hold a turn of a client in the block.

        Raises:
            CallProblem: with the text `busy`, if there is none within so many seconds; without a
                timeout it waits.
        """
        share = self._size if client == ANYONE else max(1, self._size // 2)
        own = self._own.setdefault(client.name, asyncio.Semaphore(share))
        async with AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(timeout):
                    await turn.enter_async_context(own)
                    await turn.enter_async_context(self._all)
            except TimeoutError:
                raise CallProblem("timeout", busy) from None
            yield
