"""Reads a reply that should follow a JSON schema. Not every server enforces one.

Texts become single lines of bounded length. Names count only if they were offered, so whatever a
tool's description asks for, no reply can bring in a tool that was not shown.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pegboard.llm.prompts import one_line
from pegboard.llm.replies import json_objects

MAX_CHARACTERS = 300
"""Maximum characters of a step or variation: it is a sentence, and an encoder reads little more."""


class UnusableReply(Exception):
    """A reply that cannot be used; the message ends a sentence that begins with "the reply"."""


def text_schema(field: str) -> dict[str, Any]:
    """Return the schema of an object with one text.

    Like the others it has no bounds, since not every provider's strict mode takes them.
    """
    return _object_schema(field, {"type": "string"})


def texts_schema(field: str) -> dict[str, Any]:
    """Return the schema of an object with a list of texts."""
    return _object_schema(field, {"type": "array", "items": {"type": "string"}})


def names_schema(field: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of an object with a list of these names and no others."""
    items = {"type": "string", "enum": list(names)}
    return _object_schema(field, {"type": "array", "items": items})


def with_thoughts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the same object with the text `thoughts` before everything else."""
    properties = {"thoughts": {"type": "string"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": ["thoughts", *schema["required"]]}


def read_field_text(reply: str, field: str) -> str:
    """Return the text of a reply. Raises UnusableReply."""
    value = _value(reply, field)
    if not isinstance(value, str):
        raise UnusableReply(f"has no text as '{field}'")
    if not (line := _line(value)):
        raise UnusableReply(f"says nothing as '{field}'")
    return line


def read_texts(reply: str, field: str, limit: int) -> list[str]:
    """Return the first `limit` distinct texts of a reply, possibly none. Raises UnusableReply."""
    unique: dict[str, str] = {}
    for item in _items(reply, field):
        if line := _line(item):
            unique.setdefault(line.casefold(), line)
    return list(unique.values())[:limit]


def read_names(reply: str, field: str, names: Iterable[str]) -> list[str]:
    """Return the offered names in a reply, each once and spelt as offered; possibly none.

    Invented names are skipped; a reply of invented names alone raises UnusableReply.
    """
    offered = {_key(name): name for name in names}
    items = _items(reply, field)
    valid = [offered[key] for item in items if (key := _key(item)) in offered]
    if items and not valid:
        raise UnusableReply("names only tools that it was not shown")
    return list(dict.fromkeys(valid))


def _object_schema(field: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field: schema},
        "required": [field],
        "additionalProperties": False,
    }


def _value(reply: str, field: str) -> Any:
    for value in json_objects(reply):
        if field not in value:
            raise UnusableReply(f"has no '{field}'")
        return value[field]
    raise UnusableReply("holds no JSON object")


def _items(reply: str, field: str) -> list[str]:
    value = _value(reply, field)
    items = cast("list[Any]", value) if isinstance(value, list) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise UnusableReply(f"has no list of texts as '{field}'")
    return cast("list[str]", items)


def _line(text: str) -> str:
    """The text on one line, cut at a word; empty if it holds no word."""
    line = one_line(text[: 2 * MAX_CHARACTERS])
    if len(line) > MAX_CHARACTERS:
        line = line[:MAX_CHARACTERS].rpartition(" ")[0] or line[:MAX_CHARACTERS]
    return line if re.search(r"\w", line) else ""


def _key(name: str) -> str:
    return name.strip(" `'\"\n").casefold()
