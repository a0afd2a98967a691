"""The one place that decides who may see and call what."""

import asyncio
from collections.abc import Mapping

from fastmcp.server.auth import AuthProvider

from pegboard.board import Board
from pegboard.records import Tool, tool_id
from pegboard.serve.access.clients import Client, Clients, bearer_token
from pegboard.serve.access.views import (
    CallProblemOf,
    Entry,
    View,
    ViewKey,
    make_view,
    read_entries,
)

MAX_VIEWS = 64
"""Most views of a release that are held; the oldest one is dropped first."""


class AccessControl:
    """Decides which client a request comes from, and which tools the client may see and call.

    Args:
        board: its channel is followed: after a promotion, views are of the new release.
        call_problem: says why the gateway cannot call a tool.

    Attributes:
        clients: the configured clients.
        identity_provider: verifies tokens that are not in the configuration; None without
            `[serve.auth]`.
        stdio_client_name: the client of a gateway over stdio; None for the client without
            credentials.
        requires_credentials: whether every client needs credentials, since other machines can
            reach the gateway.
    """

    def __init__(
        self,
        clients: Clients,
        board: Board,
        call_problem: CallProblemOf = lambda *_: "",
        identity_provider: AuthProvider | None = None,
    ) -> None:
        self.clients = clients
        self.identity_provider = identity_provider
        self.stdio_client_name: str | None = None
        self.requires_credentials = False
        self._board = board
        self._call_problem = call_problem
        self._release: tuple[Board, dict[str, Entry]] | None = None
        self._views: dict[ViewKey, View] = {}
        self._building = asyncio.Lock()

    async def client(self, headers: Mapping[str, str]) -> Client | None:
        """Return the client of a request, from its headers by lower-case name; None if unknown."""
        client = self.clients.of_headers(headers)
        token = bearer_token(headers)
        if client is None and token and self.identity_provider is not None:
            access = await self.identity_provider.verify_token(token)
            if access is not None:
                return self.clients.of_claims(access.claims)
        return client

    def stdio_client(self) -> Client:
        """Return the client of a gateway over stdio.

        Raises:
            ConfigurationError: there is no such client.
        """
        return self.clients.named(self.stdio_client_name)

    async def view(self, client: Client, *, callable_only: bool = False) -> View:
        """Return the current release as a client sees it.

        While one request loads a new release, others are answered from the previous one.

        Args:
            callable_only: leave out tools that the gateway cannot call, if it can call any.
                Skills, prompts and resources stay.
        """
        key = ViewKey.of(client, callable_only)
        current = await asyncio.to_thread(lambda: self._board.release.id)
        view = self._views.get(key)
        if view is not None and (view.release == current or self._building.locked()):
            return view
        async with self._building:
            return await asyncio.to_thread(self._build, key)

    async def entries(self) -> tuple[str, Mapping[str, Entry]]:
        """Return the id of the current release, and all its tools by id."""
        async with self._building:
            board, entries = await asyncio.to_thread(self._loaded)
        return board.release.id, entries

    async def sees_agent(self, client: Client, agent: str) -> bool:
        """Whether a client may see a tool of an agent, or the agent itself if it has no tools."""
        _, entries = await self.entries()
        tools: list[Tool] = [entry for entry in entries.values() if entry.agent == agent]
        if not tools:
            tools = [Tool(tool_id(agent, "-"), agent.partition("/")[0], agent, "-")]
        return any(client.permits(tool) for tool in tools)

    def opened_by(self, clients: Clients) -> str:
        """Return why replacing the clients by these would let everyone in; "" if it would not."""
        if self.clients.by_name and not clients.by_name:
            return "[serve.clients] has no clients any more, and anyone could call every tool"
        if self.requires_credentials and clients.is_open:
            return "a client has no credentials, and the gateway is not on loopback"
        return ""

    def drop_views(self) -> None:
        """Drop all views: with changed settings, clients see and call other tools."""
        self._release = None
        self._views = {}

    def _build(self, key: ViewKey) -> View:
        board, entries = self._loaded()
        release = board.release.id
        views = {key: view for key, view in self._views.items() if view.release == release}
        if key not in views:
            views[key] = make_view(board, entries, key)
        self._views = dict(list(views.items())[-MAX_VIEWS:])
        return views[key]

    def _loaded(self) -> tuple[Board, dict[str, Entry]]:
        """Return the current release and all its tools. Views of the previous release stay until
        one of this release is built.
        """
        if self._release is None or self._release[0].release.id != self._board.release.id:
            board = self._board.at_current_release()
            self._release = board, read_entries(board, self._call_problem)
        return self._release
