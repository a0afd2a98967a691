"""Source kind `registry`: the MCP servers in a registry (the API of
https://registry.modelcontextprotocol.io), or in files with server.json or server cards.

Each server becomes an agent with its own description. Registries list no tools: tools come from
server cards, and from the servers that match `connect`, which are listed live. Several entries with
the same package are one server with several addresses. See docs/how-to/sources.md."""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
from pydantic import Field, model_validator

from catalogs.mcp.client import list_server
from catalogs.mcp.records import add_tool, agent_description
from catalogs.openapi.document import download, download_if_changed
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.retries import Retries
from catalogs.shared.watching import Watched, WatchedFiles, WatchedListing, WatchedRegistry
from pegboard.errors import SourceError
from pegboard.foreign.files import check_names, decoded, matching_files, parse_json, read_json
from pegboard.records import agent_id
from pegboard.servers.config import Server, ServerProblem, Transport
from pegboard.text.redaction import public_url

PAGE = 100
"""Number of servers requested per page."""
MAX_SERVERS = 100_000
"""Maximum number of servers read from one registry."""
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""Key in `_meta` of the registry's own data about an entry, such as `status` and `updatedAt`."""
TRANSPORTS: Mapping[Any, Transport] = {"streamable-http": "http", "sse": "sse"}
"""Our name of a transport, by the registry's name of it."""


class RegistryOptions(SourceOptions):
    """The options of a catalog of type `registry`: `url` of the registry, or `path` of files.

    Attributes:
        url: the part before `/v0/servers`.
        headers: sent with each request; `${NAME}` is replaced by an environment variable.
        state: a file that stores the entries, so that later builds request changes only.
        connect: patterns of server names, such as `io.github.acme/*`, whose tools are listed live.
        timeout: seconds for each page, and for listing each server.
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
    """List the servers. Raises SourceError for an invalid or empty reply of the registry."""
    entries = list[Any]()
    for path in matching_files(listing.base, options.path) if options.path else ():
        with listing.file(path):
            document = read_json(path, options.max_bytes)
            check_names(document, str(path))
            entries += _entries(document) or [document]
    if options.url:
        entries = [*_current_entries(listing, options).values()]
        if not entries:
            raise SourceError(f"{public_url(options.url)} lists no servers. Check the address.")
    servers: dict[str, list[dict[str, Any]]] = {}
    for number, entry in enumerate(entries):
        where = f"servers[{number}]"
        with listing.record(where):
            server = _server(entry)
            servers.setdefault(_identity(server), []).append(server)
    for instances in servers.values():
        _add(listing, instances, options)


def _current_entries(listing: ListingBuilder, options: RegistryOptions) -> dict[str, Any]:
    """Return the registry's entries by name: the stored ones, updated by later changes."""
    file = listing.base / options.state if options.state else None
    state: Any = read_json(file, options.max_bytes) if file and file.is_file() else {}
    servers: dict[str, Any] = state.get("servers", {}) if state.get("url") == options.url else {}
    since = max((_updated(entry) for entry in servers.values()), default="")
    for entry in _pages(options, since, listing.retries):
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


def _pages(options: RegistryOptions, since: str, retries: Retries) -> Iterator[Any]:
    """Yield the latest version of each server updated since the time `since`, page by page."""
    query = {"version": "latest", "limit": str(PAGE)}
    query |= {"updated_since": since, "include_deleted": "true"} if since else {}
    count = 0
    base = str(options.url).rstrip("/")
    while True:
        url = f"{base}/v0/servers?{urlencode(query)}"
        body = download(
            url,
            options.headers,
            timeout=options.timeout,
            max_bytes=options.max_bytes,
            retries=retries,
        )
        page = parse_json(decoded(body, public_url(url)), public_url(url))
        entries = _entries(page)
        if entries is None:
            raise SourceError(
                f"{public_url(url)} is not an MCP registry: its reply has no list of servers. "
                f"Set `url` to the part before /v0/servers."
            )
        yield from entries
        count += len(entries)
        metadata = page.get("metadata")
        cursor = metadata.get("nextCursor") if isinstance(metadata, dict) else None
        if not isinstance(cursor, str) or not cursor or not entries:
            return
        if count > MAX_SERVERS:
            raise SourceError(
                f"{public_url(base)} lists more than {MAX_SERVERS:,} servers. Use a smaller "
                f"registry."
            )
        query["cursor"] = cursor


def _add(
    listing: ListingBuilder, instances: list[dict[str, Any]], options: RegistryOptions
) -> None:
    """Add a server from its entries; the first entry has its name, description and tools."""
    main = instances[0]
    addresses: dict[str, None] = {}
    for server in instances:
        addresses |= dict.fromkeys(_addresses(server))
    server_info = main.get("serverInfo")
    about: dict[str, Any] = {key: main.get(key) for key in ("title", "description")}
    about |= server_info if isinstance(server_info, dict) else {}
    name = str(main.get("name") or about.get("name"))
    agent = listing.agent(
        name,
        description=agent_description(about, main.get("instructions")),
        kind="mcp-server",
        source=", ".join(addresses),
    )
    tools = main.get("tools")
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
    """List the tools of a server live, at its first reachable address."""
    remotes = [remote for server in instances for remote in _dicts(server, "remotes")]
    urls: dict[str, Transport] = {
        str(remote.get("url")): TRANSPORTS[remote["type"]]
        for remote in remotes
        if _is_reachable(remote)
    }
    try:
        if not urls:
            raise ServerProblem(
                "the registry has no address for it; list it in a catalog of type `mcp`"
            )
        url, transport = next(iter(urls.items()))
        # The URL is untrusted: variables in it are not replaced, and no headers are sent.
        server = Server(transport, public_url(url), url=url)
        retries = listing.retries.named(name)
        answer = anyio.run(list_server, server, options.timeout, options.max_bytes, retries)
    except ServerProblem as problem:
        listing.fail(agent_id(listing.catalog, name), f"The MCP server '{name}': {problem}")
        return
    for number, raw in enumerate(answer.tools):
        add_tool(listing, agent, raw, where=f"{name}: tools[{number}]")


def _is_reachable(remote: Mapping[str, Any]) -> bool:
    url = str(remote.get("url"))
    return remote.get("type") in TRANSPORTS and url.startswith(("http://", "https://"))


def _entries(document: Any) -> list[Any] | None:
    """Return the entries of a registry's reply; None if it is not such a reply."""
    entries = document.get("servers") if isinstance(document, dict) else None
    return entries if isinstance(entries, list) else None


def _server(entry: Any) -> dict[str, Any]:
    """Return the server.json or server card of an entry. Raises SourceError if it has neither."""
    server = entry.get("server", entry) if isinstance(entry, dict) else None
    about = server.get("serverInfo") if isinstance(server, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    if not isinstance(server, dict) or not isinstance(server.get("name", name), str):
        raise SourceError("it is not a server.json or server card; expected an object with a name")
    return server


def _identity(server: Mapping[str, Any]) -> str:
    """Return the key shared by all entries of one server: its first package, or its name."""
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
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict)]


def _official(entry: Any) -> dict[str, Any]:
    meta = entry.get("_meta") if isinstance(entry, dict) else None
    official = meta.get(OFFICIAL) if isinstance(meta, dict) else None
    return official if isinstance(official, dict) else {}


def _updated(entry: Any) -> str:
    return str(_official(entry).get("updatedAt") or "")


def inputs(base: Path, options: RegistryOptions) -> list[Path] | None:
    """Return the files; None if the listing also depends on a registry or on live servers."""
    return matching_files(base, options.path) if options.path and not options.connect else None


def watched(base: Path, options: RegistryOptions) -> list[Watched]:
    """Return the files, or the registry; and the listing if it has tools of live servers."""
    rows: list[Watched] = []
    if options.path:
        rows.append(WatchedFiles(partial(matching_files, base, options.path), (options.path,)))
    else:
        url = str(options.url).rstrip("/")
        rows.append(WatchedRegistry(url, options.headers, options.timeout, options.max_bytes))
    if options.connect:
        rows.append(WatchedListing())
    return rows


async def updated_since(watched: WatchedRegistry, since: str) -> list[tuple[str, str, str]]:
    """Return the servers of a registry updated at the time `since` or later: time, name, version,
    sorted. One page is enough to notice a change.

    Raises SourceError if the registry does not answer with servers.
    """
    query = {"limit": str(PAGE), "updated_since": since, "include_deleted": "true"}
    url = f"{watched.url}/v0/servers?{urlencode(query)}"
    document = await download_if_changed(
        url, watched.headers, timeout=watched.timeout, max_bytes=watched.max_bytes
    )
    assert document is not None
    place = public_url(url)
    page = parse_json(decoded(document.content, place), place)
    rows = [
        (_updated(entry), str(_server(entry).get("name")), str(_server(entry).get("version")))
        for entry in _entries(page) or ()
    ]
    return sorted(row for row in rows if row[0] >= since)


source = SourceKind(options=RegistryOptions, read=read, inputs=inputs, watched=watched)
