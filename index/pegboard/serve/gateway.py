"""The parts of a running gateway, which its MCP server and its HTTP API share."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from fastmcp.server.auth import AuthProvider

from pegboard.board import Board
from pegboard.opening import open_board
from pegboard.serve.access import AccessRules, Client, bearer_token
from pegboard.serve.auth import open_auth
from pegboard.serve.calls.caller import Caller
from pegboard.serve.finder import Finder
from pegboard.serve.live_settings import LiveSettings
from pegboard.serve.observer import Observer
from pegboard.serve.releases import ServedReleases
from pegboard.serve.request_ids import RequestIds
from pegboard.serve.sessions import Sessions
from pegboard.serve.settings import GatewaySettings, load_gateway_settings
from pegboard.serve.views import Views


class Gateway:
    """A board, who may use it, and how; `close` ends it.

    Args:
        board: follows its channel.
        uri: the board's address, for its other releases; "" for a board in memory.

    Attributes:
        stdio_client: the client of a gateway over stdio.

    Raises:
        ConfigurationError: the request log cannot be written, or `[serve.auth]` cannot be used.
    """

    def __init__(self, settings: GatewaySettings, board: Board, uri: str = "") -> None:
        serve = settings.serve
        self.board, self.live = board, LiveSettings(settings)
        self.observer = Observer(None if serve.log is None else settings.base / serve.log)
        self.caller = Caller(settings, self.observer)
        self.views = Views(board, can_call=self.caller.can_call)
        strategy = serve.llm.strategy if serve.llm else None
        self.finder = Finder(self.views, self.observer, strategy)
        self.releases = ServedReleases(self.finder, uri)
        self.auth: AuthProvider | None = open_auth(serve.auth)
        self.sessions, self.request_ids = Sessions(), RequestIds()
        self.stdio_client: str | None = None

    @property
    def settings(self) -> GatewaySettings:
        """The settings that hold now."""
        return self.live.settings

    @property
    def rules(self) -> AccessRules:
        """The rules that hold now."""
        return self.live.rules

    @property
    def golden(self) -> Path | None:
        """The file to which the page adds golden queries; None if it may not."""
        file = self.settings.serve.golden
        return None if file is None else self.settings.base / file

    def client(self, headers: Mapping[str, str]) -> Client | None:
        """Return the client of a request, from its headers by lower-case name; None if unknown."""
        return self.rules.client(headers)

    async def identified(self, headers: Mapping[str, str]) -> Client | None:
        """As `client`, with tokens of an identity provider."""
        client, token = self.client(headers), bearer_token(headers)
        if client is None and token and self.auth is not None:
            access = await self.auth.verify_token(token)
            if access is not None:
                return self.rules.client(headers, access.claims)
        return client

    async def reload_if_changed(self) -> None:
        """Take the catalogs, servers, APIs and limits of a file that changed; sessions go on.

        The log, the file of golden queries, `[serve.auth]` and `allowed_hosts` stay as they were.
        """
        if await asyncio.to_thread(self.live.reload_if_changed):
            await self.caller.reload(self.settings)
            self.views.forget()

    async def close(self) -> None:
        """End what calls started, and stop following the board."""
        await self.caller.close()
        self.releases.close()
        self.board.close()
        self.observer.close()


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
    uri = board or settings.board or ""
    llm = settings.serve.llm
    asking = {} if llm is None else {"api_base": llm.api_base, "timeout": llm.timeout}
    opened = open_board(
        uri,
        channel or settings.channel,
        background=True,
        llm=llm.model if llm else None,
        llm_options={name: value for name, value in asking.items() if value is not None},
    )
    return Gateway(settings, opened, uri)
