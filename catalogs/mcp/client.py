"""List what one live MCP server has with the official SDK. Its time, pages and tools are
limited, and the process that lists its catalog limits its memory.

A server over stdio is ended shielded from cancellation, so the time limit is one of anyio's scopes:
a native `asyncio.timeout` would break the shield."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from catalogs.mcp.records import agent_description
from pegboard.servers.config import Server, ServerProblem


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's description and its raw tools.

    Attributes:
        others: `prompts`, `resources` and `resourceTemplates` as far as they were asked for, raw;
            and `skills`, each with its `uri` and the `text` of its SKILL.md.
    """

    description: str
    tools: list[Any]
    others: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])


async def list_server(
    server: Server, timeout: float, max_bytes: int, include: Collection[str] = ()
) -> ServerAnswer:
    """Return all tools of a server, and what it says of itself, within `timeout` seconds.

    Args:
        max_bytes: of one event over streamable HTTP.
        include: what else is listed: `prompts`, `resources`, `skills`.

    Raises ServerProblem that says what happened, with the last lines of the server's stderr,
    without secrets."""
    import anyio  # loading the SDK takes seconds, which are not the server's
    from mcp_types import Implementation

    from pegboard.servers.connect import ServerTransport, handshake, list_all

    transport = ServerTransport(server, timeout, max_bytes)
    info = Implementation(name="pegboard", version="1")
    answer: ServerAnswer | None = None
    trouble: Exception | None = None
    with anyio.move_on_after(timeout) as limit:
        try:
            async with transport.connect_session(client_info=info) as session:
                transport.stage = "initialize"
                await handshake(session)
                transport.stage = "tools/list"
                tools = await list_all(session)
                about = session.server_info.model_dump() if session.server_info else {}
                transport.stage = "what else it lists"
                others = await _others(session, include)
                answer = ServerAnswer(agent_description(about, session.instructions), tools, others)
        except Exception as error:
            trouble = error
    # A server that answered everything and then would not end properly was listed all the same.
    if answer is not None:
        return answer
    if limit.cancel_called or trouble is None:
        raise ServerProblem(
            transport.with_evidence(
                f"it did not answer within {timeout:g} seconds (waiting for {transport.stage}); "
                f"try it by hand, or raise timeout"
            )
        )
    raise ServerProblem(transport.explain(trouble)) from None


async def _others(session: Any, include: Collection[str]) -> dict[str, list[Any]]:
    """Return what a server has beside tools. Of the Skills extension (SEP-2640) the resources are
    read: they are the same in all versions of the protocol.
    """
    from pegboard.servers.connect import list_all

    offered, others = session.server_capabilities, dict[str, list[Any]]()
    if "prompts" in include and offered.prompts:
        others["prompts"] = await list_all(session, "prompts")
    if {"resources", "skills"} & {*include} and offered.resources:
        resources = await list_all(session, "resources")
        uris = [str(one.get("uri")) for one in resources if isinstance(one, dict)]
        if "skills" in include:
            skills = [uri for uri in uris if uri.startswith("skill://")]
            own = [uri for uri in skills if uri.endswith("/SKILL.md")]
            others["skills"] = [{"uri": uri, "text": await _text(session, uri)} for uri in own]
        if "resources" in include:
            others["resources"] = resources
            templates = await list_all(session, "resourceTemplates")
            others["resourceTemplates"] = templates
    return others


async def _text(session: Any, uri: str) -> str:
    """Return the text of a resource; "" if it has none."""
    answer = await session.read_resource(uri)
    return next((text for one in answer.contents if (text := getattr(one, "text", None))), "")
