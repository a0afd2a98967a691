"""Source kind `registry`: the MCP servers in a registry (the API of
https://registry.modelcontextprotocol.io), or in files with server.json or server cards.

Each server becomes an agent with its own description, which its latest active version has. Deleted
servers are left out. Registries list no tools: tools come from server cards, and from the servers
that match `connect`, which are listed live. See docs/how-to/sources.md."""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
from pydantic import Field, model_validator

from catalogs.mcp.client import list_server
from catalogs.mcp.records import add_tools, agent_description
from catalogs.openapi.document import download, download_if_changed
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.watching import Watched, WatchedFiles, WatchedListing, WatchedRegistry
from pegboard.errors import SourceError
from pegboard.foreign.files import check_names, decoded, matching_files, parse_json, read_json
from pegboard.formatting import count_text
from pegboard.records import agent_id
from pegboard.servers.config import Server, ServerProblem, Transport
from pegboard.text.redaction import public_url

PAGE = 100
"""Number of servers requested per page."""
MAX_SERVERS = 100_000
"""Maximum number of servers read from one registry."""
OFFICIAL = "io.modelcontextprotocol.registry/official"
"""Key in `_meta` of the registry's own data about an entry, such as `status` and `updatedAt`."""
NUMBERS = re.compile(r"\d{1,18}")
"""Matches the numbers of a version."""
TRANSPORTS: Mapping[Any, Transport] = {"streamable-http": "http", "sse": "sse"}
"""Our name of a transport, by the registry's name of it."""


class RegistryOptions(SourceOptions):
    """The options of a catalog of type `registry`: `url` of the registry, or `path` of files.

    Attributes:
        url: the part before `/v0/servers`.
        headers: sent with each request; `${NAME}` is replaced by an environment variable.
        state: a file that stores the entries, so that later builds request changes only.
        connect: patterns of server names, such as `io.github.acme/*`, whose tools are listed live.
        internal: whether tools that their server hides from models are listed.
        timeout: seconds for each page, and for listing each server.
    """

    url: str | None = None
    path: str | None = None
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    state: str | None = None
    connect: tuple[str, ...] = ()
    internal: bool = False
    timeout: float = Field(30.0, gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> "RegistryOptions":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `url` of the registry or `path` of files")
        return self


def read(listing: ListingBuilder, options: RegistryOptions) -> None:
    """List the servers. Raises SourceError for an invalid or empty reply of the registry."""
    if options.url:
        entries = [*_current_entries(listing, options).values()]
        if not entries:
            raise SourceError(f"{public_url(options.url)} lists no servers. Check the address.")
        where = public_url(options.url)
    else:
        entries = _saved_entries(listing, options)
        where = str(options.path)
    for versions in _current_versions(listing, where, entries).values():
        if versions:
            _add(listing, [_server(entry) for entry in versions], options)


def _saved_entries(listing: ListingBuilder, options: RegistryOptions) -> list[Any]:
    """Return the entries of all files."""
    entries: list[Any] = []
    pages: list[tuple[str, bool]] = []
    for path in matching_files(listing.base, str(options.path)):
        with listing.file(path):
            document = read_json(path, options.max_bytes)
            check_names(document, str(path))
            saved = _entries(document)
            entries += saved or [document]
            if saved is not None:
                pages.append((path.name, _cursor(document) is not None))
    if pages and all(has_more for _, has_more in pages):
        listing.notice(
            "partial",
            pages[-1][0],
            "it is one page of several, since it has a `nextCursor`; save the pages behind it, too",
        )
    return entries


def _current_versions(
    listing: ListingBuilder, where: str, entries: list[Any]
) -> dict[str, list[Any]]:
    """Return the entries that describe each server, by its name: none of a deleted server. What is
    left out is reported, and entries that are not servers are rejected.
    """
    servers: dict[str, list[Any]] = {}
    for number, entry in enumerate(entries):
        with listing.record(f"servers[{number}]"):
            servers.setdefault(_name(_server(entry)), []).append(entry)
    current = {name: _current(versions) for name, versions in servers.items()}
    deleted = [name for name, versions in current.items() if not versions]
    if deleted:
        count = count_text(len(deleted), "deleted server")
        why = f"{count} left out, the first is {deleted[0]:.200}"
        listing.notice("skipped", where, why, count=len(deleted))
    older = sum(
        len(servers[name]) - len(versions) for name, versions in current.items() if versions
    )
    if older:
        count = count_text(older, "older or deleted version")
        listing.notice("skipped", where, f"{count} of servers left out", count=older)
    return current


def _current(entries: list[Any]) -> list[Any]:
    """Return the entries that describe a server: its latest active version, and further entries of
    that version or of none. The first one has its description; none for a deleted server.
    """
    offered = [entry for entry in entries if _official(entry).get("status") != "deleted"]
    if not offered:
        return []
    main = max(offered, key=_recency)
    version = _server(main).get("version")
    return [main] + [
        entry
        for entry in offered
        if entry is not main and _server(entry).get("version") in (None, version)
    ]


def _recency(entry: Any) -> tuple[Any, ...]:
    """Return what the latest active version of a server has most of."""
    official = _official(entry)
    release, _, candidate = str(_server(entry).get("version") or "").partition("-")
    return (
        official.get("status", "active") == "active",
        official.get("isLatest") is True,
        [int(digits) for digits in NUMBERS.findall(release)],
        not candidate,
        str(official.get("publishedAt") or ""),
        _updated(entry),
    )


def _current_entries(listing: ListingBuilder, options: RegistryOptions) -> dict[str, Any]:
    """Return the registry's entries by name: the stored ones, updated by later changes."""
    file = listing.base / options.state if options.state else None
    state: Any = read_json(file, options.max_bytes) if file and file.is_file() else {}
    servers: dict[str, Any] = state.get("servers", {}) if state.get("url") == options.url else {}
    since = max((_updated(entry) for entry in servers.values()), default="")
    entries, complete = _pages(listing, options, since)
    changed = _current_versions(listing, public_url(str(options.url)), entries)
    for name, versions in changed.items():
        servers.pop(name, None)
        if versions:
            servers[name] = versions[0]
    if file is not None and complete:
        part = file.with_name(f"{file.name}.part")
        part.write_text(json.dumps({"url": options.url, "servers": servers}), "utf-8")
        part.replace(file)
    return servers


def _pages(listing: ListingBuilder, options: RegistryOptions, since: str) -> tuple[list[Any], bool]:
    """Return the latest version of each server updated since the time `since`, and whether all
    pages were read. A cursor that repeats ends the listing.
    """
    query = {"version": "latest", "limit": str(PAGE)}
    query |= {"updated_since": since, "include_deleted": "true"} if since else {}
    base = str(options.url).rstrip("/")
    entries: list[Any] = []
    cursors: set[str] = set()
    while True:
        url = f"{base}/v0/servers?{urlencode(query)}"
        body = download(
            url,
            options.headers,
            timeout=options.timeout,
            max_bytes=options.max_bytes,
            retries=listing.retries,
        )
        page = parse_json(decoded(body, public_url(url)), public_url(url))
        rows = _entries(page)
        if rows is None:
            raise SourceError(
                f"{public_url(url)} is not an MCP registry: its reply has no list of servers. "
                f"Set `url` to the part before /v0/servers."
            )
        entries += rows
        cursor = _cursor(page)
        if cursor is None:
            return entries, True
        if cursor in cursors or not rows:
            listing.notice("partial", public_url(base), _why_ended(cursor, len(entries), rows))
            return entries, False
        if len(entries) > MAX_SERVERS:
            raise SourceError(
                f"{public_url(base)} lists more than {MAX_SERVERS:,} servers. Use a smaller "
                f"registry."
            )
        cursors.add(cursor)
        query["cursor"] = cursor


def _why_ended(cursor: str, count: int, rows: list[Any]) -> str:
    what = "sent one cursor twice" if rows else "sent an empty page with a cursor"
    return (
        f"it {what} ({cursor!r:.200}), so the listing ends after {count_text(count, 'entry')}; "
        "report it to the registry's operator"
    )


def _cursor(page: Any) -> str | None:
    """Return the cursor of the next page; None on the last one."""
    metadata = page.get("metadata") if isinstance(page, dict) else None
    cursor = metadata.get("nextCursor") if isinstance(metadata, dict) else None
    if isinstance(cursor, bool) or not isinstance(cursor, str | int) or cursor == "":
        return None
    return str(cursor)


def _add(
    listing: ListingBuilder, instances: list[dict[str, Any]], options: RegistryOptions
) -> None:
    """Add a server from its entries; the first one has its description, and its tools if any."""
    main = instances[0]
    addresses: dict[str, None] = {}
    for server in instances:
        addresses |= dict.fromkeys(_addresses(server))
    server_info = main.get("serverInfo")
    about: dict[str, Any] = {key: main.get(key) for key in ("title", "description")}
    about |= server_info if isinstance(server_info, dict) else {}
    name = _name(main)
    agent = listing.agent(
        name,
        description=agent_description(about, main.get("instructions")),
        kind="mcp-server",
        source=", ".join(addresses),
    )
    lists = [server["tools"] for server in instances if isinstance(server.get("tools"), list)]
    if lists:
        add_tools(listing, agent, lists[0], where=f"{name}: tools", internal=options.internal)
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
    for problem in answer.problems:
        listing.notice("partial", name, problem)
    add_tools(listing, agent, answer.tools, where=f"{name}: tools", internal=options.internal)


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


def _name(server: Mapping[str, Any]) -> str:
    """Return the name of a server, which identifies it: different servers may share a package."""
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
