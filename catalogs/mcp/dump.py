"""Source kind `mcp-dump`: saved `tools/list` results of MCP servers, as JSON files in one of four
`SHAPES`. See docs/how-to/sources.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogs.mcp.records import add_tool, agent_description, is_tool_list
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.validity import member_text
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, check_names, matching_files, read_json
from pegboard.redaction import public_url


class McpDumpOptions(SourceOptions):
    """The files with the listings, and the server's name if a file lacks it."""

    path: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class SavedServer:
    """The saved answer of one server; `name` may be empty, and `tools` is not checked yet."""

    name: str
    where: str
    tools: Any
    description: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()


def read(listing: ListingBuilder, options: McpDumpOptions) -> None:
    """Add the tools of every server whose answer the files hold.

    A file that is not JSON, has none of the known shapes, or holds several servers while `agent`
    names one is unreadable. Raises SourceError if there is no file.
    """
    for path in matching_files(listing.base, options.path):
        with listing.file(path):
            document = read_json(path, options.max_bytes)
            check_names(document, str(path))
            servers = _servers(document, path)
            if options.agent is not None and len(servers) > 1:
                raise SourceError(
                    f"{path} holds {len(servers)} servers, but agent names one: "
                    f"'{options.agent}'. Leave it out."
                )
            for saved in servers:
                with listing.record(f"{path.name}: {saved.where}", saved.tools):
                    _add(listing, path, saved, options.agent or saved.name.strip() or path.stem)


def _add(listing: ListingBuilder, path: Path, saved: SavedServer, name: str) -> None:
    if not isinstance(saved.tools, list):
        why = (
            f"it has no list of tools (got {type(saved.tools).__name__}); save the whole answer "
            f"to tools/list"
        )
        listing.reject(f"{path.name}: {saved.where}", why, saved.tools)
        return
    agent = listing.agent(
        name,
        description=saved.description,
        kind="mcp-server",
        source=public_url(saved.source) or path.name,
    )
    for position, raw in enumerate(saved.tools):
        add_tool(
            listing, agent, raw, where=f"{path.name}: {saved.where}[{position}]", tags=saved.tags
        )


def _servers(document: Any, path: Path) -> list[SavedServer]:
    for shape in SHAPES.values():
        if servers := shape(document):
            return servers
    raise SourceError(
        f"{path} holds no saved MCP tools. Tried: {'; '.join(SHAPES)}. Save the answer to "
        f"tools/list as it is."
    )


def _one_server(document: Any) -> list[SavedServer]:
    if not isinstance(document, Mapping) or not isinstance(tools := _tools(document), list):
        return []
    result = document.get("result")
    envelope = {**(result if isinstance(result, Mapping) else {}), **document}
    info = envelope.get("serverInfo") or envelope.get("server")
    name = info.get("name") if isinstance(info, Mapping) else info
    description = agent_description(info, envelope.get("instructions"))
    return [SavedServer(name if isinstance(name, str) else "", "tools", tools, description)]


def _plain_tools(document: Any) -> list[SavedServer]:
    return [SavedServer("", "", document)] if is_tool_list(document) else []


def _server_entries(document: Any) -> list[SavedServer]:
    """Read the entries of LiveMCPBench; an entry is one agent by its own name."""
    if not isinstance(document, list) or not any(_holds_servers(entry) for entry in document):
        return []
    entries: list[SavedServer] = []
    for position, entry in enumerate(document):
        where = f"[{position}].tools"
        if not _holds_servers(entry):
            entries.append(SavedServer("", where, entry))
            continue
        title, category = member_text(entry, "name"), member_text(entry, "category")
        for key, answer in entry["tools"].items():
            name = title if title and len(entry["tools"]) == 1 else f"{title} {key}"
            description, tags = member_text(entry, "description"), (category,) if category else ()
            entries.append(
                SavedServer(
                    name,
                    f"{where}.{key}.tools",
                    _tools(answer),
                    description,
                    member_text(entry, "web"),
                    tags,
                )
            )
    return entries


def _named_servers(document: Any) -> list[SavedServer]:
    if not isinstance(document, Mapping) or not any(
        isinstance(_tools(value), list) for value in document.values()
    ):
        return []
    return [
        SavedServer(
            str(name),
            f"{name}.tools",
            _tools(answer),
            (_one_server(answer) or [SavedServer("", "", [])])[0].description,
        )
        for name, answer in document.items()
    ]


SHAPES: Mapping[str, Callable[[Any], list[SavedServer]]] = {
    "a tools/list answer {'tools': [...]}, alone or as the result of a JSON-RPC "
    "response": _one_server,
    "a list of servers [{'name': ..., 'tools': {key: {'tools': [...]}}}]": _server_entries,
    "a list of tools [{'name': ..., 'inputSchema': ...}]": _plain_tools,
    "an object of server names and their tools/list answers": _named_servers,
}
"""What each shape looks like and how it is read, in the order of trying: a list of servers looks
like one of tools, too.
"""


def _tools(answer: Any) -> Any:
    """Return the tools of one server's answer, or whatever stands in their place."""
    if isinstance(answer, RepeatedNames):
        return answer  # not a list: it is rejected
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
