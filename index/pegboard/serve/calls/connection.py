"""One session with an MCP server: FastMCP's client over the server's streams."""

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.server.context import Context
from fastmcp.server.providers import proxy
from mcp.shared.dispatcher import ProgressFnT
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
from pegboard.serve.calls.client_request import client_request, is_modern
from pegboard.serve.calls.confirmation import KEY, AskFirst, split_state
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import CallSettings
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import ServerTransport, handshake, list_all

PING_SECONDS = 5.0
"""Seconds that a server has to answer a ping after a cancelled call, before it is restarted."""
SERVER_REQUESTS = ("roots", "sampling_handler", "elicitation_handler", "log_handler")
"""Options of `ProxyClient` for requests of the server that it forwards by default."""

log = logging.getLogger("pegboard.serve")


class _Transport(ServerTransport, ClientTransport):
    """A server's transport as FastMCP's client takes it."""


class Connection:
    """A session with one server, for one session of a client or for all. Call `open` first.

    Args:
        server: the server with its secrets resolved.
        forwards: whether the server's own requests are forwarded to the client that called last.
            Only allowed if all calls come from one session.
        modern: whether the protocol since 2026-07-28 is tried first.
        on_list_changed: called when the server says that its list of tools changed.

    Attributes:
        client: FastMCP's client of the server.
        last_used: when the last call ended, by the monotonic clock.
    """

    def __init__(
        self,
        server: Server,
        limits: CallSettings,
        *,
        forwards: bool,
        modern: bool,
        on_list_changed: Callable[[], None],
    ) -> None:
        self._on_list_changed = on_list_changed
        self._forwards = forwards
        self._modern = modern
        self._transport = _Transport(server, limits.timeout, limits.max_bytes)
        options: dict[str, Any] = {} if forwards else dict.fromkeys(SERVER_REQUESTS)
        self.client = proxy.ProxyClient(
            self._transport,
            name="pegboard",
            auto_initialize=False,
            message_handler=self._on_message,
            timeout=limits.timeout,
            **options,
        )
        self._definitions_stale = True
        self._definitions: dict[str, str] | None = None
        """The server's definitions of tools by name; None if they could not be listed."""
        self._ping: asyncio.Task[None] | None = None
        self._users = 0
        self._closed = False
        self.last_used = time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether calls may still be answered."""
        messages = self._transport.messages
        return not self._closed and (messages is None or not messages.ended)

    @property
    def in_use(self) -> bool:
        """Whether a call is under way."""
        return self._users > 0

    @contextmanager
    def held(self) -> Generator[None]:
        """Count the connection as in use in the block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.last_used = time.monotonic()

    async def open(self) -> None:
        """Start or reach the server, and agree on a protocol. Raises ServerProblem."""
        try:
            await self.client.__aenter__()
            self._transport.stage = "initialize"
            await handshake(self.client.session, self._modern)
        except Exception as error:
            await self.close()
            raise ServerProblem(await asyncio.to_thread(self._transport.explain, error)) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the session, and the server if the gateway started it."""
        self._closed = True
        with suppress(Exception):
            await self.client.close()

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the result of a call. The server is notified if the call is cancelled.

        Raises:
            CallProblem: the connection broke, or the server answered with a protocol error.
            AskFirst: the server asks the user something first.
        """
        request = client_request()
        responses, state = _responses_for_server(request)
        if self._forwards and request is not None:
            proxy_context: Any = request.request_context, request._fastmcp  # pyright: ignore[reportPrivateUsage]
            self.client._proxy_rc_ref[0] = proxy_context  # pyright: ignore[reportPrivateUsage]
        self._transport.stage = "tools/call"
        self._transport.status = 0
        reporting = asyncio.Lock()
        try:
            session = self.client.session
            if headers := x_mcp_header_map(dict(tool.input_schema)):
                session._x_mcp_header_maps[tool.name] = headers  # pyright: ignore[reportPrivateUsage]
            result = await session.call_tool(
                tool.name,
                dict(arguments),
                progress_callback=_progress_reporter(request, reporting) if request else None,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )
            async with reporting:  # progress that came before the result is reported before it
                pass
        except asyncio.CancelledError:
            if self.usable:
                self._ping = asyncio.create_task(self._end_if_silent())
            raise
        except Exception as error:
            why = self._reason(error)
            raise CallProblem(
                "failed",
                f"The MCP server '{tool.agent}' failed: {why}."
                if self.usable
                else f"The MCP server '{tool.agent}' broke off: {why}. It is started again for the "
                f"next call. Whether this call had an effect is not known: check before you repeat "
                f"it.",
            ) from None
        if not isinstance(result, InputRequiredResult):
            return result
        if is_modern(request):
            raise AskFirst(result)
        raise CallProblem(
            "failed",
            f"The server of {tool.id} asks for input, which this client's protocol cannot pass on.",
        )

    async def differs(self, tool: Tool) -> bool:
        """Whether the server's definition of a tool is known, and differs from the release's."""
        if self._definitions_stale:
            self._definitions_stale = False
            try:
                rows = await list_all(self.client.session)
            except Exception as error:
                log.warning("The tools of a server cannot be compared: %s", self._reason(error))
            else:
                self._definitions = dict(map(_definition, rows))
        if self._definitions is None:
            return False
        release_definition = _definition_text(tool.description, tool.input_schema)
        return self._definitions.get(tool.name) != release_definition

    async def _end_if_silent(self) -> None:
        """End the session if the server does not answer a ping in time."""
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self.client.session.send_ping()
        except TimeoutError:
            await self.close()
        except Exception as error:  # an error is an answer, too
            log.debug("A ping was answered with an error: %s", type(error).__name__)

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._definitions_stale = True  # clients are not notified: their list is the release's
            self._on_list_changed()
        elif self._forwards:
            proxy._restore_request_context(self.client._proxy_rc_ref)  # pyright: ignore[reportPrivateUsage]
            await proxy.default_proxy_message_handler(message)

    def _reason(self, error: Exception) -> str:
        """Return why a request failed. Mark the session as closed if the server has ended it."""
        text = str(error)
        session_unknown = self._transport.status == 404 and "session" in text.lower()
        # The end of the stream of one answer does not end the session.
        connection_closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        if session_unknown or (connection_closed and "SSE stream" not in text):
            self._closed = True
        return self._transport.reason(error)


def _progress_reporter(request: Context, reporting: asyncio.Lock) -> ProgressFnT:
    """Return a function that reports progress to the client of a request. It restores the request's
    context, since the server's messages are read in that of the request that opened the session.

    Args:
        reporting: is held while progress is reported.
    """
    context = copy_context()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        async with reporting:
            report_to_client = request.report_progress(progress, total, message)
            await asyncio.create_task(report_to_client, context=context)

    return report


def _responses_for_server(request: Context | None) -> tuple[Any, str | None]:
    """Return the client's answers to the server's questions, and the server's part of the state."""
    if request is None or not is_modern(request):
        return None, None
    all_responses: Any = request.input_responses or {}
    responses = {name: answer for name, answer in all_responses.items() if name != KEY}
    _, state = split_state(request.request_state or "")
    return responses or None, state or None


def _definition(raw: Any) -> tuple[str, str]:
    """Return the name of a listed tool, and its definition in the form of `_definition_text`."""
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
    """Return a text that is the same for equal definitions, whatever their whitespace."""
    return canonical_json([" ".join(description.split()), schema])
