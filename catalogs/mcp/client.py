"""List the tools of one live MCP server with the official SDK. Its time, pages and tools are
limited, and the process that lists its catalog limits its memory.

A server over stdio is ended shielded from cancellation, so the time limit is one of anyio's scopes:
a native `asyncio.timeout` would break the shield."""

from dataclasses import dataclass
from typing import Any

from catalogs.mcp.records import agent_description
from pegboard.servers.config import Server, ServerProblem


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's description and its raw tools."""

    description: str
    tools: list[Any]


async def list_server(server: Server, timeout: float, max_bytes: int) -> ServerAnswer:
    """Return all tools of a server, and what it says of itself, within `timeout` seconds.

    Args:
        max_bytes: of one event over streamable HTTP.

    Raises ServerProblem that says what happened, with the last lines of the server's stderr,
    without secrets."""
    import anyio
    import mcp.client.sse  # noqa: F401  # loading the SDK takes seconds, which are not the server's
    from mcp_types import Implementation

    from pegboard.servers.connect import ServerTransport, all_tools, handshake

    transport = ServerTransport(server, timeout, max_bytes)
    progress, info = transport.progress, Implementation(name="pegboard", version="1")
    answer: ServerAnswer | None = None
    trouble: Exception | None = None
    with anyio.move_on_after(timeout) as limit:
        try:
            async with transport.connect_session(client_info=info) as session:
                progress.stage = "initialize"
                await handshake(session)
                progress.stage = "tools/list"
                tools = await all_tools(session, transport.dispatcher)
                about = session.server_info.model_dump() if session.server_info else {}
                answer = ServerAnswer(agent_description(about, session.instructions), tools)
        except Exception as error:
            trouble = error
    # A server that answered everything and then would not end properly was listed all the same.
    if answer is not None:
        return answer
    if limit.cancel_called or trouble is None:
        raise ServerProblem(
            transport.with_evidence(
                f"it did not answer within {timeout:g} seconds (waiting for {progress.stage}); try "
                f"it by hand, or raise timeout"
            )
        )
    raise ServerProblem(transport.explain(trouble)) from None
