"""Source kind `mcp`: live MCP servers, from an MCP client's configuration (see
`pegboard/servers/config.py`) or a table of servers. See docs/how-to/sources.md.

Every server is an agent, named as in the configuration, and described by its own title and
instructions. One that hangs, dies or answers no MCP is a failure of that agent: its last good tools
stay, and the other servers go through. Prompts and resources are not tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import anyio
from pydantic import Field, model_validator

from catalogs.mcp.records import add_tool, agent_description
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.records import agent_id
from pegboard.servers.config import Server, ServerProblem, configured_servers, resolve_server


@dataclass(frozen=True, slots=True)
class _Answer:
    """A server's description and its raw tools."""

    description: str
    tools: list[Any]


class McpOptions(SourceOptions):
    """Where the servers are described, which of them to list, and how long each may take."""

    path: str | None = None
    servers: dict[str, Any] | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    timeout: float = Field(default=30, gt=0, le=3600)
    concurrency: int = Field(default=4, ge=1, le=64)

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.servers is None):
            raise ValueError(
                "give either path, an MCP client configuration, or servers, a table of them"
            )
        return self


def read(listing: ListingBuilder, options: McpOptions) -> None:
    """Add the tools of every configured server, and a failure for each that cannot be listed.

    Raises SourceError if the configuration cannot be read.
    """
    entries, base = _entries(listing, options)
    servers: dict[str, Server] = {}
    for name, entry in entries.items():
        if not name.strip():
            listing.reject(
                "the configuration of MCP servers", "a server has no name; name it", entry
            )
            continue
        try:
            servers[name] = resolve_server(entry, base)
            listing.secrets.add(servers[name].private)
        except ServerProblem as problem:
            _fail(listing, name, problem)
    for name, outcome in anyio.run(_list_all, servers, options).items():
        if isinstance(outcome, ServerProblem):
            _fail(listing, name, outcome)
        else:
            _add(listing, name, servers[name], outcome)


def _entries(listing: ListingBuilder, options: McpOptions) -> tuple[dict[str, Any], Path]:
    """The entries of the servers to list, and the folder from which their relative paths count."""
    entries, base = configured_servers(options.path, options.servers, listing.base)
    for name in options.only:
        if name not in entries:
            known = ", ".join(sorted(entries)) or "none"
            _fail(
                listing,
                name,
                ServerProblem(f"it is named by 'only' but not configured. Configured: {known}"),
            )
    return {
        name: entry
        for name, entry in entries.items()
        if name not in options.skip
        and (not options.only or name in options.only)
        and not _disabled(entry)
    }, base


def _disabled(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (
        entry.get("disabled") is True or entry.get("enabled") is False
    )


async def _list_all(
    servers: Mapping[str, Server], options: McpOptions
) -> dict[str, _Answer | ServerProblem]:
    """List all servers, in the configuration's order; a server's time runs only in its turn."""
    outcomes: dict[str, _Answer | ServerProblem] = {}
    turns = anyio.Semaphore(options.concurrency)

    async def ask(name: str) -> None:
        async with turns:
            try:
                outcomes[name] = await _list_server(
                    servers[name], options.timeout, options.max_bytes
                )
            except ServerProblem as problem:
                outcomes[name] = problem

    async with anyio.create_task_group() as group:
        for name in servers:
            group.start_soon(ask, name)
    return {name: outcomes[name] for name in servers}


async def _list_server(server: Server, timeout: float, max_bytes: int) -> _Answer:
    """Return all tools of a server, and what it says of itself, within `timeout` seconds.

    Args:
        max_bytes: of one event over streamable HTTP.

    Raises ServerProblem that says what happened, with the last lines of the server's stderr,
    without secrets."""
    import mcp.client.sse  # noqa: F401  # loading the SDK takes seconds, which are not the server's
    from mcp_types import Implementation

    from pegboard.servers.connect import ServerTransport, all_tools, handshake

    transport = ServerTransport(server, timeout, max_bytes)
    progress, info = transport.progress, Implementation(name="pegboard", version="1")
    answer: _Answer | None = None
    trouble: Exception | None = None
    # A server over stdio is ended shielded from cancellation, which `asyncio.timeout` would break.
    with anyio.move_on_after(timeout) as limit:
        try:
            async with transport.connect_session(client_info=info) as session:
                progress.stage = "initialize"
                await handshake(session)
                progress.stage = "tools/list"
                tools = await all_tools(session, transport.dispatcher)
                about = session.server_info.model_dump() if session.server_info else {}
                answer = _Answer(agent_description(about, session.instructions), tools)
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


def _add(listing: ListingBuilder, name: str, server: Server, answer: _Answer) -> None:
    agent = listing.agent(
        name, description=answer.description, kind="mcp-server", source=server.source
    )
    for position, raw in enumerate(answer.tools):
        add_tool(listing, agent, raw, where=f"{name}: tools[{position}]")


def _fail(listing: ListingBuilder, name: str, problem: ServerProblem) -> None:
    listing.fail(
        agent_id(listing.catalog, name), f"The MCP server '{name}' was not listed: {problem}"
    )


source = SourceKind(options=McpOptions, read=read)
