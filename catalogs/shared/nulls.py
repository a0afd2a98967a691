"""Members that are null, which many generators of JSON write, and a YAML key without a value is."""

from typing import Any

VALUES = {"const", "default"}
"""Members in which null is a value like any other."""
OPAQUE = {*VALUES, "enum", "example", "examples", "security"}
"""Members whose own members are no keywords."""
BY_NAME = {
    "$defs", "content", "definitions", "patternProperties", "properties", "responses", "schemas",
}  # fmt: skip
"""Members whose own members have names of the author's choice; an empty one allows anything."""


def drop_nulls(document: Any) -> None:
    """Remove members that are null from a JSON Schema or an OpenAPI document, in place. Both forbid
    nearly all of them, but they say no more than a member that is absent.
    """
    seen, left = set[int](), [document]
    while left:
        part = left.pop()
        if not isinstance(part, dict | list) or id(part) in seen:  # YAML's aliases share values
            continue
        seen.add(id(part))
        if isinstance(part, list):
            left += part
            continue
        for key, value in list(part.items()):
            if value is None and key not in VALUES:
                del part[key]
            elif key in BY_NAME and isinstance(value, dict):
                value |= {name: {} for name, named in value.items() if named is None}
                left += value.values()
            elif key not in OPAQUE and not str(key).startswith("x-"):
                left.append(value)
