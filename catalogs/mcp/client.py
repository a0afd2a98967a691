"""List one live MCP server with the official SDK. Time, pages and tools are limited here; the
process that lists the catalog limits memory.

The end of a stdio server is shielded from cancellation, so the time limit is an anyio scope: a
native `asyncio.timeout` would kill the server at once."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from catalogs.mcp.records import agent_description
from catalogs.shared.retries import Retries
from pegboard.servers.config import Server, ServerProblem


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's description and its raw tools.

    Attributes:
        others: the raw records of the requested `prompts`, `resources` and `resourceTemplates`;
            and `skills`, each with its `uri` and the `text` of its SKILL.md.
        problems: why lists end before their last page.
    """

    description: str
    tools: list[Any]
    others: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    problems: list[str] = field(default_factory=list[str])


async def list_server(
    server: Server,
    timeout: float,
    max_bytes: int,
    retries: Retries,
    include: Collection[str] = (),
) -> ServerAnswer:
    """Return all tools of a server and its description.

    Args:
        timeout: seconds of one attempt to list the server.
        max_bytes: limit for one event over streamable HTTP.
        retries: policy for transient failures; each attempt starts or connects to the server anew.
        include: what else to list: `prompts`, `resources`, `skills`.

    Raises:
        ServerProblem: the server could not be listed. The message has the reason, and of a server
            over stdio its exit code and the last lines of its stderr, with secrets redacted.
    """
    return await retries.call_async(
        partial(_list_server, server, timeout, max_bytes, frozenset(include))
    )


async def _list_server(
    server: Server, timeout: float, max_bytes: int, include: Collection[str]
) -> ServerAnswer:
    import anyio  # loading the SDK takes seconds, which must not count against the server
    from mcp_types import Implementation

    from pegboard.servers.connect import LISTING, ServerTransport, handshake

    transport = ServerTransport(server, timeout, max_bytes)
    info = Implementation(name="pegboard", version="1")
    answer: ServerAnswer | None = None
    trouble: Exception | None = None
    with anyio.move_on_after(timeout) as limit:
        try:
            async with transport.connect_session(client_info=info, **LISTING) as session:
                transport.stage = "initialize"
                await handshake(session)
                answer = await read_answer(session, transport, include)
        except Exception as error:
            trouble = error
    # The listing is complete, even if the server then failed to shut down.
    if answer is not None:
        return answer
    if limit.cancel_called or trouble is None:
        raise ServerProblem(
            transport.with_evidence(
                f"it did not answer within {timeout:g} seconds (waiting for {transport.stage}); "
                f"try it by hand, or raise timeout"
            ),
            may_pass=True,
        )
    raise transport.problem(trouble) from None


async def read_answer(session: Any, transport: Any, include: Collection[str]) -> ServerAnswer:
    """Return what a server lists, after the handshake.

    Args:
        session: a `RelaySession`.
        transport: its `ServerTransport`, which is told what the server has to answer.
        include: what else to list: `prompts`, `resources`, `skills`.
    """
    from pegboard.servers.connect import list_all

    problems: list[str] = []
    transport.stage = "tools/list"
    tools = await list_all(session, report=problems.append)
    about = session.server_info.model_dump() if session.server_info else {}
    transport.stage = "what else it lists"
    others = await _others(session, include, problems.append)
    return ServerAnswer(agent_description(about, session.instructions), tools, others, problems)


async def _others(
    session: Any, include: Collection[str], report: Callable[[str], None]
) -> dict[str, list[Any]]:
    """Return the requested prompts, resources and skills of a server.

    Skills (SEP-2640) are read as resources, which are the same in all versions of the protocol.

    Args:
        report: gets the reason if a list ends before its last page.
    """
    from pegboard.servers.connect import list_all

    capabilities = session.server_capabilities
    others: dict[str, list[Any]] = {}
    if "prompts" in include and capabilities.prompts:
        others["prompts"] = await list_all(session, "prompts", report)
    if {"resources", "skills"} & {*include} and capabilities.resources:
        resources = await list_all(session, "resources", report)
        uris = [str(resource.get("uri")) for resource in resources if isinstance(resource, dict)]
        if "skills" in include:
            skill_files = [
                uri for uri in uris if uri.startswith("skill://") and uri.endswith("/SKILL.md")
            ]
            others["skills"] = [
                {"uri": uri, "text": await _text(session, uri)} for uri in skill_files
            ]
        if "resources" in include:
            others["resources"] = resources
            others["resourceTemplates"] = await list_all(session, "resourceTemplates", report)
    return others


async def _text(session: Any, uri: str) -> str:
    """Return the first text of a resource; "" if it has none."""
    result = await session.read_resource(uri)
    for content in result.contents:
        if text := getattr(content, "text", None):
            return text
    return ""
