"""MCP tool records, as `tools/list` answers them, turned into tools: used for live servers and for
saved answers alike.

The raw records are read, not the SDK's models: pydantic refuses a whole page because of one
malformed tool."""

from collections.abc import Iterable, Mapping
from typing import Any

from catalogs.shared.listing import ListingBuilder


def add_tool(
    listing: ListingBuilder, agent: str, raw: Any, *, where: str, tags: Iterable[str] = ()
) -> None:
    """Add one record of a tools/list answer to the listing, or reject it.

    A tool without a description is described by its title, which is also kept among the
    annotations."""
    if not isinstance(raw, Mapping):
        listing.reject(
            where,
            f"it is {type(raw).__name__}, expected an object with name, description and "
            f"inputSchema",
            raw,
        )
        return
    annotations, title = _annotations(raw)
    listing.tool(
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


def agent_description(server_info: Any, instructions: Any = None) -> str:
    """Join a server's title, description and instructions, whichever it has."""
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
            t
            for t in (raw.get("title"), annotations.get("title"))
            if isinstance(t, str) and t.strip()
        ),
        "",
    )
    stated = {**annotations, **({"title": title} if title else {})}
    return {key: value for key, value in stated.items() if value is not None}, title
