"""Connecting to an MCP server over stdio, streamable HTTP or SSE, with the official SDK."""

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pegboard.servers.config import Server
from pegboard.servers.failures import Progress
from pegboard.servers.process import Stderr, passed_environment
from pegboard.servers.stdio import stdio_streams
from pegboard.servers.traffic import Traffic


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


async def handshake(session: Any) -> None:
    """Agree on a protocol: the handshake used until 2026-07 first, then the one without.

    The SDK's own order costs 10 seconds with an older server that leaves unknown requests
    unanswered.
    """
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        try:
            await session.discover()
        except MCPError:
            raise error from None


def silence_sdk() -> None:
    """Turn off the logging of SDK and HTTP client, which holds URLs, unless its level was set."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
