"""Source kind `mcp-dump`: saved `tools/list` results of MCP servers, as JSON files in one of the
`FORMATS`. See docs/how-to/sources.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalogs.mcp.records import add_tools, agent_description, is_tool_list
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.validity import member_text
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, check_names, matching_files, read_json
from pegboard.text.redaction import public_url

FORMATS = (
    "a tools/list answer {'tools': [...]}, alone or as the result of a JSON-RPC response; "
    "a list of servers [{'name': ..., 'tools': {key: {'tools': [...]}}}]; "
    "a list of tools [{'name': ..., 'inputSchema': ...}]; "
    "an object of server names and their tools/list answers; "
    "a list of tools/list answers, such as the pages of one server"
)


class McpDumpOptions(SourceOptions):
    """The options of a catalog of type `mcp-dump`; `agent` names the server of the file.

    Attributes:
        internal: whether tools that their server hides from models are listed.
    """

    path: str
    agent: str | None = None
    internal: bool = False


@dataclass(frozen=True, slots=True)
class SavedServer:
    """The saved result of one server; `name` may be empty, and `tools` is not validated yet.

    Attributes:
        has_more: whether it is a page that has another one behind it.
    """

    name: str
    where: str
    tools: Any
    description: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    has_more: bool = False


def read(listing: ListingBuilder, options: McpDumpOptions) -> None:
    """Add the tools of every server whose result is in the files.

    A file is unreadable if it is not JSON, has an unknown format, or holds several servers while
    `agent` names one. Raises SourceError if no file matches.
    """
    pages: dict[str, list[tuple[str, bool]]] = {}
    for path in matching_files(listing.base, options.path):
        with listing.file(path):
            document = read_json(path, options.max_bytes)
            check_names(document, str(path))
            servers = _servers(document, path)
            names = {saved.name.strip() for saved in servers}
            if options.agent is not None and len(names) > 1:
                raise SourceError(
                    f"{path} holds {len(names)} servers, but agent names one: "
                    f"'{options.agent}'. Remove `agent`."
                )
            for saved in servers:
                where = f"{path.name}: {saved.where}"
                with listing.record(where):
                    name = options.agent or saved.name.strip() or path.stem
                    pages.setdefault(name, []).append((where, saved.has_more))
                    _add(listing, path, saved, name, options.internal)
    for saved_pages in pages.values():
        if all(has_more for _, has_more in saved_pages):
            listing.notice(
                "partial",
                saved_pages[-1][0],
                "it is one page of several, since it has a `nextCursor`; save the pages behind it, "
                "too, such as in one list",
            )


def _add(
    listing: ListingBuilder, path: Path, saved: SavedServer, name: str, internal: bool
) -> None:
    if not isinstance(saved.tools, list):
        raise SourceError(
            f"it has no list of tools (got {type(saved.tools).__name__}); save the whole result "
            f"of tools/list"
        )
    agent = listing.agent(
        name,
        description=saved.description,
        kind="mcp-server",
        source=public_url(saved.source) or path.name,
    )
    where = f"{path.name}: {saved.where}"
    add_tools(listing, agent, saved.tools, where=where, tags=saved.tags, internal=internal)


def _servers(document: Any, path: Path) -> list[SavedServer]:
    if isinstance(document, Mapping) and isinstance(_tools(document), list):
        return [_server(document, "tools")]
    # Checked before a list of tools, which a list of servers resembles.
    if isinstance(document, list) and any(map(_holds_servers, document)):
        servers: list[SavedServer] = []
        for index, entry in enumerate(document):
            servers += _servers_of(entry, f"[{index}].tools")
        return servers
    if isinstance(document, list) and document and all(map(_is_page, document)):
        pages = [_server(page, f"[{index}].tools") for index, page in enumerate(document)]
        return [
            replace(saved, name=saved.name or member_text(page, "name"))
            for saved, page in zip(pages, document, strict=True)
        ]
    if is_tool_list(document):
        return [SavedServer("", "", document)]
    if isinstance(document, Mapping) and any(
        isinstance(_tools(answer), list) for answer in document.values()
    ):
        return [
            replace(_server(answer, f"{name}.tools"), name=str(name))
            for name, answer in document.items()
        ]
    raise SourceError(
        f"{path} holds no saved MCP tools. Tried: {FORMATS}. Save the result of tools/list "
        f"unchanged."
    )


def _server(answer: Any, where: str) -> SavedServer:
    """Return the server of a tools/list result, with its name and description if present."""
    members = answer if isinstance(answer, Mapping) else {}
    result = members.get("result")
    envelope = {**(result if isinstance(result, Mapping) else {}), **members}
    info = envelope.get("serverInfo") or envelope.get("server")
    name = info.get("name") if isinstance(info, Mapping) else info
    cursor = envelope.get("nextCursor")
    return SavedServer(
        name=name if isinstance(name, str) else "",
        where=where,
        tools=_tools(answer),
        description=agent_description(info, envelope.get("instructions")),
        has_more=isinstance(cursor, str | int) and cursor is not False and cursor != "",
    )


def _is_page(entry: Any) -> bool:
    """Whether an entry of a list is a tools/list result, rather than a tool."""
    return isinstance(entry, Mapping) and isinstance(_tools(entry), list)


def _servers_of(entry: Any, where: str) -> Iterator[SavedServer]:
    """Yield the servers of a LiveMCPBench entry; a single server takes the entry's name."""
    if not _holds_servers(entry):
        yield SavedServer("", where, entry)
        return
    title = member_text(entry, "name")
    category = member_text(entry, "category")
    for key, answer in entry["tools"].items():
        yield SavedServer(
            name=title if title and len(entry["tools"]) == 1 else f"{title} {key}",
            where=f"{where}.{key}.tools",
            tools=_tools(answer),
            description=member_text(entry, "description"),
            source=member_text(entry, "web"),
            tags=(category,) if category else (),
        )


def _tools(answer: Any) -> Any:
    """Return the tools of one server's result, or the value in their place, not validated."""
    if isinstance(answer, RepeatedNames):
        return answer  # not a list, so it is rejected
    if isinstance(answer, Mapping):
        return (
            _tools(answer["result"])
            if isinstance(answer.get("result"), Mapping)
            else answer.get("tools")
        )
    return answer if is_tool_list(answer) else None


def _holds_servers(entry: Any) -> bool:
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("tools"), Mapping)
        and any(isinstance(_tools(answer), list) for answer in entry["tools"].values())
    )


source = SourceKind(options=McpDumpOptions, read=read, inputs=files_of_path)
