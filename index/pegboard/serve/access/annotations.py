"""Which annotations of a tool clients may see. Others say how it is called, which is the gateway's
concern."""

from typing import Any

from pegboard.records import Tool
from pegboard.serve.access.clients import Client
from pegboard.serve.access.views import Entry

HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""Annotations of every tool that clients see: the hints of MCP."""
READ_ANNOTATIONS = ("body", "file", "uri", "uriTemplate", "mimeType")
"""Annotations of a skill, a prompt or a resource that clients see as well: how it is read."""


def shown_hints(tool: Tool) -> dict[str, Any]:
    """Return the hints of a tool that have the types of MCP; DELETE counts as destructive."""
    hints = {
        key: value
        for key in HINTS
        if isinstance(value := tool.annotations.get(key), str if key == "title" else bool)
    }
    if "destructiveHint" not in hints and str(tool.annotations.get("method")).upper() == "DELETE":
        hints["destructiveHint"] = True
    return hints


def visible_annotations(client: Client, entry: Entry, tool: Tool) -> dict[str, Any]:
    """Return the annotations of a tool that a client may see: all of them for an operator."""
    public = (*HINTS, *(READ_ANNOTATIONS if entry.is_read else ()))
    return {
        name: value for name, value in tool.annotations.items() if client.operator or name in public
    }
