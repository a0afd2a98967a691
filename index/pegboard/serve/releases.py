"""The releases that the HTTP API answers from: the live one, and those that are asked for beside
it."""

import asyncio
from collections import OrderedDict
from typing import Any

from pegboard.cli.gate import gate_state
from pegboard.errors import BoardNotFound
from pegboard.opening import open_board
from pegboard.serve.finder import Finder
from pegboard.serve.views import Views
from pegboard.store.contract import CONTRACT
from pegboard.store.releases import Channel, ReleaseStore

MAX_OTHERS = 2
"""Releases beside the live one that are held in memory at once."""
MAX_LISTED = 100
"""Releases that a list has: the newest."""


class ServedReleases:
    """Finders of releases; one that is not live is opened when it is first asked for.

    Args:
        live: follows the channel.
        uri: the board's address; "" for a board in memory, which has one release.
    """

    def __init__(self, live: Finder, uri: str) -> None:
        self.live, self._uri = live, uri
        self._store = ReleaseStore(uri) if uri else None
        self._others: OrderedDict[str, Finder] = OrderedDict()
        self._opening = asyncio.Lock()

    @property
    def channel(self) -> str | None:
        """The channel that is followed; None for a board that stays at one release."""
        return self.live.views.board.status().channel

    async def finder(self, release: str | None) -> Finder:
        """Return the finder of a release, by its id or the beginning of it; None means the live
        one.

        Raises:
            BoardNotFound: there is no such release, or there are several.
        """
        live = await asyncio.to_thread(lambda: self.live.views.board.release.id)
        if release is None or release == live:
            return self.live
        async with self._opening:
            identity = await asyncio.to_thread(self._whole_id, release)
            if identity == live:
                return self.live
            if identity not in self._others:
                board = await asyncio.to_thread(open_board, self._uri, release=identity)
                views = Views(board, self.live.views)
                self._others[identity] = Finder(views, self.live.observer)
            self._others.move_to_end(identity)
            while len(self._others) > MAX_OTHERS:
                _, finder = self._others.popitem(last=False)
                finder.views.board.close()
            return self._others[identity]

    def listed(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the id of the channel's release, and a row for each of the newest, newest first.

        What was counted or measured is left out, since it tells of tools that a client may not see.
        """
        live = self.live.views.board.release
        channels: list[Channel] = []
        releases = [live]
        if self._store is not None:
            channels, releases = self._store.channels(), self._store.all()
        rows: list[dict[str, Any]] = [
            {
                "release": release.id,
                "created_at": release.created_at.isoformat(),
                "indexes": sorted(release.manifest["indexes"]),
                "gate": gate_state(release, channels),
                "channels": [channel.name for channel in channels if channel.release == release.id],
                "live": release.id == live.id,
            }
            for release in [one for one in releases if one.contract == CONTRACT][:MAX_LISTED]
        ]
        return live.id, rows

    def close(self) -> None:
        """Close the boards of releases that are not live."""
        while self._others:
            self._others.popitem()[1].views.board.close()

    def _whole_id(self, release: str) -> str:
        if self._store is None:
            raise BoardNotFound("This board is in memory and has one release. Leave `release` out.")
        return self._store.get(release).id
