"""The MCP servers of the configuration, and the sessions with them.

Commands of servers come only from the operator's file, never from a release: someone who may
publish tools must not be able to run code on this machine."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from mcp_types import CallToolResult

from pegboard.errors import ConfigurationError, SourceError
from pegboard.records import Tool, agent_id
from pegboard.serve.calls.client_request import client_request, client_token, is_modern
from pegboard.serve.calls.connection import Connection, ListChange, SessionLost
from pegboard.serve.calls.functions import functions_server
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import GatewaySettings, ServerSettings
from pegboard.servers.config import Server, ServerProblem, configured_servers, resolve_server
from pegboard.servers.connect import ServerTransport, handshake
from pegboard.servers.references import secrets_in_catalogs

RETRY_SECONDS = 2.0
"""Seconds before a server that failed to start is started again."""
SIGN_IN_SECONDS = 60.0
"""Timeout in seconds of a request to a server while a user signs in."""
SIGN_IN_MAX_EVENT = 1_000_000
"""Most bytes of an answer of a server while a user signs in."""
CHANGED = "pegboard/changed"
"""The key in `_meta` of a result which says that the tool differs from the release."""
OnListChanged = Callable[[str, ListChange], None]
"""Called with an agent, and what its server says of its lists."""
DIFFERENT = "its server lists another description or inputSchema, or none"
"""How a changed tool differs."""


class SessionKey(NamedTuple):
    """What tells the sessions with one server apart.

    Attributes:
        client: the client's name; "" if all clients share the session.
        session: the client's session; "" if all share it.
        modern: whether the protocol since 2026-07-28 is tried first.
        token: the client's token, if it is passed on; else "".
    """

    client: str
    session: str
    modern: bool
    token: str


log = logging.getLogger("pegboard.serve")


class Upstream:
    """One server of the configuration, and the sessions with it. A session is opened with the first
    call that needs it, and ended when it is idle.

    Args:
        agent: the id of the agent whose tools it has.
        entry: its entry in the configuration; a `Server` for Python functions.
        base: the folder that its relative paths start from.
        settings: the current settings.
        on_list_changed: called with the agent when the server says that a list changed.
    """

    def __init__(
        self,
        agent: str,
        entry: Any,
        base: Path,
        settings: GatewaySettings,
        on_list_changed: OnListChanged,
    ) -> None:
        self.settings = settings
        self._on_list_changed = on_list_changed
        self._agent = agent
        self._entry = entry
        self._base = base
        self._opening = WeakValueDictionary[SessionKey, asyncio.Lock]()
        self._connections: dict[SessionKey, Connection] = {}
        self._being_opened: set[Connection] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._failure = ""
        """Why the server is not available; "" if it is, or was not tried."""
        self._tried_at = 0.0
        """When a session was opened last, or failed to, by the monotonic clock."""
        self._state_since = ""
        """When the server became available or failed; "" before the first session."""
        self._logged_changes: set[str] = set()
        """Ids of the changed tools that are in the log already."""

    @property
    def configuration(self) -> tuple[Any, ...]:
        """Everything that the configuration says of the server."""
        return self._entry, self._base, self._server_settings

    @property
    def has_functions(self) -> bool:
        """Whether it is a catalog's Python functions, which have no resources and prompts."""
        return isinstance(self._entry, Server)

    @property
    def _server_settings(self) -> ServerSettings:
        return self.settings.serve.servers.get(self._agent, ServerSettings())

    @property
    def _shared(self) -> bool:
        """Whether all clients share one session. By default they do not share a server that the
        gateway starts, since it may keep state of its client.
        """
        if self._server_settings.auth == "passthrough":
            return False
        if self._server_settings.sessions is not None:
            return self._server_settings.sessions == "shared"
        return not (isinstance(self._entry, Mapping) and "command" in self._entry)

    def server(self) -> Server:
        """Return the server with its references resolved. Raises ServerProblem."""
        return self._entry if self.has_functions else resolve_server(self._entry, self._base)

    def health(self) -> dict[str, str]:
        """Return its state (`idle`, `up` or `failed`), the error, and the time since when."""
        up = any(connection.usable for connection in self._connections.values())
        state = "failed" if self._failure else "up" if up else "idle"
        return {"state": state, "error": self._failure, "since": self._state_since}

    async def call(
        self, client: str, session: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        """Return the server's result of a call, without the secrets that the server was given.

        Args:
            client: the client's name.
            session: its session; "" for a call outside a session.

        Raises:
            CallProblem: the server cannot be reached, the connection broke, or the answer is too
                large.
            AskFirst: the server asks the user something first.
        """
        try:
            changed, result = await self._call_once(client, session, tool, arguments)
        except SessionLost as lost:
            log.info("A new session with '%s' is opened: %s", self._agent, lost)
            try:
                changed, result = await self._call_once(client, session, tool, arguments)
            except CallProblem as problem:
                raise CallProblem(problem.outcome, f"{lost} Then: {problem}") from None
        if changed:
            return result.model_copy(update={"meta": {**(result.meta or {}), CHANGED: DIFFERENT}})
        return result

    async def _call_once(
        self, client: str, session: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> tuple[bool, CallToolResult]:
        """Return whether the tool differs from the release, and the result of a call."""
        async with self.connection(client, session) as connection:
            changed = await self._is_changed(tool, connection)
            return changed, await connection.call(tool, arguments)

    @asynccontextmanager
    async def connection(self, client: str, session: str) -> AsyncGenerator[Connection]:
        """Hold a session with the server in the block; open one if there is none.

        Raises:
            CallProblem: the server cannot be reached.
        """
        if self._shared:
            client = session = ""
        token = client_token() if self._server_settings.auth == "passthrough" else ""
        key = SessionKey(client, session, is_modern(client_request()), token)
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is not None:
                await connection.settled()
            if connection is None or not connection.usable:
                if connection is not None:
                    await connection.close()
                connection = await self._open(key)
        with connection.held():
            yield connection

    def end_idle(self) -> None:
        """Start to end the idle sessions."""
        oldest = time.monotonic() - self.settings.serve.calls.idle
        for key, connection in list(self._connections.items()):
            if not connection.in_use and (connection.last_used < oldest or not connection.usable):
                del self._connections[key]
                self._end_soon(connection)

    async def close(self) -> None:
        """End all sessions, each within the deadline of `Connection.close`."""
        connections = (*self._connections.values(), *self._being_opened)
        await asyncio.gather(*(connection.close() for connection in connections), *self._ending)

    def _end_soon(self, connection: Connection) -> None:
        """Start to end a session in a task of its own. Ending a server takes time, and may swallow
        the cancellation of the task that waits for it when the gateway stops.
        """
        ending = asyncio.create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _open(self, key: SessionKey) -> Connection:
        failed_recently = self._failure and time.monotonic() - self._tried_at < RETRY_SECONDS
        # A failure may be due to the client's token, so that other clients do not have to wait.
        if failed_recently and not key.token:
            raise self._not_available()
        try:
            await self._make_room()
            server = self.server()
            connection = Connection(
                _with_token(server, key.token) if key.token else server,
                self.settings.serve.calls,
                forwards=not self._shared and bool(key.session),
                modern=key.modern,
                on_list_changed=partial(self._on_list_changed, self._agent),
            )
            self._being_opened.add(connection)
            try:
                await connection.open()
            finally:
                self._being_opened.discard(connection)
        except ServerProblem as problem:
            if self._failure != str(problem):
                log.error("The MCP server '%s' is not available: %s", self._agent, problem)
            self._record_state(str(problem))
            raise self._not_available() from None
        self._record_state("")
        self._connections[key] = connection
        request = client_request()
        client_connection = getattr(request.session, "_connection", None) if request else None
        if key.session and not key.modern and client_connection is not None:
            # End it with the client's session; modern requests have no sessions.
            client_connection.exit_stack.callback(self._end_soon, connection)
        return connection

    async def _make_room(self) -> None:
        """End the session that was idle longest if the number of sessions, including those that are
        being opened, is more than allowed.
        """
        connections = self._connections
        if len(connections) + len(self._opening) <= self._server_settings.max_sessions:
            return
        idle = [key for key, connection in connections.items() if not connection.in_use]
        if not idle:
            raise CallProblem(
                "failed",
                f"All sessions with '{self._agent}' are in use, and it was not called. Try again.",
            )
        longest_idle = min(idle, key=lambda key: connections[key].last_used)
        await connections.pop(longest_idle).close()

    async def _is_changed(self, tool: Tool, connection: Connection) -> bool:
        """Whether the result must say that the server's tool differs from the release.

        Raises:
            CallProblem: it differs, and changed tools are refused.
        """
        setting = self.settings.serve.calls.changed
        if setting == "allow" or self.has_functions or tool.id in self.settings.overridden:
            return False
        if not await connection.differs(tool):
            return False
        if tool.id not in self._logged_changes:
            self._logged_changes.add(tool.id)
            log.warning("The tool %s is not that of the release: %s.", tool.id, DIFFERENT)
        if setting == "refuse":
            raise CallProblem(
                "refused",
                f"{tool.id} is not that of the release, and was not called: {DIFFERENT}. Ask the "
                f"gateway's operator to publish a new release.",
            )
        return True

    def _record_state(self, failure: str) -> None:
        """Record why the server is not available, or with "" that it is available."""
        if failure != self._failure or not self._state_since:
            self._state_since = datetime.now(UTC).isoformat(timespec="seconds")
        self._failure = failure
        self._tried_at = time.monotonic()

    def _not_available(self) -> CallProblem:
        """Return the error for clients. The reason is left out, since it names commands, files and
        addresses of this machine.
        """
        return CallProblem(
            "failed",
            f"The MCP server '{self._agent}' is not available: it could not be started or reached. "
            f"Try again later; the gateway's log says why.",
        )


def _ignore_change(agent: str, change: ListChange) -> None:
    pass


def configured_upstreams(
    settings: GatewaySettings, on_list_changed: OnListChanged = _ignore_change
) -> dict[str, Upstream]:
    """Return the servers of the catalogs by agent: MCP servers, and a server for each catalog whose
    Python functions may run. A catalog whose servers cannot be read is logged and left out.

    Args:
        on_list_changed: called with the agent when its server says that a list changed.
    """
    upstreams: dict[str, Upstream] = {}
    for name, table in settings.catalogs.items():
        if table.get("type") == "python" and name in settings.serve.python:
            agent = agent_id(name, str(table.get("agent") or name))
            server = functions_server(table, settings.base)
            upstreams[agent] = Upstream(agent, server, settings.base, settings, on_list_changed)
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
            upstreams[agent] = Upstream(agent, entry, folder, settings, on_list_changed)
    return upstreams


async def sign_in(settings: GatewaySettings, agent: str) -> None:
    """Let the user sign in at a server of the configuration, and keep its tokens.

    Raises:
        ConfigurationError: there is no such server, or the user did not sign in.
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
        transport = ServerTransport(server, SIGN_IN_SECONDS, SIGN_IN_MAX_EVENT, by_hand=True)
        try:
            async with transport.connect_session() as session:
                await handshake(session)
        except Exception as error:
            raise ServerProblem(transport.explain(error)) from None
    except ServerProblem as problem:
        raise ConfigurationError(f"Signing in at '{agent}' failed: {problem}.") from None


def _with_token(server: Server, token: str) -> Server:
    """Return a server that is sent a client's token, which is removed from its messages.

    Raises:
        ServerProblem: the server is not reached over HTTP.
    """
    if server.transport == "stdio":
        raise ServerProblem('auth = "passthrough" needs a server over HTTP, with a url')
    headers = {
        name: value for name, value in server.headers.items() if name.lower() != "authorization"
    }
    return replace(
        server,
        auth=None,
        headers={**headers, "Authorization": f"Bearer {token}"},
        secrets=(*server.secrets, token),
        private=(*server.private, *secrets_in_catalogs([token])),
    )
