"""Conversations with MCP servers over stdio, streamable HTTP or SSE, with the official SDK."""

import logging
import os
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.session import ClientSession

from pegboard.redaction import redact
from pegboard.secret_values import SecretValues
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.dispatcher import MessageSecrets, RelaySession, ServerDispatcher
from pegboard.servers.failures import Progress, evidence, explain_failure
from pegboard.servers.process import Stderr, killing_leftovers, passed_environment

MAX_TOOLS = 20_000
"""Of one server."""
LISTS = {
    "tools": ("tools/list", "ListToolsRequest", "ListToolsResult"),
    "prompts": ("prompts/list", "ListPromptsRequest", "ListPromptsResult"),
    "resources": ("resources/list", "ListResourcesRequest", "ListResourcesResult"),
    "resourceTemplates": (
        "resources/templates/list",
        "ListResourceTemplatesRequest",
        "ListResourceTemplatesResult",
    ),
}
"""What a server lists, by the member of its answer: the method, and the SDK's types."""


class ServerTransport:
    """Starts or reaches one server, once.

    Args:
        server: with its secrets resolved, which are taken out of all that it sends.
        timeout: seconds for a request over HTTP.
        max_event: bytes of one event over streamable HTTP.
        by_hand: whether somebody is there to sign in, if the server wants it.

    Attributes:
        progress: how far the conversation came, for the message if it fails.
        dispatcher: the server's messages, once it is reached.
    """

    def __init__(
        self, server: Server, timeout: float, max_event: int, *, by_hand: bool = False
    ) -> None:
        self._by_hand = by_hand
        self._server, self._timeout, self._max_event = server, timeout, max_event
        self._stderr = Stderr()
        self._cause: BaseException | None = None
        self.progress = Progress(server.secrets)
        self.dispatcher: ServerDispatcher | None = None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: Any = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session with the server, before any handshake; both end with the block.

        Args:
            transport_options: FastMCP's, which are not used.
            session_kwargs: see `mcp.ClientSession`.
        """
        silence_sdk()
        secrets = MessageSecrets(self._server.private)
        try:
            with killing_leftovers() as mark:
                async with self._streams(mark, secrets) as streams:
                    self.dispatcher = ServerDispatcher(streams, self.progress, secrets)
                    async with RelaySession(
                        dispatcher=self.dispatcher, **session_kwargs
                    ) as session:
                        yield session
        except BaseException as error:
            self._cause = error
            raise
        finally:
            self._stderr.file.close()

    def explain(self, error: BaseException) -> str:
        """Return why the conversation failed, with the end of the server's stderr."""
        why = explain_failure(self._cause or error, self._server, self.progress)
        return self.with_evidence(why)

    def with_evidence(self, why: str) -> str:
        """Return a reason with what the server wrote besides messages, without secrets."""
        sentences = [why, *evidence(self.progress, self._stderr.end())]
        return redact(". ".join(sentences), self._server.secrets)

    @asynccontextmanager
    async def _streams(self, mark: Mapping[str, str], secrets: SecretValues) -> AsyncGenerator[Any]:
        import httpx2
        from mcp.client.sse import sse_client
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        server = self._server
        sign_in: Any = None
        if server.auth is not None:
            from pegboard.servers.sign_in import ServerSignIn

            sign_in = ServerSignIn(server.url, server.auth, secrets, by_hand=self._by_hand)

        def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
            # The SSE transport asks for limits of its own; ours is for the whole conversation.
            return httpx2.AsyncClient(
                headers=dict(server.headers),
                timeout=self._timeout,
                auth=sign_in,
                event_hooks={"response": [self.progress.on_response]},
            )

        if server.transport == "stdio":
            process = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env={**passed_environment(os.environ), **server.env, **mark},
                cwd=server.cwd,
                encoding_error_handler="replace",
            )
            async with stdio_client(process, errlog=self._stderr.file) as streams:
                yield streams
        elif server.transport == "sse":
            async with sse_client(server.url, httpx_client_factory=client) as streams:
                yield streams
        else:
            async with (
                client() as http,
                streamable_http_client(
                    server.url, http_client=http, max_sse_event_size=self._max_event
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


async def all_tools(session: Any, dispatcher: Any, what: str = "tools") -> list[Any]:
    """Return the tools of a server as it sent them. Raises ServerProblem if they have no end.

    Args:
        dispatcher: keeps the last answer to `tools/list`, as it is, in `page`.
        what: `tools`, or another of `LISTS`.
    """
    import mcp_types
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams

    method, request, result = LISTS[what]
    dispatcher.kept[method] = what
    tools: list[Any] = []
    cursor: Any = None
    while True:
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        try:
            await session.send_request(
                getattr(mcp_types, request)(params=params), getattr(mcp_types, result)
            )
        except MCPError as error:
            capability = "resources" if what == "resourceTemplates" else what
            offered = getattr(session.server_capabilities, capability)
            if error.code == METHOD_NOT_FOUND and (offered is None or capability != what):
                return []  # a server of prompts or resources only
            raise
        page, cursor = dispatcher.page.get(what), dispatcher.page.get("nextCursor")
        if not isinstance(page, list):
            raise ServerProblem(f"its answer to {method} has no list of {what}")
        tools += page
        if len(tools) > MAX_TOOLS:
            raise ServerProblem(f"it lists more than {MAX_TOOLS:,} {what}; correct the server")
        if not isinstance(cursor, str) or not cursor:
            return tools


def silence_sdk() -> None:
    """Turn off the logging of SDK and HTTP client, which holds URLs, unless its level was set; and
    what the SDK says of parts of the protocol that servers and clients still use.
    """
    from mcp.shared.exceptions import MCPDeprecationWarning

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
