"""Connecting to an MCP server over stdio, streamable HTTP or SSE, with the official SDK."""

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.failures import Progress
from pegboard.servers.process import Stderr, passed_environment
from pegboard.servers.stdio import stdio_streams
from pegboard.servers.traffic import Traffic

MAX_PAGES = 1_000
MAX_TOOLS = 20_000
"""Of one server."""


@asynccontextmanager
async def server_streams(
    server: Server, limit: float, progress: Progress, stderr: Stderr, traffic: Traffic
) -> AsyncGenerator[Any]:
    """Connect to a server, or start it, and yield the streams of its messages.

    Args:
        limit: seconds for a request over HTTP.
        progress: keeps the status of a failed request.
        stderr: gets what a server over stdio writes there.
        traffic: reads what the server sends.
    """
    from mcp.client.sse import sse_client
    from mcp.client.stdio import get_default_environment
    from mcp.client.streamable_http import streamable_http_client

    from pegboard.servers.http import SiftingClient

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> SiftingClient:
        # The SSE transport asks for limits of its own; ours is for the whole conversation.
        return SiftingClient(
            traffic,
            headers=dict(server.headers),
            timeout=limit,
            event_hooks={"response": [progress.on_response]},
        )

    if server.transport == "stdio":
        passed = {**get_default_environment(), **passed_environment(os.environ), **server.env}
        async with stdio_streams(server, passed, stderr.file, traffic) as streams:
            yield streams
    elif server.transport == "sse":
        async with sse_client(server.url, httpx_client_factory=client) as streams:
            yield streams
    else:
        async with (
            client() as http,
            streamable_http_client(
                server.url, http_client=http, max_sse_event_size=None
            ) as streams,
        ):
            yield streams


async def handshake(session: Any, modern: bool = False) -> None:
    """Agree on a protocol: the handshake used until 2026-07 first, then the one without.

    The SDK's own order costs 10 seconds with an older server that leaves unknown requests
    unanswered.

    Args:
        modern: whether the one without is tried first, as the SDK does.
    """
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION
    from pydantic import ValidationError

    first, second = session.initialize, session.discover
    if modern:
        first, second = second, first
    try:
        await first()
    except (MCPError, ValidationError) as error:
        code = error.code if isinstance(error, MCPError) else 0
        if not modern and code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        try:
            await second()
        except MCPError:
            raise error from None


async def all_tools(session: Any, pages: Any) -> list[Any]:
    """Return the tools of a server as it sent them. Raises ServerProblem if they have no end.

    Args:
        pages: keeps the last answer to `tools/list`, as it is, in `page`.
    """
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        METHOD_NOT_FOUND,
        ListToolsRequest,
        ListToolsResult,
        PaginatedRequestParams,
    )

    tools: list[Any] = []
    cursors: list[str] = []
    while len(cursors) < MAX_PAGES:
        params = PaginatedRequestParams(cursor=cursors[-1]) if cursors else None
        try:
            await session.send_request(ListToolsRequest(params=params), ListToolsResult)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and session.server_capabilities.tools is None:
                return []  # a server of prompts or resources only
            raise
        page, cursor = pages.page.get("tools"), pages.page.get("nextCursor")
        pages.page = {}
        if not isinstance(page, list):
            raise ServerProblem("its answer to tools/list has no list of tools")
        tools += page
        if len(tools) > MAX_TOOLS:
            raise ServerProblem(f"it lists more than {MAX_TOOLS:,} tools; correct the server")
        if not cursor:
            return tools
        if not isinstance(cursor, str) or cursor in cursors:
            what = "repeats a cursor" if cursor in cursors else "has a cursor that is not text"
            raise ServerProblem(
                f"its tools/list {what} on page {len(cursors) + 1}, so it has no end; correct the "
                f"server"
            )
        cursors.append(cursor)
    raise ServerProblem(f"its tools/list has more than {MAX_PAGES:,} pages; correct the server")


def silence_sdk() -> None:
    """Turn off the logging of SDK and HTTP client, which holds URLs, unless its level was set."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
