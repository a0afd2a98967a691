"""The parts of a running gateway, which its MCP server and its HTTP API share."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from fastmcp.server.auth import AuthProvider

from pegboard.board import Board
from pegboard.errors import PegboardError
from pegboard.opening import open_board
from pegboard.serve.access import AccessRules, Client, bearer_token
from pegboard.serve.auth import open_auth
from pegboard.serve.calls.caller import Caller
from pegboard.serve.finder import Finder
from pegboard.serve.observer import Observer
from pegboard.serve.sessions import Sessions
from pegboard.serve.settings import GatewaySettings, load_gateway_settings
from pegboard.serve.views import Views

FileStates = dict[Path, tuple[int, int, int]]

log = logging.getLogger("pegboard.serve")


class Gateway:
    """A board, who may use it, and how; `close` ends it.

    Args:
        board: follows its channel.

    Attributes:
        settings, rules: those that hold now.
        closed: whether every client needs credentials, since others than this machine may ask.
        stdio_client: the client of a gateway over stdio.
        saving: held while a golden query is saved.

    Raises:
        ConfigurationError: the request log cannot be written, or `[serve.auth]` cannot be used.
    """

    def __init__(self, settings: GatewaySettings, board: Board) -> None:
        serve = settings.serve
        self.board, self.settings, self.rules = board, settings, AccessRules(serve.clients)
        self._read = self._seen = _states(settings)
        self.closed = False
        self.stdio_client: str | None = None
        self.observer = Observer(None if serve.log is None else settings.base / serve.log)
        self.caller = Caller(settings, self.observer)
        self.views = Views(board, can_call=self.caller.can_call)
        strategy = serve.llm.strategy if serve.llm else None
        self.finder = Finder(self.views, self.observer, strategy)
        self.auth: AuthProvider | None = open_auth(serve.auth)
        self.sessions = Sessions()
        self.saving = asyncio.Lock()

    @property
    def golden(self) -> Path | None:
        """The file to which the page adds golden queries; None if it may not."""
        file = self.settings.serve.golden
        return None if file is None else self.settings.base / file

    async def client(self, headers: Mapping[str, str]) -> Client | None:
        """Return the client of a request, from its headers by lower-case name; None if unknown."""
        client, token = self.rules.client(headers), bearer_token(headers)
        if client is None and token and self.auth is not None:
            access = await self.auth.verify_token(token)
            if access is not None:
                return self.rules.client(headers, access.claims)
        return client

    async def reload_if_changed(self) -> bool:
        """Take the rules, catalogs, servers, APIs and limits of files that changed, and return
        whether they did; sessions go on.

        The log, `[serve.auth]`, `[serve.llm]`, `allowed_hosts`, `requests_per_minute` and the
        `concurrency` of calls stay as they were. A change may take from anyone and give to clients
        with credentials. It never lets everyone in: an emptied file reads like one that asks for
        that, so only a start does.
        """
        states = await asyncio.to_thread(_states, self.settings)
        settled, self._seen = states == self._seen, states
        # At the first look that sees a change, the file may be half written.
        if states == self._read or not settled or self.settings.file is None:
            return False
        self._read = states
        try:
            settings = await asyncio.to_thread(load_gateway_settings, self.settings.file)
            rules = AccessRules(settings.serve.clients)
        except PegboardError as error:
            log.error("The settings stay as they were: %s", error)
            return False
        if why := self._opens(rules):
            log.error(
                "The settings stay as they were: in %s %s. Restart the gateway if that is meant.",
                settings.file,
                why,
            )
            return False
        self.settings, self.rules = settings, rules
        self._read = self._seen = _states(settings)
        log.warning("The settings of %s were read again.", settings.file)
        await self.caller.reload(settings)
        self.views.forget()
        return True

    async def close(self) -> None:
        """End what calls started, and stop following the board."""
        await self.caller.close()
        self.board.close()
        self.observer.close()

    def _opens(self, rules: AccessRules) -> str:
        """Say why everyone would be let in by rules that replace these; else ""."""
        if self.rules.clients and not rules.clients:
            return "[serve.clients] has no clients any more, and anyone could call every tool"
        if self.closed and rules.is_open:
            return "a client has no credentials, and the gateway is not on loopback"
        return ""


def open_gateway(
    file: str | Path | None = None, board: str | None = None, channel: str | None = None
) -> Gateway:
    """Open a gateway to a published board.

    Args:
        file: a pegboard.toml.
        board: its address, instead of the file's.
        channel: the channel to follow, instead of the file's.

    Raises:
        ConfigurationError: `[serve]` has problems.
        BoardError: the board cannot be opened.
    """
    settings = GatewaySettings() if file is None else load_gateway_settings(file)
    uri = board or settings.uri
    llm = settings.serve.llm
    opened = open_board(
        uri,
        channel or settings.board.channel,
        llm=llm.model if llm else None,
        llm_options=llm.model_dump(include={"api_base", "timeout"}) if llm else None,
    )
    return Gateway(settings, opened)


def _states(settings: GatewaySettings) -> FileStates:
    """Return when each file was changed, in nanoseconds, its bytes and its inode."""
    states: FileStates = {}
    for path in _files(settings):
        try:
            status = path.stat()
        except OSError:
            continue
        states[path] = status.st_mtime_ns, status.st_size, status.st_ino
    return states


def _files(settings: GatewaySettings) -> Iterator[Path]:
    """Yield the settings' file, and those of MCP servers that it names."""
    if settings.file is not None:
        yield settings.file
    for table in settings.catalogs.values():
        if table.get("type") == "mcp" and table.get("path"):
            yield settings.base / Path(str(table["path"])).expanduser()
