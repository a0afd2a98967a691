"""One session with an MCP server: FastMCP's client over the server's streams."""

import asyncio
import logging
import time
from collections.abc import Generator, Mapping
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
from pegboard.serve.calls.confirmation import KEY, AskFirst, own_part
from pegboard.serve.errors import CallProblem
from pegboard.serve.settings import CallSettings
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import ServerTransport, handshake, list_all

PING_SECONDS = 5.0
"""For a server that left a call unanswered, before it is ended and started anew."""
SERVER_REQUESTS = ("roots", "sampling_handler", "elicitation_handler", "log_handler")
"""What `ProxyClient` forwards unless it is told otherwise."""

log = logging.getLogger("pegboard.serve")


class _Transport(ServerTransport, ClientTransport):
    """One server, for FastMCP's client."""


class Connection:
    """A session with one server, for one session of a client or for all. Made by `open`.

    Args:
        server: with its secrets resolved.
        forwards: whether what the server asks its client goes to whoever called last: only if all
            calls come from one session.
        modern: whether the protocol since 2026-07-28 is preferred.
    """

    def __init__(
        self, server: Server, limits: CallSettings, *, forwards: bool, modern: bool
    ) -> None:
        self._forwards, self._modern = forwards, modern
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
        self._stale = True
        self._definitions: dict[str, str] | None = None
        self._ping: asyncio.Task[None] | None = None
        self._users, self.used, self._closed = 0, time.monotonic(), False

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
            self._transport.stage = "initialize"
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

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the result of a call. Cancelling it tells the server.

        Raises:
            CallProblem: the server broke off, or answered with an error of the protocol.
            AskFirst: the server asks the user something first.
        """
        front = client_request()
        answers, state = _answers(front)
        if self._forwards and front is not None:
            rc: Any = front.request_context
            self.client._proxy_rc_ref[0] = rc, front._fastmcp  # pyright: ignore[reportPrivateUsage]
        self._transport.stage, self._transport.status = "tools/call", 0
        telling = asyncio.Lock()
        try:
            session = self.client.session
            if headers := x_mcp_header_map(dict(tool.input_schema)):
                session._x_mcp_header_maps[tool.name] = headers  # pyright: ignore[reportPrivateUsage]
            result = await session.call_tool(
                tool.name,
                dict(arguments),
                progress_callback=_progress_of(front, telling) if front else None,
                input_responses=answers,
                request_state=state,
                allow_input_required=True,
            )
            async with telling:  # the progress that came first
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
        if is_modern(front):
            raise AskFirst(result)
        raise CallProblem(
            "failed",
            f"The server of {tool.id} asks for input, which this client's protocol cannot pass on.",
        )

    async def differs(self, tool: Tool) -> bool:
        """Whether the server's definition of a tool is known, and not the release's."""
        if self._stale:
            self._stale = False
            try:
                rows = await list_all(self.client.session)
            except Exception as error:
                log.warning("The tools of a server cannot be compared: %s", self._reason(error))
            else:
                self._definitions = dict(map(_definition, rows))
        if self._definitions is None:
            return False
        own = _definition_text(tool.description, tool.input_schema)
        return self._definitions.get(tool.name) != own

    async def _end_if_silent(self) -> None:
        """End a server that left a call unanswered, and does not answer a ping either."""
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self.client.session.send_ping()
        except TimeoutError:
            await self.close()
        except Exception as error:  # an error is an answer
            log.debug("A ping was answered with an error: %s", type(error).__name__)

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._stale = True  # the client's list is the release's
        elif self._forwards:
            proxy._restore_request_context(self.client._proxy_rc_ref)  # pyright: ignore[reportPrivateUsage]
            await proxy.default_proxy_message_handler(message)

    def _reason(self, error: Exception) -> str:
        """Return why a request failed. If the server forgot the session, it is not used again."""
        text = str(error)
        forgotten = self._transport.status == 404 and "session" in text.lower()
        # The end of one answer's own stream is not that of the session.
        ended = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        if forgotten or (ended and "SSE stream" not in text):
            self._closed = True
        return self._transport.reason(error)


def _progress_of(front: Context, telling: asyncio.Lock) -> ProgressFnT:
    """Return what tells the client of a request of progress. What reads the server's messages runs
    in the context of the request that opened the session.

    Args:
        telling: is held until the client was told.
    """
    context = copy_context()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        async with telling:
            told = front.report_progress(progress, total, message)
            await asyncio.create_task(told, context=context)

    return report


def _answers(front: Context | None) -> tuple[Any, str | None]:
    """Return what the client answers to the server's question, and the server's state then."""
    if front is None or not is_modern(front):
        return None, None
    given: Any = front.input_responses or {}
    responses = {name: answer for name, answer in given.items() if name != KEY}
    _, state = own_part(front.request_state or "")
    return responses or None, state or None


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
