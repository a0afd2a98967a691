"""Convert MCP records of tools, prompts, resources and skills to rows, for live servers and for
saved results.

Raw records are read, not the SDK's models: pydantic rejects a whole page because of one malformed
tool."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from catalogs.shared.listing import ListingBuilder
from catalogs.skills import SkillFile, add_skills
from pegboard.formatting import count_text
from pegboard.records import AgentKind

VARIABLES = re.compile(r"\{[+#./;?&]?([^{}]+)\}")
"""Matches an expression in the URI template (RFC 6570) of a resource."""


def add_tools(
    listing: ListingBuilder,
    agent: str,
    records: Iterable[Any],
    *,
    where: str,
    tags: Iterable[str] = (),
    internal: bool = False,
) -> None:
    """Add the records of a tools/list result to the listing, or reject them.

    Args:
        where: the place of the list; of its records, `where[position]`.
        internal: whether tools that are not for models are listed.
    """
    without_schema: list[str] = []
    hidden: list[str] = []
    for position, raw in enumerate(records):
        place = f"{where}[{position}]"
        if not internal and is_hidden(raw):
            hidden.append(place)
            continue
        listed = add_tool(listing, agent, raw, where=place, tags=tags)
        if listed and raw.get("inputSchema") is None:
            without_schema.append(place)
    if without_schema:
        count = count_text(len(without_schema), "tool")
        listing.notice(
            "repaired",
            without_schema[0],
            f"{count} without an `inputSchema`, this is the first; listed without arguments",
            count=len(without_schema),
        )
    if hidden:
        listing.notice(
            "skipped",
            hidden[0],
            f"{count_text(len(hidden), 'tool')} left out that the server hides from models, this "
            "is the first. Set `internal = true` to list them.",
            count=len(hidden),
        )


def add_tool(
    listing: ListingBuilder, agent: str, raw: Any, *, where: str, tags: Iterable[str] = ()
) -> bool:
    """Add one record of a tools/list result to the listing, or reject it; return whether it is
    listed.

    The title replaces a missing description, and is stored as an annotation."""
    if not isinstance(raw, Mapping):
        listing.reject(
            where,
            f"it is {type(raw).__name__}, expected an object with name, description and "
            f"inputSchema",
        )
        return False
    annotations, title = _annotations(raw)
    return listing.tool(
        agent,
        raw.get("name"),
        where=where,
        raw=raw,
        description=raw.get("description") or title,
        input_schema=raw.get("inputSchema"),
        output_schema=raw.get("outputSchema"),
        annotations=annotations,
        tags=tags,
    )


def is_hidden(raw: Any) -> bool:
    """Whether the record of a tool says that only an app's user interface calls it: the visibility
    of MCP Apps (SEP-1865), or that of OpenAI's Apps SDK.
    """
    meta = raw.get("_meta") if isinstance(raw, Mapping) else None
    if not isinstance(meta, Mapping):
        return False
    ui = meta.get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    for_app = isinstance(visibility, list) and visibility and "model" not in visibility
    return bool(for_app) or meta.get("openai/visibility") == "private"


def agent_description(server_info: Any, instructions: Any = None) -> str:
    """Join a server's title, description and instructions; missing ones are skipped."""
    info = server_info if isinstance(server_info, Mapping) else {}
    texts = [info.get("title"), info.get("description"), instructions]
    return "\n\n".join(
        dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())
    )


def is_tool_list(value: Any) -> bool:
    """Whether a value is a list in which some record has a name or an input schema."""
    return isinstance(value, list) and (
        not value
        or any(
            isinstance(item, Mapping) and ("name" in item or "inputSchema" in item)
            for item in value
        )
    )


def _annotations(raw: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the annotations, with the title and without nulls, and the title."""
    annotations = {} if raw.get("annotations") is None else raw["annotations"]
    if not isinstance(annotations, Mapping):
        return annotations, ""
    title = next(
        (
            text
            for text in (raw.get("title"), annotations.get("title"))
            if isinstance(text, str) and text.strip()
        ),
        "",
    )
    members = {**annotations, **({"title": title} if title else {})}
    return {key: value for key, value in members.items() if value is not None}, title


def add_prompt(listing: ListingBuilder, agent: str, raw: Any, *, where: str) -> None:
    """Add one record of a prompts/list result, or reject it."""
    declared = raw.get("arguments") if isinstance(raw, Mapping) else None
    arguments = [
        argument
        for argument in (declared if isinstance(declared, list) else [])
        if isinstance(argument, Mapping) and isinstance(argument.get("name"), str)
    ]
    schema = {
        "type": "object",
        "properties": {
            argument["name"]: {
                "type": "string",
                "description": str(argument.get("description") or ""),
            }
            for argument in arguments
        },
        "required": [
            argument["name"] for argument in arguments if argument.get("required") is True
        ],
    }
    add_tool(listing, agent, _with_schema(raw, schema), where=where)


def add_resource(listing: ListingBuilder, agent: str, raw: Any, *, where: str) -> None:
    """Add one record of a list of resources or resource templates, or reject it.

    Files of skills are skipped: they are listed as skills.
    """
    values: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    if str(values.get("uri")).startswith("skill://"):
        return
    members = {key: values.get(key) for key in ("uri", "uriTemplate", "mimeType", "title")}
    variables = VARIABLES.findall(str(values.get("uriTemplate") or ""))
    names = [name.rstrip("*") for text in variables for name in text.split(",")]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    annotations = {key: value for key, value in members.items() if isinstance(value, str)}
    add_tool(listing, agent, _with_schema(raw, schema, annotations), where=where)


def _with_schema(raw: Any, schema: Mapping[str, Any], annotations: Any = None) -> Any:
    """Return a record in the form of a tool: with an input schema."""
    if not isinstance(raw, Mapping):
        return raw
    return {**raw, "inputSchema": schema, "outputSchema": None, "annotations": annotations}


def add_others(
    listing: ListingBuilder,
    agent: str,
    what: str,
    records: Iterable[Any],
    *,
    where: str,
    internal: bool = False,
) -> None:
    """Add the records of a list of a server beside its tools, or reject them.

    Args:
        what: a key of `OTHERS`.
        where: the place of the list; of its records, `where[position]`.
        internal: whether skills that only users start are listed.
    """
    if what == "skills":
        files = [_skill_file(raw, f"{where}[{position}]") for position, raw in enumerate(records)]
        add_skills(listing, agent, files, internal=internal)
        return
    add = add_prompt if what == "prompts" else add_resource
    for position, raw in enumerate(records):
        add(listing, agent, raw, where=f"{where}[{position}]")


def _skill_file(raw: Mapping[str, str], where: str) -> SkillFile:
    """Return a skill of a server from its `uri` and the `text` of its SKILL.md."""
    uri = raw["uri"]
    folders = tuple(uri.removeprefix("skill://").split("/")[:-1])
    return SkillFile(where, raw["text"], folders[-1], folders, {"uri": uri})


OTHERS: Mapping[str, tuple[AgentKind, str]] = {
    "prompts": ("prompt", "prompts"),
    "resources": ("resource", "resources"),
    "resourceTemplates": ("resource", "resources"),
    "skills": ("skill", "skills"),
}
"""For each list of a server beside its tools: the kind of its agent, and the suffix of the agent's
name."""
