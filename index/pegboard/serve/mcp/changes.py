"""Following the board's channel and the settings: sessions are told when their `tools/list` may
have changed."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from pegboard.serve.access.clients import Clients
from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.sessions import Sessions

LOOK_SECONDS = 1.0
"""Seconds between two looks at the board and the settings."""

log = logging.getLogger("pegboard.serve")


@asynccontextmanager
async def following_changes(gateway: Gateway, sessions: Sessions) -> AsyncGenerator[None]:
    """Look for a new release, changed settings and idle sessions with servers every second while
    the block runs.
    """
    task = asyncio.create_task(_follow(gateway, sessions))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(gateway: Gateway, sessions: Sessions) -> None:
    seen: tuple[str, Clients] | None = None
    while True:
        try:
            gateway.caller.end_idle()
            await gateway.reload_if_changed()
            clients = gateway.access.clients
            release = await asyncio.to_thread(lambda: gateway.board.release.id)
            if (release, clients) != seen:
                seen = await gateway.warn_of_settings_without_effect(), clients
                await sessions.tell_of_changes()
        except Exception:  # go on: the next change may remove a permission
            log.exception("Changes could not be followed.")
        await asyncio.sleep(LOOK_SECONDS)
