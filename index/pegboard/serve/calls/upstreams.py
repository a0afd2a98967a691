"""The MCP servers of the configuration, and the sessions with them.

The command of a server comes from the operator's file alone, never from a release: who may publish
tools must not run code on this machine."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mcp_types import CallToolResult

from pegboard.errors import ConfigurationError, SourceError
from pegboard.records import Tool, agent_id
from pegboard.serve.calls.client_request import client_request, client_token, is_modern
from pegboard.serve.calls.connection import Connection
from pegboard.serve.calls.functions import functions_server
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import GatewaySettings, ServerSettings
from pegboard.servers.config import Server, ServerProblem, configured_servers, resolve_server
from pegboard.servers.connect import ServerTransport, handshake
from pegboard.servers.references import secrets_in_catalogs

RETRY_SECONDS = 2.0
"""For which a server that did not start is not started again."""
MAX_SECONDS, MAX_EVENT = 60.0, 1_000_000
"""For a request of somebody who signs in, and bytes of its answer."""
CHANGED = "pegboard/changed"
"""In `_meta` of a result: that the tool differs from the release's."""
DIFFERENT = "its server lists another description or inputSchema, or none"

Key = tuple[str, str, bool, str]
"""Of a session: its client and the client's session, both "" for all; whether the protocol since
2026-07-28 is preferred; and the client's token, if it is passed on."""

log = logging.getLogger("pegboard.serve")


class Upstream:
    """One server of the configuration, and the sessions with it: opened when first needed, kept,
    ended when idle.

    Args:
        agent: the id of the agent whose tools it has.
        entry: what the configuration says of it; a `Server` for Python functions.
        base: the folder from which its paths count.
        settings: those that hold now.
    """

    def __init__(self, agent: str, entry: Any, base: Path, settings: GatewaySettings) -> None:
        self.settings = settings
        self._agent, self._entry, self._base = agent, entry, base
        self._opening = WeakValueDictionary[Key, asyncio.Lock]()
        self._connections: dict[Key, Connection] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._failure, self._failed_at, self._since = "", 0.0, ""
        self._changed: set[str] = set()
        """Ids of the tools that the log named as changed."""

    @property
    def configuration(self) -> tuple[Any, ...]:
        """What the operator says of the server."""
        return self._entry, self._base, self._own

    @property
    def has_functions(self) -> bool:
        """Whether it is a catalog's Python functions, which have no resources and prompts."""
        return isinstance(self._entry, Server)

    @property
    def _own(self) -> ServerSettings:
        return self.settings.serve.servers.get(self._agent, ServerSettings())

    @property
    def _shared(self) -> bool:
        """Whether all clients share one session: a server that is started keeps what one did."""
        if self._own.auth == "passthrough":
            return False
        if self._own.sessions is not None:
            return self._own.sessions == "shared"
        return not (isinstance(self._entry, Mapping) and "command" in self._entry)

    def server(self) -> Server:
        """Return the server with its references resolved. Raises ServerProblem."""
        return self._entry if self.has_functions else resolve_server(self._entry, self._base)

    def health(self) -> dict[str, str]:
        """Return its state (`idle`, `up`, `failed`), why, and since when."""
        up = any(connection.usable for connection in self._connections.values())
        state = "failed" if self._failure else "up" if up else "idle"
        return {"state": state, "error": self._failure, "since": self._since}

    async def call(
        self, client: str, session: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        """Return what the server answers to a call, without the secrets it was given.

        Args:
            client: the client's name.
            session: its session; "" for a call that belongs to none.

        Raises:
            CallProblem: the server cannot be reached, broke off, or sent too much.
            AskFirst: the server asks the user something first.
        """
        async with self.connection(client, session) as connection:
            changed = await self._is_changed(tool, connection)
            result = await connection.call(tool, arguments)
        if changed:
            return result.model_copy(update={"meta": {**(result.meta or {}), CHANGED: DIFFERENT}})
        return result

    @asynccontextmanager
    async def connection(self, client: str, session: str) -> AsyncGenerator[Connection]:
        """Hold a session with the server in the block, a new one if need be.

        Raises:
            CallProblem: the server cannot be reached.
        """
        if self._shared:
            client = session = ""
        token = client_token() if self._own.auth == "passthrough" else ""
        key = client, session, is_modern(client_request()), token
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is None or not connection.usable:
                if connection is not None:
                    await connection.close()
                connection = await self._open(key)
        with connection.held():
            yield connection

    def end_idle(self) -> None:
        """Begin to end the sessions that nobody uses."""
        oldest = time.monotonic() - self.settings.serve.calls.idle
        for key, connection in list(self._connections.items()):
            if not connection.in_use and (connection.used < oldest or not connection.usable):
                del self._connections[key]
                self._end_soon(connection)

    async def close(self) -> None:
        """End all sessions."""
        open_ = [connection.close() for connection in self._connections.values()]
        await asyncio.gather(*open_, *self._ending)

    def _end_soon(self, connection: Connection) -> None:
        """Begin to end a session, in a task of its own: servers take their time, and who ends them
        is cancelled when the gateway stops, which their end may swallow.
        """
        ending = asyncio.create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _open(self, key: Key) -> Connection:
        _, session, modern, token = key
        # A token that the server refuses holds up no other client.
        waits = time.monotonic() - self._failed_at < RETRY_SECONDS and not token
        if self._failure and waits:
            raise self._not_started()
        try:
            await self._make_room()
            server = self.server()
            connection = Connection(
                _with_token(server, token) if token else server,
                self.settings.serve.calls,
                forwards=not self._shared and bool(session),
                modern=modern,
            )
            await connection.open()
        except ServerProblem as problem:
            if self._failure != str(problem):
                log.error("The MCP server '%s' is not available: %s", self._agent, problem)
            self._note(str(problem))
            raise self._not_started() from None
        self._note("")
        self._connections[key] = connection
        front = client_request()
        peer = getattr(front.session, "_connection", None) if front else None
        if session and not modern and peer is not None:
            # It ends with the client's session, which a modern request has none of.
            peer.exit_stack.callback(self._end_soon, connection)
        return connection

    async def _make_room(self) -> None:
        """End the session that was idle longest if there are as many as allowed, those that are
        being opened included.
        """
        connections = self._connections
        if len(connections) + len(self._opening) <= self._own.max_sessions:
            return
        idle = [key for key, connection in connections.items() if not connection.in_use]
        if not idle:
            raise CallProblem(
                "failed",
                f"All sessions with '{self._agent}' are in use, and it was not called. Try again.",
            )
        await connections.pop(min(idle, key=lambda key: connections[key].used)).close()

    async def _is_changed(self, tool: Tool, connection: Connection) -> bool:
        """Whether a tool differs from the release's, if that is to be said.

        Raises:
            CallProblem: it differs, and is not called then.
        """
        setting = self.settings.serve.calls.changed
        if setting == "allow" or self.has_functions or tool.id in self.settings.overridden:
            return False
        if not await connection.differs(tool):
            return False
        if tool.id not in self._changed:
            self._changed.add(tool.id)
            log.warning("The tool %s is not that of the release: %s.", tool.id, DIFFERENT)
        if setting == "refuse":
            raise CallProblem(
                "refused",
                f"{tool.id} is not that of the release, and was not called: {DIFFERENT}. Whoever "
                f"runs the gateway builds a release with the new definition.",
            )
        return True

    def _note(self, failure: str) -> None:
        """Keep why the server is not available, or that it is."""
        if failure != self._failure or not self._since:
            self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._failure, self._failed_at = failure, time.monotonic()

    def _not_started(self) -> CallProblem:
        """Return what clients are told; why names commands, files and addresses of this machine."""
        return CallProblem(
            "failed",
            f"The MCP server '{self._agent}' is not available: it could not be started or reached. "
            f"Try again later; the gateway's log says why.",
        )


def configured_upstreams(settings: GatewaySettings) -> dict[str, Upstream]:
    """Return the servers of the catalogs by agent: MCP servers, and one for the Python functions of
    each catalog that may run. Those of a catalog that cannot be read are named in the log.
    """
    upstreams: dict[str, Upstream] = {}
    for name, table in settings.catalogs.items():
        if table.get("type") == "python" and name in settings.serve.python:
            agent = agent_id(name, str(table.get("agent") or name))
            server = functions_server(table, settings.base)
            upstreams[agent] = Upstream(agent, server, settings.base, settings)
        if table.get("type") != "mcp":
            continue
        try:
            entries, folder = configured_servers(
                table.get("path"), table.get("servers"), settings.base
            )
        except SourceError as error:
            log.error("The servers of the catalog %s cannot be called: %s", name, error)
            continue
        for server, entry in entries.items():
            agent = agent_id(name, server)
            upstreams[agent] = Upstream(agent, entry, folder, settings)
    return upstreams


async def sign_in(settings: GatewaySettings, agent: str) -> None:
    """Let the user sign in at a server of the configuration, whose tokens are kept.

    Raises:
        ConfigurationError: there is no such server, or nobody signed in.
    """
    upstream = configured_upstreams(settings).get(agent)
    if upstream is None:
        raise ConfigurationError(
            f"No MCP server '{agent}' in [catalogs]. Expected CATALOG/SERVER, such as github/api."
        )
    try:
        server = upstream.server()
        if server.auth is None:
            raise ServerProblem('it has no auth; add auth = "oauth" to it')
        transport = ServerTransport(server, MAX_SECONDS, MAX_EVENT, by_hand=True)
        try:
            async with transport.connect_session() as session:
                await handshake(session)
        except Exception as error:
            raise ServerProblem(transport.explain(error)) from None
    except ServerProblem as problem:
        raise ConfigurationError(f"Nobody signed in at '{agent}': {problem}.") from None


def _with_token(server: Server, token: str) -> Server:
    """Return a server that is sent a client's token, and whose messages are cleared of it.

    Raises:
        ServerProblem: it is not reached over HTTP.
    """
    if server.transport == "stdio":
        raise ServerProblem('auth = "passthrough" needs a server over HTTP, with a url')
    headers = {name: v for name, v in server.headers.items() if name.lower() != "authorization"}
    return replace(
        server,
        auth=None,
        headers={**headers, "Authorization": f"Bearer {token}"},
        secrets=(*server.secrets, token),
        private=(*server.private, *secrets_in_catalogs([token])),
    )
