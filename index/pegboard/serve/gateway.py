"""The parts of a running gateway that its MCP server and its HTTP API share."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from pegboard.board import Board
from pegboard.errors import PegboardError
from pegboard.opening import open_board
from pegboard.serve.access.clients import Clients
from pegboard.serve.access.control import AccessControl
from pegboard.serve.access.identity_provider import open_identity_provider
from pegboard.serve.access.unmatched_rules import settings_without_effect, tools_not_offered
from pegboard.serve.calls.caller import Caller
from pegboard.serve.calls.changes import ChangeEvents
from pegboard.serve.finder import Finder
from pegboard.serve.metrics import Metrics
from pegboard.serve.settings import GatewaySettings, load_gateway_settings

FileStates = dict[Path, tuple[int, int, int]]
"""Modification time in nanoseconds, size in bytes and inode of each file."""

log = logging.getLogger("pegboard.serve")


class Gateway:
    """A board, who may use it, and how. `close` ends it.

    Args:
        board: its channel is followed.
        uri: its address, if it is not that of the settings.

    Attributes:
        settings: the settings that hold now.
        access: decides who may see and call what.
        events: posts that servers' lists changed.
        caller: calls the tools.
        finder: finds tools for clients.
        golden_lock: held while a golden query is saved.

    Raises:
        ConfigurationError: the clients, the request log or `[serve.auth]` cannot be used.
    """

    def __init__(self, settings: GatewaySettings, board: Board, uri: str = "") -> None:
        serve = settings.serve
        clients = Clients(serve.clients)
        self.settings = settings
        self.board = board
        self.metrics = Metrics(None if serve.log is None else settings.base / serve.log)
        self.events = ChangeEvents(serve.events, _absolute(uri or settings.uri))
        self.caller = Caller(settings, self.metrics, self.events)
        self.access = AccessControl(
            clients, board, self.caller.call_problem, open_identity_provider(serve.auth)
        )
        strategy = serve.llm.strategy if serve.llm else None
        self.finder = Finder(self.access, self.metrics, strategy)
        self.golden_lock = asyncio.Lock()
        self._loaded_files = _states(settings)
        """The states of the files that the settings were read from."""
        self._seen_files = self._loaded_files
        """The states of the files when they were last looked at."""

    @property
    def golden_file(self) -> Path | None:
        """The file to which the page adds golden queries; None if it may not."""
        file = self.settings.serve.golden
        return None if file is None else self.settings.base / file

    async def reload_if_changed(self) -> bool:
        """Read the rules, catalogs, servers, APIs and limits again if their files changed, and
        return whether they did. Sessions stay open.

        The log, `[serve.auth]`, `[serve.llm]`, `allowed_hosts`, `requests_per_minute` and the
        `concurrency` of calls change only with a restart. A change may remove permissions, and
        add some for clients with credentials. It never lets everyone in, since an emptied file
        looks like settings that do: only a start accepts these.
        """
        states = await asyncio.to_thread(_states, self.settings)
        settled = states == self._seen_files
        self._seen_files = states
        # At the first look that sees a change, the file may be half written.
        if states == self._loaded_files or not settled or self.settings.file is None:
            return False
        self._loaded_files = states
        try:
            settings = await asyncio.to_thread(load_gateway_settings, self.settings.file)
            clients = Clients(settings.serve.clients)
        except PegboardError as error:
            log.error("The settings stay as they were: %s", error)
            return False
        if why := self.access.opened_by(clients):
            log.error(
                "The settings stay as they were: in %s %s. Restart the gateway if that is meant.",
                settings.file,
                why,
            )
            return False
        self.settings = settings
        self.access.clients = clients
        self._loaded_files = self._seen_files = _states(settings)
        log.warning("The settings of %s were read again.", settings.file)
        await self.caller.reload(settings)
        self.access.drop_views()
        return True

    async def warn_of_settings_without_effect(self) -> str:
        """Log the settings that match nothing in the current release, and the tools that cannot be
        called; return the release's id.
        """
        try:
            release, entries = await self.access.entries()
        except PegboardError as error:
            log.warning("The rules could not be compared with the release: %s", error)
            return self.board.status().release
        tools = list(entries.values())
        problems = await asyncio.to_thread(
            settings_without_effect, self.access.clients, self.settings.serve, tools
        )
        if problems:
            log.warning(
                "pegboard serve: settings without effect in release %s, perhaps misspelt:\n%s",
                release,
                "\n".join(f"  - {problem}" for problem in problems),
            )
        missing = await asyncio.to_thread(tools_not_offered, tools)
        if missing:
            log.warning(
                "pegboard serve: this gateway cannot call some tools of release %s:\n%s",
                release,
                "\n".join(f"  - {line}" for line in missing),
            )
        return release

    async def close(self) -> None:
        """End the servers that calls started, and stop following the board."""
        await self.events.close()
        await self.caller.close()
        self.board.close()
        self.metrics.close()


def open_gateway(
    file: str | Path | None = None, board: str | None = None, channel: str | None = None
) -> Gateway:
    """Open a gateway to a published board.

    Args:
        file: a pegboard.toml; None for default settings.
        board: the board's address; None for that of the file.
        channel: the channel to follow; None for that of the file.

    Raises:
        ConfigurationError: `[serve]` has problems.
        BoardError: the board cannot be opened.
    """
    settings = GatewaySettings() if file is None else load_gateway_settings(file)
    uri = board or settings.uri
    llm = settings.serve.llm
    followed_board = open_board(
        uri,
        channel or settings.board.channel,
        llm=llm.model if llm else None,
        llm_options=llm.model_dump(include={"api_base", "timeout", "options"}) if llm else None,
    )
    return Gateway(settings, followed_board, uri)


def _absolute(uri: str) -> str:
    """Return the address of a board as builds name it."""
    return uri if "://" in uri else str(Path(uri).expanduser().resolve())


def _states(settings: GatewaySettings) -> FileStates:
    """Return the states of the files that the settings are read from."""
    states: FileStates = {}
    for path in _files(settings):
        try:
            status = path.stat()
        except OSError:
            continue
        states[path] = status.st_mtime_ns, status.st_size, status.st_ino
    return states


def _files(settings: GatewaySettings) -> Iterator[Path]:
    """Yield the settings' file, and the files of MCP servers that it names."""
    if settings.file is not None:
        yield settings.file
    for table in settings.catalogs.values():
        if table.get("type") == "mcp" and table.get("path"):
            yield settings.base / Path(str(table["path"])).expanduser()
