"""One session with an MCP server: FastMCP's client over the server's streams."""

import asyncio
import logging
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.server.context import Context
from fastmcp.server.providers.proxy import ProxyClient
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import x_mcp_header_map
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    InputRequiredResult,
    ToolListChangedNotification,
)

from pegboard.canonical import canonical_json
from pegboard.records import Tool
from pegboard.redaction import redact
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import ServerTransport, all_tools, handshake
from pegboard.servers.failures import explain_failure

log = logging.getLogger("pegboard.serve")


class ConnectionLost(ServerProblem):
    """The server ended, or forgot the session, before it answered."""


class _Transport(ServerTransport, ClientTransport):
    """One server, for FastMCP's client."""


class Connection:
    """A session with one server, for one session of a client or for all. Made by `open`.

    Args:
        server: with its secrets resolved.
        forwards: whether what the server asks its client goes to whoever called last: only if all
            calls come from one session.
        modern: whether the protocol since 2026-07-28 is preferred.
        checked: whether the definitions of its tools are compared with the release's.
    """

    def __init__(
        self,
        server: Server,
        limits: tuple[float, int],
        *,
        forwards: bool,
        modern: bool,
        checked: bool,
    ) -> None:
        self.server, self._forwards, self._modern = server, forwards, modern
        self._transport = _Transport(server, *limits)
        options: dict[str, Any] = {} if forwards else dict.fromkeys(_SERVER_REQUESTS)
        self.client = ProxyClient(
            self._transport,
            name="pegboard",
            auto_initialize=False,
            message_handler=self._on_message,
            **options,
        )
        self._stale = checked
        self._definitions: dict[str, str] | None = None
        self._ping: asyncio.Task[None] | None = None
        self._users, self.used, self._closed = 0, time.monotonic(), False

    @property
    def usable(self) -> bool:
        """Whether calls may still be answered."""
        dispatcher = self._transport.dispatcher
        return not self._closed and (dispatcher is None or not dispatcher.ended)

    @property
    def in_use(self) -> bool:
        """Whether a call is under way."""
        return self._users > 0

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep the connection from being idle in the block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.used = time.monotonic()

    async def open(self) -> None:
        """Start or reach the server, and agree on a protocol. Raises ServerProblem."""
        try:
            await self.client.__aenter__()
            self._transport.progress.stage = "initialize"
            await handshake(self.client.session, self._modern)
        except Exception as error:
            await self.close()
            raise ServerProblem(await asyncio.to_thread(self._transport.explain, error)) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the session, and the server if it was started."""
        self._closed = True
        with suppress(Exception):
            await self.client.close()

    async def call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        front: Context | None,
        answers: tuple[Any, str | None],
    ) -> CallToolResult | InputRequiredResult:
        """Return the result of a call. Cancelling it tells the server.

        Args:
            front: the client's request, for progress and what the server asks meanwhile.
            answers: of the client to what the server asked before, and the server's state then.

        Raises:
            ConnectionLost: the connection is of no use any more.
            ServerProblem: the server answered with an error of the protocol.
        """
        if self._forwards and front is not None:
            rc: Any = front.request_context
            self.client._proxy_rc_ref[0] = rc, front._fastmcp  # pyright: ignore[reportPrivateUsage]
        self._transport.progress.stage = "tools/call"
        self._transport.progress.status = None
        try:
            session = self.client.session
            if headers := x_mcp_header_map(dict(tool.input_schema)):
                session._x_mcp_header_maps[tool.name] = headers  # pyright: ignore[reportPrivateUsage]
            return await session.call_tool(
                tool.name,
                dict(arguments),
                progress_callback=front.report_progress if front else None,
                input_responses=answers[0],
                request_state=answers[1],
                allow_input_required=True,
            )
        except Exception as error:
            raise self._problem(error) from None

    async def differs(self, tool: Tool) -> bool:
        """Whether the server's definition of a tool is known, and not the release's."""
        if self._stale:
            self._stale = False
            try:
                rows = await all_tools(self.client.session, self._transport.dispatcher)
            except Exception as error:
                log.warning("The tools of a server cannot be compared: %s", self._problem(error))
            else:
                self._definitions = dict(map(_definition, rows))
        if self._definitions is None:
            return False
        own = _definition_text(tool.description, tool.input_schema)
        return self._definitions.get(tool.name) != own

    def end_if_silent(self, seconds: float) -> None:
        """Begin to end a server that left a call unanswered, if it does not answer a ping either
        within so many seconds.
        """

        async def ping() -> None:
            try:
                async with asyncio.timeout(seconds):
                    await self.client.session.send_ping()
            except TimeoutError:
                await self.close()
            except Exception as error:  # an error is an answer
                log.debug("A ping was answered with an error: %s", type(error).__name__)

        if self.usable:
            self._ping = asyncio.create_task(ping())

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification) and self._definitions is not None:
            self._stale = True

    def _problem(self, error: Exception) -> ServerProblem:
        transport = self._transport
        text = explain_failure(error, self.server, transport.progress)
        text = redact(text, self.server.secrets)
        forgotten = transport.progress.status == 404 and "session" in str(error).lower()
        # The end of one answer's own stream is not that of the session.
        ended = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        if forgotten or (ended and "SSE stream" not in str(error)):
            self._closed = True
        return ServerProblem(text) if self.usable else ConnectionLost(text)


_SERVER_REQUESTS = ("roots", "sampling_handler", "elicitation_handler", "log_handler")
"""What `ProxyClient` forwards unless it is told otherwise."""


def _definition(raw: Any) -> tuple[str, str]:
    """Return the name of a tool, and its definition as a release would have it."""
    row: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    hints: Any = row.get("annotations")
    title = row.get("title") or (hints.get("title") if isinstance(hints, Mapping) else "")
    schema = row.get("inputSchema") or {"type": "object", "properties": {}}
    try:
        text = _definition_text(str(row.get("description") or title or ""), schema)
    except (TypeError, ValueError, RecursionError):
        text = ""
    return str(row.get("name", "")).strip(), text


def _definition_text(description: str, schema: Any) -> str:
    return canonical_json([" ".join(description.split()), schema])
