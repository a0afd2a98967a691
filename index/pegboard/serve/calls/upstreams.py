"""The MCP servers of the configuration: started when first needed, kept, ended when idle.

The command of a server comes from the operator's file alone, never from a release: who may publish
tools must not run code on this machine."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from fastmcp import Client as McpClient
from mcp_types import CallToolResult

from pegboard.errors import ConfigurationError, SourceError
from pegboard.records import Tool, agent_id
from pegboard.serve.calls.connection import (
    Connection,
    client_token,
    front_request,
    is_modern,
)
from pegboard.serve.calls.functions import functions_server
from pegboard.serve.calls.results import CallProblem
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


@dataclass(slots=True, eq=False)
class _Upstream:
    """One server of the configuration.

    Attributes:
        opening: the locks of sessions that are being opened.
        connections: the sessions that are open.
        failure: why it is not available, "" if it is, at the time `since` by the clock.
        told: ids of the tools that the log named as changed.
    """

    entry: Any
    base: Path
    settings: ServerSettings
    opening: WeakValueDictionary[Key, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[Key, asyncio.Lock]
    )
    connections: dict[Key, Connection] = field(default_factory=dict[Key, Connection])
    failure: str = ""
    failed_at: float = 0.0
    since: str = ""
    told: set[str] = field(default_factory=set[str])

    @property
    def configuration(self) -> tuple[Any, ...]:
        """What the operator says of the server."""
        return self.entry, self.base, self.settings

    @property
    def shared(self) -> bool:
        """Whether all clients share one session: a server that is started keeps what one did."""
        if self.settings.auth == "passthrough":
            return False
        if self.settings.sessions is not None:
            return self.settings.sessions == "shared"
        return not (isinstance(self.entry, Mapping) and "command" in self.entry)

    def note(self, failure: str) -> None:
        """Keep why the server is not available, or that it is."""
        if failure != self.failure or not self.since:
            self.since = datetime.now(UTC).isoformat(timespec="seconds")
        self.failure, self.failed_at = failure, time.monotonic()


class Upstreams:
    """The servers of all catalogs of type `mcp`, by agent."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._upstreams = _upstreams_of(settings)
        self._sweeper: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def agents(self) -> list[str]:
        """Return the ids of the agents whose tools a server of the configuration has."""
        return list(self._upstreams)

    def relayed(self) -> list[str]:
        """Return those of them whose resources and prompts pass: all but functions."""
        return [
            agent
            for agent, upstream in self._upstreams.items()
            if not isinstance(upstream.entry, Server)
        ]

    def health(self) -> dict[str, dict[str, str]]:
        """Return by agent the state of its server (`idle`, `up`, `failed`), why, and since when."""
        states: dict[str, dict[str, str]] = {}
        for agent, upstream in self._upstreams.items():
            up = any(connection.usable for connection in upstream.connections.values())
            state = "failed" if upstream.failure else "up" if up else "idle"
            states[agent] = {"state": state, "error": upstream.failure, "since": upstream.since}
        return states

    async def client(self, agent: str, client: str, session: str) -> McpClient[Any]:
        """Return a connected client of a server, which is kept and closed here.

        Raises:
            CallProblem: the server cannot be reached.
        """
        async with self._connection(agent, client, session) as connection:
            return connection.client

    async def call(
        self, client: str, session: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        """Return what the server of the tool's agent answers, without the secrets it was given.

        Args:
            client: the client's name.
            session: its session; "" for a call that belongs to none.

        Raises:
            CallProblem: the server cannot be reached, broke off, or sent too much.
            AskFirst: the server asks the user something first.
        """
        async with self._connection(tool.agent, client, session) as connection:
            changed = await self._is_changed(tool, connection)
            result = await connection.call(tool, arguments)
        if changed:
            return result.model_copy(update={"meta": {**(result.meta or {}), CHANGED: DIFFERENT}})
        return result

    async def reload(self, settings: GatewaySettings) -> None:
        """Take the servers of other settings; sessions with those that did not change go on."""
        old, new = self._upstreams, _upstreams_of(settings)
        same = {
            agent: upstream
            for agent, upstream in old.items()
            if agent in new and new[agent].configuration == upstream.configuration
        }
        self._settings, self._upstreams = settings, {**new, **same}
        await _end(upstream for agent, upstream in old.items() if agent not in same)

    async def close(self) -> None:
        """End all sessions."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(_end(self._upstreams.values()), *self._ending)

    def _end_soon(self, connection: Connection) -> None:
        """Begin to end a session, in a task of its own: servers take their time, and who ends them
        is cancelled when the gateway stops, which their end may swallow.
        """
        ending = asyncio.create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    @asynccontextmanager
    async def _connection(
        self, agent: str, client: str, session: str
    ) -> AsyncGenerator[Connection]:
        """Hold a session with a server, a new one if need be."""
        upstream = self._upstreams[agent]
        if upstream.shared:
            client = session = ""
        token = client_token() if upstream.settings.auth == "passthrough" else ""
        key = client, session, is_modern(front_request()), token
        async with upstream.opening.setdefault(key, asyncio.Lock()):
            connection = upstream.connections.get(key)
            if connection is None or not connection.usable:
                if connection is not None:
                    await connection.close()
                connection = await self._open(agent, upstream, key)
        with connection.held():
            yield connection

    async def _open(self, agent: str, upstream: _Upstream, key: Key) -> Connection:
        _, session, modern, token = key
        # A token that the server refuses holds up no other client.
        waits = time.monotonic() - upstream.failed_at < RETRY_SECONDS and not token
        if upstream.failure and waits:
            raise _not_started(agent)
        try:
            await self._make_room(agent, upstream)
            server = upstream.entry
            if not isinstance(server, Server):
                server = resolve_server(server, upstream.base)
            connection = Connection(
                _with_token(server, token) if token else server,
                self._settings.serve.calls,
                forwards=not upstream.shared and bool(session),
                modern=modern,
            )
            await connection.open()
        except ServerProblem as problem:
            if upstream.failure != str(problem):
                log.error("The MCP server '%s' is not available: %s", agent, problem)
            upstream.note(str(problem))
            raise _not_started(agent) from None
        upstream.note("")
        upstream.connections[key] = connection
        front = front_request()
        peer = getattr(front.session, "_connection", None) if front else None
        if session and not modern and peer is not None:
            # It ends with the client's session, which a modern request has none of.
            peer.exit_stack.callback(self._end_soon, connection)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._end_idle())
        return connection

    async def _make_room(self, agent: str, upstream: _Upstream) -> None:
        """End the session that was idle longest if there are as many as allowed, those that are
        being opened included.
        """
        connections = upstream.connections
        if len(connections) + len(upstream.opening) <= upstream.settings.max_sessions:
            return
        idle = [key for key, one in connections.items() if not one.in_use]
        if not idle:
            raise CallProblem(
                "failed",
                f"All sessions with '{agent}' are in use, and it was not called. Try again.",
            )
        await connections.pop(min(idle, key=lambda key: connections[key].used)).close()

    async def _end_idle(self) -> None:
        """End the sessions that nobody uses, as long as the gateway runs."""
        idle = self._settings.serve.calls.idle
        while True:
            await asyncio.sleep(min(idle / 2, 30))
            oldest = time.monotonic() - idle
            for upstream in list(self._upstreams.values()):
                for key, one in list(upstream.connections.items()):
                    if not one.in_use and (one.used < oldest or not one.usable):
                        del upstream.connections[key]
                        self._end_soon(one)

    async def _is_changed(self, tool: Tool, connection: Connection) -> bool:
        """Whether a tool differs from the release's, if that is to be said.

        Raises:
            CallProblem: it differs, and is not called then.
        """
        setting, upstream = self._settings.serve.calls.changed, self._upstreams[tool.agent]
        functions = isinstance(upstream.entry, Server)
        if setting == "allow" or functions or tool.id in self._settings.overridden:
            return False
        if not await connection.differs(tool):
            return False
        told = upstream.told
        if tool.id not in told:
            told.add(tool.id)
            log.warning("The tool %s is not that of the release: %s.", tool.id, DIFFERENT)
        if setting == "refuse":
            raise CallProblem(
                "refused",
                f"{tool.id} is not that of the release, and was not called: {DIFFERENT}. Whoever "
                f"runs the gateway builds a release with the new definition.",
            )
        return True


async def sign_in(settings: GatewaySettings, agent: str) -> None:
    """Let the user sign in at a server of the configuration, whose tokens are kept.

    Raises:
        ConfigurationError: there is no such server, or nobody signed in.
    """
    upstream = _upstreams_of(settings).get(agent)
    if upstream is None:
        raise ConfigurationError(
            f"No MCP server '{agent}' in [catalogs]. Expected CATALOG/SERVER, such as github/api."
        )
    try:
        server = resolve_server(upstream.entry, upstream.base)
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


async def _end(upstreams: Iterable[_Upstream]) -> None:
    open_ = [one for upstream in upstreams for one in upstream.connections.values()]
    await asyncio.gather(*(connection.close() for connection in open_))


def _upstreams_of(settings: GatewaySettings) -> dict[str, _Upstream]:
    upstreams, own = dict[str, _Upstream](), settings.serve.servers
    for name, table in settings.catalogs.items():
        if table.get("type") == "python" and name in settings.serve.python:
            agent = agent_id(name, str(table.get("agent") or name))
            server = functions_server(table, settings.base)
            upstreams[agent] = _Upstream(server, settings.base, own.get(agent, ServerSettings()))
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
            upstreams[agent] = _Upstream(entry, folder, own.get(agent, ServerSettings()))
    return upstreams


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


def _not_started(agent: str) -> CallProblem:
    """Return what clients are told; why names commands, files and addresses of this machine."""
    return CallProblem(
        "failed",
        f"The MCP server '{agent}' is not available: it could not be started or reached. Try again "
        f"later; the gateway's log says why.",
    )
