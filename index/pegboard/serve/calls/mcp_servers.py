"""Calls to the MCP servers of the configuration: started when first needed, kept, restarted.

The command of a server comes from the operator's file alone, never from a release: who may publish
tools must not run code on this machine."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mcp_types import CallToolResult

from pegboard.errors import SourceError
from pegboard.records import Tool, agent_id
from pegboard.secret_values import SecretValues
from pegboard.serve.calls.results import CallProblem, is_deep
from pegboard.serve.settings import CallSettings
from pegboard.servers.config import Server, ServerProblem, read_servers, resolve_server
from pegboard.servers.connection import ConnectionLost, Report, ServerConnection

RETRY_SECONDS = 2.0
"""For which a server that did not start is not started again."""
PING_SECONDS = 5.0
"""For a server that left a call unanswered, before it is ended and started anew."""


log = logging.getLogger("pegboard.serve")


@dataclass(slots=True, eq=False)
class _Upstream:
    """One server of the configuration, running or not."""

    entry: Any
    base: Path
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: ServerConnection | None = None
    failure: tuple[float, str] | None = None
    checking: "asyncio.Task[None] | None" = None


class McpServers:
    """The servers of all catalogs of type `mcp`, by agent.

    Args:
        catalogs: `[catalogs]` of the configuration.
        base: the folder from which its paths count.
    """

    def __init__(
        self, catalogs: Mapping[str, Mapping[str, Any]], base: Path, limits: CallSettings
    ) -> None:
        self.limits = limits
        self._upstreams: dict[str, _Upstream] = {}
        for name, table in catalogs.items():
            if table.get("type") == "mcp":
                try:
                    entries, folder = _entries(table, base)
                except SourceError as error:
                    log.error("The servers of the catalog %s cannot be called: %s", name, error)
                    continue
                for server, entry in entries.items():
                    self._upstreams[agent_id(name, server)] = _Upstream(entry, folder)

    def serves(self, agent: str) -> bool:
        """Whether there is a server for an agent, by its id."""
        return agent in self._upstreams

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], report: Report | None = None
    ) -> CallToolResult:
        """Return what the server of the tool's agent answers, without the secrets it was given.

        Raises:
            CallProblem: the server cannot be reached, broke off, or sent too much.
        """
        upstream = self._upstreams[tool.agent]
        for attempt in (1, 2):
            connection = await self._connection(tool.agent, upstream)
            with connection.used():
                await self._ready(tool.agent, upstream, connection)
                try:
                    result = await connection.call(tool.name, arguments, report)
                except asyncio.CancelledError:
                    self._check(upstream, connection)
                    raise
                except ConnectionLost as problem:
                    if problem.unheard and attempt == 1:
                        continue
                    raise CallProblem("failed", _ended(tool.agent, problem)) from None
                except ServerProblem as problem:
                    large = "has more than" in str(problem)
                    message = f"The MCP server '{tool.agent}' failed: {problem}."
                    raise CallProblem("too_large" if large else "failed", message) from None
            return _without_secrets(result, connection.server)
        raise AssertionError("the second attempt returns or raises")

    async def close(self) -> None:
        """End the servers that run."""
        running = [each.connection for each in self._upstreams.values() if each.connection]
        await asyncio.gather(*(connection.close() for connection in running))

    async def _connection(self, agent: str, upstream: _Upstream) -> ServerConnection:
        """Return a connection that may still be used, a new one if need be."""
        async with upstream.starting:
            connection = upstream.connection
            if connection is None or not connection.usable:
                connection = upstream.connection = self._start(agent, upstream)
        return connection

    async def _ready(self, agent: str, upstream: _Upstream, connection: ServerConnection) -> None:
        try:
            await connection.ready()
        except ServerProblem as problem:
            if upstream.failure is None or upstream.failure[1] != str(problem):
                log.error("The MCP server '%s' is not available: %s", agent, problem)
            upstream.failure = time.monotonic(), str(problem)
            raise _not_started(agent) from None
        upstream.failure = None

    def _start(self, agent: str, upstream: _Upstream) -> ServerConnection:
        if upstream.failure and time.monotonic() - upstream.failure[0] < RETRY_SECONDS:
            raise _not_started(agent)
        try:
            server = resolve_server(upstream.entry, upstream.base)
        except ServerProblem as problem:
            log.error("The MCP server '%s' cannot be started: %s", agent, problem)
            raise _not_started(agent) from None
        limits = self.limits
        return ServerConnection(server, limits.timeout, limits.max_bytes, limits.idle)

    def _check(self, upstream: _Upstream, connection: ServerConnection) -> None:
        """End a server that left a call unanswered if it does not even answer a ping."""

        async def end_if_silent() -> None:
            if not await connection.answers(PING_SECONDS):
                await connection.close()

        if connection.usable and (upstream.checking is None or upstream.checking.done()):
            upstream.checking = asyncio.create_task(end_if_silent())


def _entries(table: Mapping[str, Any], base: Path) -> tuple[dict[str, Any], Path]:
    """Return the servers of a catalog by name, and the folder from which their paths count."""
    path = table.get("path")
    if path is None:
        servers: Any = table.get("servers")
        return (dict(cast("Any", servers)) if isinstance(servers, Mapping) else {}), base
    file = base / Path(str(path)).expanduser()
    return read_servers(file), file.parent


def _not_started(agent: str) -> CallProblem:
    """Return what clients are told; why names commands, files and addresses of this machine."""
    return CallProblem(
        "failed",
        f"The MCP server '{agent}' is not available: it could not be started or reached. Try again "
        f"later; the gateway's log says why.",
    )


def _ended(agent: str, problem: ServerProblem) -> str:
    return (
        f"The MCP server '{agent}' broke off: {problem}. It is started again for the next call. "
        f"Whether this call had an effect is not known: check before you repeat it."
    )


def _without_secrets(result: CallToolResult, server: Server) -> CallToolResult:
    if not server.private:
        return result
    if is_deep(result.structured_content):
        result = result.model_copy(update={"structured_content": None})
    values = result.model_dump(by_alias=True, exclude_none=True)
    hidden = SecretValues(server.private).hide_in(values)
    return result if hidden is values else CallToolResult.model_validate(hidden)
