"""The releases that the HTTP API answers from: the live one, and those that are asked for beside
it."""

import asyncio
from functools import lru_cache
from typing import Any

from pegboard.cli.gate import gate_state
from pegboard.opening import open_board
from pegboard.serve.finder import Finder
from pegboard.serve.views import Views
from pegboard.store.contract import CONTRACT
from pegboard.store.releases import ReleaseStore

MAX_OTHERS = 2
"""Releases beside the live one that are held in memory at once."""
MAX_LISTED = 100
"""Releases that a list has: the newest."""


class ServedReleases:
    """Finders of releases; one that is not live is opened when it is first asked for.

    Args:
        live: follows the channel.
        uri: the board's address.
    """

    def __init__(self, live: Finder, uri: str) -> None:
        self._live, self._uri, self._store = live, uri, ReleaseStore(uri)
        self._others = lru_cache(MAX_OTHERS)(self._open)
        self._opening = asyncio.Lock()

    async def finder(self, release: str | None) -> Finder:
        """Return the finder of a release, by its id or the beginning of it; None means the live
        one.

        Raises:
            BoardNotFound: there is no such release, or there are several.
        """
        if release is None:
            return self._live
        async with self._opening:
            return await asyncio.to_thread(self._named, release)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each of the newest releases, newest first.

        What was counted or measured is left out, since it tells of tools that a client may not see.
        """
        live, channels = self._live.views.board.release.id, self._store.channels()
        releases = [release for release in self._store.all() if release.contract == CONTRACT]
        return [
            {
                "release": release.id,
                "created_at": release.created_at.isoformat(),
                "indexes": sorted(release.manifest["indexes"]),
                "gate": gate_state(release, channels),
                "live": release.id == live,
            }
            for release in releases[:MAX_LISTED]
        ]

    def _named(self, release: str) -> Finder:
        identity = self._store.get(release).id
        live = self._live.views.board.release.id
        return self._live if identity == live else self._others(identity)

    def _open(self, release: str) -> Finder:
        board = open_board(self._uri, release=release)
        return Finder(Views(board, self._live.views), self._live.observer)
