"""Events that a server said that its list changed, so that its catalog is built again."""

import asyncio
import logging
from contextlib import suppress

import httpx2

from pegboard.events import catalog_changed
from pegboard.serve.settings import EventSettings
from pegboard.servers.config import References
from pegboard.text.redaction import public_url

COLLECT_SECONDS = 1.0
"""Seconds in which changes are collected: each session with a server is told of the same change."""
POST_SECONDS = 10.0
"""Timeout in seconds of a post."""

log = logging.getLogger("pegboard.serve")


class ChangeEvents:
    """Posts events in the background. A post that fails is logged, and not repeated.

    Args:
        settings: where events are posted; None for nowhere.
        uri: the board's address.

    Attributes:
        settings: may be replaced.
    """

    def __init__(self, settings: EventSettings | None, uri: str) -> None:
        self.settings = settings
        self._uri = uri
        self._agents: dict[str, str] = {}
        """The agent that changed of each catalog with changes that are not posted yet."""
        self._posting: asyncio.Task[None] | None = None

    def changed(self, agent: str) -> None:
        """Post soon that the list of a server changed.

        Args:
            agent: its id, `catalog/server`.
        """
        if self.settings is None:
            return
        self._agents[agent.partition("/")[0]] = agent
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post_all())

    async def close(self) -> None:
        """Stop; changes that are not posted are dropped."""
        if self._posting is not None:
            self._posting.cancel()
            with suppress(asyncio.CancelledError):
                await self._posting

    async def _post_all(self) -> None:
        while self._agents:
            await asyncio.sleep(COLLECT_SECONDS)
            agents = self._agents
            self._agents = {}
            if self.settings is not None:
                await self._post(self.settings, agents)

    async def _post(self, settings: EventSettings, agents: dict[str, str]) -> None:
        events = [
            catalog_changed(self._uri, catalog, {"agent": agent})
            for catalog, agent in agents.items()
        ]
        references = References()
        headers = {name: references.resolve(value) for name, value in settings.headers.items()}
        place = public_url(settings.address)
        if references.problems:
            log.error("Events are not posted to %s: %s", place, "; ".join(references.problems))
            return
        try:
            async with httpx2.AsyncClient(timeout=POST_SECONDS) as client:
                answer = await client.post(settings.address, json=events, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            # Only the type is shown: some messages quote the request.
            log.error("%s takes no events: %s", place, type(error).__name__)
            return
        if answer.is_error:
            log.error("%s takes no events: HTTP %s", place, answer.status_code)
            return
        log.info("Posted that %s changed.", ", ".join(agents))
