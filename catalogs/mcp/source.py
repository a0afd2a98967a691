"""Source kind `mcp`: live MCP servers, from an MCP client's configuration (see
`pegboard/servers/config.py`) or a table of servers. See docs/how-to/sources.md.

Each server becomes an agent with the name from the configuration and the server's own title and
instructions as its description. Failures are isolated per server: a server that hangs, dies or does
not speak MCP keeps its last good tools, and the others are listed.

With `others`, prompts, resources and skills of a server are also listed, each kind as a separate
agent, such as `server:prompts`, because all rows of an agent have the same kind."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import anyio
from pydantic import Field, model_validator

from catalogs.mcp.client import ServerAnswer, list_server
from catalogs.mcp.records import OTHERS, add_others, add_tools
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.retries import Retries
from catalogs.shared.watching import Watched, WatchedFiles, WatchedServer
from pegboard.errors import SourceError
from pegboard.formatting import count_text
from pegboard.records import agent_id
from pegboard.servers.config import Server, ServerProblem, configured_servers, resolve_server


class McpOptions(SourceOptions):
    """The options of a catalog of type `mcp`: either `path` or `servers`, and which to list.

    Attributes:
        others: what to list besides tools; a list in `include` means the same.
        internal: whether tools and skills that their server hides from models are listed.
        instances: `one` lists servers with identical tools as one agent with all addresses.
        timeout: seconds for listing one server.
        concurrency: number of servers listed at the same time.
    """

    path: str | None = None
    servers: dict[str, Any] | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    others: tuple[Literal["prompts", "resources", "skills"], ...] = ()
    internal: bool = False
    instances: Literal["separate", "one"] = "separate"
    timeout: float = Field(default=30, gt=0, le=3600)
    concurrency: int = Field(default=4, ge=1, le=64)

    @model_validator(mode="before")
    @classmethod
    def _others_as_include(cls, values: Any) -> Any:
        """Take a list in `include`, the earlier name of `others`, for `others`."""
        if not isinstance(values, dict) or not isinstance(values.get("include"), list | tuple):
            return values
        if "others" in values:
            raise ValueError("give the list of what else to list as `others` alone")
        return {key: value for key, value in values.items() if key != "include"} | {
            "others": values["include"]
        }

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
            listing.reject("the configuration of MCP servers", "a server has no name; add one")
            continue
        try:
            servers[name] = resolve_server(entry, base)
            listing.secrets.add(servers[name].private)
        except ServerProblem as problem:
            _fail(listing, name, problem, options.others)
    answers: dict[str, ServerAnswer] = {}
    for name, outcome in anyio.run(_list_all, servers, options, listing.retries).items():
        if isinstance(outcome, ServerProblem):
            _fail(listing, name, outcome, options.others)
        else:
            answers[name] = outcome
    for names in _grouped(answers, options.instances == "one"):
        sources = dict.fromkeys(servers[name].source for name in names)
        _add(listing, names[0], ", ".join(sources), answers[names[0]], options)


def _grouped(answers: Mapping[str, ServerAnswer], as_one: bool) -> list[list[str]]:
    """Return groups of server names; `as_one` groups by identical description and tools."""
    groups: dict[Any, list[str]] = {}
    for name, answer in answers.items():
        key = json.dumps([answer.description, answer.tools], sort_keys=True) if as_one else name
        groups.setdefault(key, []).append(name)
    return [*groups.values()]


def _entries(listing: ListingBuilder, options: McpOptions) -> tuple[dict[str, Any], Path]:
    """Return the entries of the servers to list, and the base folder of their relative paths."""
    entries, base = configured_servers(options.path, options.servers, listing.base)
    for name in options.only:
        if name not in entries:
            configured = ", ".join(sorted(entries)) or "none"
            _fail(
                listing,
                name,
                ServerProblem(
                    f"it is named by 'only' but not configured. Configured: {configured}"
                ),
            )
    disabled = [name for name, entry in _chosen(entries, options).items() if _disabled(entry)]
    if disabled:
        count = count_text(len(disabled), "server")
        why = f"{count} left out that the configuration disables, the first is {disabled[0]:.200}"
        listing.notice("skipped", options.path or "servers", why, count=len(disabled))
    return _listed(entries, options), base


def _listed(entries: Mapping[str, Any], options: McpOptions) -> dict[str, Any]:
    return {
        name: entry for name, entry in _chosen(entries, options).items() if not _disabled(entry)
    }


def _chosen(entries: Mapping[str, Any], options: McpOptions) -> dict[str, Any]:
    """Return the entries that `only` and `skip` leave."""
    return {
        name: entry
        for name, entry in entries.items()
        if name not in options.skip and (not options.only or name in options.only)
    }


def _disabled(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (
        entry.get("disabled") is True or entry.get("enabled") is False
    )


async def _list_all(
    servers: Mapping[str, Server], options: McpOptions, retries: Retries
) -> dict[str, ServerAnswer | ServerProblem]:
    """List all servers, `concurrency` at a time, and return the outcomes in configured order.

    The timeout of a server starts when it is its turn, not while it waits.
    """
    outcomes: dict[str, ServerAnswer | ServerProblem] = {}
    limiter = anyio.Semaphore(options.concurrency)

    async def list_one(name: str) -> None:
        async with limiter:
            try:
                outcomes[name] = await list_server(
                    servers[name],
                    options.timeout,
                    options.max_bytes,
                    retries.named(name),
                    options.others,
                )
            except ServerProblem as problem:
                outcomes[name] = problem

    async with anyio.create_task_group() as group:
        for name in servers:
            group.start_soon(list_one, name)
    return {name: outcomes[name] for name in servers}


def _add(
    listing: ListingBuilder, name: str, source: str, answer: ServerAnswer, options: McpOptions
) -> None:
    agent = listing.agent(name, description=answer.description, kind="mcp-server", source=source)
    for problem in answer.problems:
        listing.notice("partial", name, problem)
    add_tools(listing, agent, answer.tools, where=f"{name}: tools", internal=options.internal)
    for what, records in answer.others.items():
        kind, suffix = OTHERS[what]
        if not records:
            continue
        agent = listing.agent(
            f"{name}:{suffix}", description=answer.description, kind=kind, source=source
        )
        place = f"{name}: {what}"
        add_others(listing, agent, what, records, where=place, internal=options.internal)


def _fail(
    listing: ListingBuilder, name: str, problem: ServerProblem, others: Sequence[str] = ()
) -> None:
    for agent in (name, *(f"{name}:{what}" for what in others)):
        listing.fail(
            agent_id(listing.catalog, agent), f"The MCP server '{name}' was not listed: {problem}"
        )


def watched(base: Path, options: McpOptions) -> list[Watched]:
    """Return the servers, and the file that names them."""
    rows: list[Watched] = []
    if options.path is not None:
        file = base / Path(options.path).expanduser()
        rows.append(WatchedFiles(lambda: [file], (str(file),), names_inputs=True))
    try:
        entries, folder = configured_servers(options.path, options.servers, base)
    except SourceError:
        return rows  # a build reports it; the file is watched until it is correct
    for name, entry in _listed(entries, options).items():
        limits = options.timeout, options.max_bytes
        rows.append(WatchedServer(name, entry, folder, options.others, *limits))
    return rows


source = SourceKind(options=McpOptions, read=read, watched=watched)
