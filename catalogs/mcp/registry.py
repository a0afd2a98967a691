"""Source kind `registry`: the MCP servers that a registry lists (the API of
https://registry.modelcontextprotocol.io), or files with server.json or server cards.

A server is an agent, with its own description. A registry says nothing of tools: those of a server
card are listed, and of servers that `connect` names, those that they answer at their address.
Several entries of one package are one server with several addresses. See docs/how-to/sources.md."""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
from pydantic import Field, model_validator

from catalogs.mcp.client import list_server
from catalogs.mcp.records import add_tool, agent_description
from catalogs.openapi.document import download
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.errors import SourceError
from pegboard.foreign.files import check_names, matching_files, parse_json, read_json
from pegboard.records import agent_id
from pegboard.servers.config import Server, ServerProblem, Transport
from pegboard.text.redaction import public_url

PAGE = 100
"""Servers of one answer."""
MAX_SERVERS = 100_000
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""What a registry itself says of an entry, in its `_meta`."""
TRANSPORTS: Mapping[Any, Transport] = {"streamable-http": "http", "sse": "sse"}


class RegistryOptions(SourceOptions):
    """The options of a catalog of type `registry`: `url` of the registry, or `path` of files.

    Attributes:
        url: before `/v0/servers`.
        headers: may hold `${NAME}`, which stands for an environment variable.
        state: a file that keeps what the registry listed; a build then asks for changes only.
        connect: patterns of names, as `io.github.acme/*`: their tools are listed, too.
        timeout: seconds for each answer.
    """

    url: str | None = None
    path: str | None = None
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    state: str | None = None
    connect: tuple[str, ...] = ()
    timeout: float = Field(30.0, gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> "RegistryOptions":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `url` of the registry or `path` of files")
        return self


def read(listing: ListingBuilder, options: RegistryOptions) -> None:
    """List the servers. Raises SourceError if the registry does not answer as its API says."""
    entries = list[Any]()
    for path in matching_files(listing.base, options.path) if options.path else ():
        with listing.file(path):
            document = read_json(path, options.max_bytes)
            check_names(document, str(path))
            entries += _entries(document) or [document]
    if options.url:
        entries = [*_known(listing.base, options).values()]
        if not entries:
            raise SourceError(f"{public_url(options.url)} lists no server. Check the address.")
    servers: dict[str, list[dict[str, Any]]] = {}
    for number, entry in enumerate(entries):
        where = f"servers[{number}]"
        with listing.record(where):
            server = _server(entry)
            servers.setdefault(_identity(server), []).append(server)
    for instances in servers.values():
        _add(listing, instances, options)


def _known(base: Path, options: RegistryOptions) -> dict[str, Any]:
    """Return the registry's entries by name: those of the state, and what changed since then."""
    file = base / options.state if options.state else None
    state: Any = read_json(file, options.max_bytes) if file and file.is_file() else {}
    servers: dict[str, Any] = state.get("servers", {}) if state.get("url") == options.url else {}
    since = max((_updated(entry) for entry in servers.values()), default="")
    for entry in _pages(options, since):
        name = str(_server(entry).get("name"))
        if _official(entry).get("status") == "deleted":
            servers.pop(name, None)
        else:
            servers[name] = entry
    if file is not None:
        part = file.with_name(f"{file.name}.part")
        part.write_text(json.dumps({"url": options.url, "servers": servers}), "utf-8")
        part.replace(file)
    return servers


def _pages(options: RegistryOptions, since: str) -> Iterator[Any]:
    """Yield the newest version of each server that changed since then, page by page."""
    query = {"version": "latest", "limit": str(PAGE)}
    query |= {"updated_since": since, "include_deleted": "true"} if since else {}
    count, base = 0, str(options.url).rstrip("/")
    while True:
        url = f"{base}/v0/servers?{urlencode(query)}"
        body = download(url, options.headers, timeout=options.timeout, max_bytes=options.max_bytes)
        page = parse_json(body.decode("utf-8", "surrogateescape"), public_url(url))
        entries = _entries(page)
        if entries is None:
            raise SourceError(
                f"{public_url(url)} is no MCP registry: its answer has no list of servers. Give "
                f"the address before /v0/servers."
            )
        yield from entries
        count += len(entries)
        metadata = page.get("metadata")
        cursor = metadata.get("nextCursor") if isinstance(metadata, dict) else None
        if not isinstance(cursor, str) or not cursor or not entries:
            return
        if count > MAX_SERVERS:
            raise SourceError(
                f"{public_url(base)} lists more than {MAX_SERVERS:,} servers. Use another one."
            )
        query["cursor"] = cursor


def _add(
    listing: ListingBuilder, instances: list[dict[str, Any]], options: RegistryOptions
) -> None:
    """Add a server, from all entries of it; the first one describes it."""
    first = instances[0]
    addresses = dict.fromkeys(one for server in instances for one in _addresses(server))
    own = first.get("serverInfo")
    about: dict[str, Any] = {key: first.get(key) for key in ("title", "description")}
    about |= own if isinstance(own, dict) else {}
    name = str(first.get("name") or about.get("name"))
    agent = listing.agent(
        name,
        description=agent_description(about, first.get("instructions")),
        kind="mcp-server",
        source=", ".join(addresses),
    )
    tools = first.get("tools")
    for number, raw in enumerate(tools if isinstance(tools, list) else ()):
        add_tool(listing, agent, raw, where=f"{name}: tools[{number}]")
    if any(fnmatchcase(name, pattern) for pattern in options.connect):
        _connect(listing, agent, name, instances, options)


def _connect(
    listing: ListingBuilder,
    agent: str,
    name: str,
    instances: list[dict[str, Any]],
    options: RegistryOptions,
) -> None:
    """List the tools of a server at the first of its addresses."""
    remotes = [remote for server in instances for remote in _dicts(server, "remotes")]
    urls: dict[str, Transport] = {
        str(one.get("url")): TRANSPORTS[one["type"]] for one in remotes if _is_reachable(one)
    }
    try:
        if not urls:
            raise ServerProblem("the registry has no address of it; list it in a catalog of `mcp`")
        url, transport = next(iter(urls.items()))
        # An address is the registry's text: no variable in it is replaced, no header is sent.
        server = Server(transport, public_url(url), url=url)
        answer = anyio.run(list_server, server, options.timeout, options.max_bytes)
    except ServerProblem as problem:
        listing.fail(agent_id(listing.catalog, name), f"The MCP server '{name}': {problem}")
        return
    for number, raw in enumerate(answer.tools):
        add_tool(listing, agent, raw, where=f"{name}: tools[{number}]")


def _is_reachable(remote: Mapping[str, Any]) -> bool:
    url = str(remote.get("url"))
    return remote.get("type") in TRANSPORTS and url.startswith(("http://", "https://"))


def _entries(document: Any) -> list[Any] | None:
    """Return the entries of a registry's answer; None if it is none."""
    entries = document.get("servers") if isinstance(document, dict) else None
    return entries if isinstance(entries, list) else None


def _server(entry: Any) -> dict[str, Any]:
    """Return the server.json, or the server card, of an entry. Raises SourceError without one."""
    server = entry.get("server", entry) if isinstance(entry, dict) else None
    about = server.get("serverInfo") if isinstance(server, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    if not isinstance(server, dict) or not isinstance(server.get("name", name), str):
        raise SourceError("it is no server.json or server card; expected an object with a name")
    return server


def _identity(server: Mapping[str, Any]) -> str:
    """Return what is the same for all entries of one server: its first package, or its name."""
    for package in _dicts(server, "packages"):
        return f"{package.get('registryType')} {package.get('identifier')}"
    return str(server.get("name") or server["serverInfo"]["name"])


def _addresses(server: Mapping[str, Any]) -> Iterator[str]:
    for remote in _dicts(server, "remotes"):
        yield public_url(str(remote.get("url")))
    for package in _dicts(server, "packages"):
        yield f"{package.get('registryType')}:{package.get('identifier')}"


def _dicts(server: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    values = server.get(key)
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _official(entry: Any) -> dict[str, Any]:
    meta = entry.get("_meta") if isinstance(entry, dict) else None
    own = meta.get(OFFICIAL) if isinstance(meta, dict) else None
    return own if isinstance(own, dict) else {}


def _updated(entry: Any) -> str:
    return str(_official(entry).get("updatedAt") or "")


def inputs(base: Path, options: RegistryOptions) -> list[Path] | None:
    """Return the files, if there is nothing else to ask."""
    return matching_files(base, options.path) if options.path and not options.connect else None


source = SourceKind(options=RegistryOptions, read=read, inputs=inputs)
