"""A tool as JSON for a prompt: what it does and takes, cleaned and of bounded size."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.records import Tool
from pegboard.schemas.for_models import referenced
from pegboard.text.redaction import HIDDEN_CREDENTIAL, takes_credential
from tasks.safety.untrusted import clean

CUT = " [cut]"
"""Marks the place where text was cut."""

MAX_NAME = 200
"""Largest number of characters of a tool's name."""
MAX_DESCRIPTION = 4_000
"""Largest number of characters of a tool's description."""
MAX_ARGUMENT_NAME = 100
"""Largest number of characters of an argument's name."""
MAX_NOTE = 300
"""Largest number of characters of an argument's description."""
MAX_VALUES = 30
"""Largest number of values of an enum, and of members of an object."""
MAX_VALUE = 60
"""Largest number of characters of a value of an enum, and of a default."""
MAX_EXAMPLES = 10
"""Largest number of example requests."""
MAX_EXAMPLE = 300
"""Largest number of characters of an example request."""
MAX_TOOL = 16_000
"""Largest number of characters of a tool as JSON: about 4,000 tokens, so that a tool and its
neighbours fit a context of 8,000 tokens.
"""


def tool_data(tool: Tool, *, description: str | None = None) -> dict[str, Any]:
    """Return a tool as cleaned JSON for a prompt, of at most `MAX_TOOL` characters. The number of
    arguments that do not fit is shown instead of them.

    Args:
        description: replaces the catalog's description, if given.
    """
    text = tool.description if description is None else description
    data: dict[str, Any] = {
        "name": _text(tool.name, MAX_NAME),
        "description": _text(text, MAX_DESCRIPTION),
    }
    examples = [_text(example, MAX_EXAMPLE) for example in tool.examples[:MAX_EXAMPLES]]
    room = MAX_TOOL - len(json.dumps([data, examples, CUT * 3], ensure_ascii=False))
    if arguments := _arguments(tool.input_schema, room):
        data["arguments"] = arguments
    return {**data, "examples": examples} if examples else data


def _arguments(schema: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Return the arguments that fit into `room` characters of JSON."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    required = {str(name) for name in _sequence(schema.get("required"))}
    shown: dict[str, Any] = {}
    for number, (name, spec) in enumerate(properties.items()):
        label = _text(str(name), MAX_ARGUMENT_NAME)
        argument = _argument(str(name), spec, schema)
        if name in required:
            argument["required"] = True
        room -= len(json.dumps({label: argument}, ensure_ascii=False))
        if room < 0:
            shown[CUT.strip()] = f"{len(properties) - number} more arguments"
            break
        shown[label] = argument
    return shown


def _argument(name: str, spec: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    spec = _resolved(spec, schema)
    items = _resolved(spec.get("items"), schema)
    shown: dict[str, Any] = {}
    if kind := _type(spec, schema):
        shown["type"] = kind
    if isinstance(shape := spec.get("format"), str):
        shown["format"] = _text(shape, MAX_VALUE)
    if isinstance(note := spec.get("description"), str) and note.strip():
        shown["description"] = _text(note, MAX_NOTE)
    if values := _sequence(spec.get("enum") or items.get("enum")):
        shown["enum"] = _values(values)
    members = spec.get("properties") or items.get("properties")
    if isinstance(members, Mapping) and members:
        shown["members"] = _values(list(members))
    for key in ("default", "example", "examples"):
        value = spec.get(key)
        if value not in (None, "", [], {}):
            shown[key] = HIDDEN_CREDENTIAL if takes_credential(name) else _value(value)
    return shown


def _type(spec: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    kind = spec.get("type")
    kinds = [kind] if isinstance(kind, str) else [str(item) for item in _sequence(kind)]
    for keyword in ("anyOf", "oneOf"):
        kinds += [_type(_resolved(item, schema), {}) for item in _sequence(spec.get(keyword))]
    inner = _resolved(spec.get("items"), schema).get("type")
    text = " or ".join(dict.fromkeys(name for name in kinds if name and name != "null"))
    if text == "array" and isinstance(inner, str):
        text = f"array of {inner}"
    return _text(text, MAX_VALUE)


def _resolved(spec: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema, or the target of its local reference."""
    if not isinstance(spec, Mapping):
        return {}
    target = referenced(spec.get("$ref"), schema)
    return target if isinstance(target, Mapping) else spec


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _values(values: Sequence[Any]) -> list[Any]:
    shown = [_value(value) for value in values[:MAX_VALUES]]
    return shown if len(values) <= MAX_VALUES else [*shown, CUT.strip()]


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if not isinstance(value, str):
        value = json.dumps(clean(value), ensure_ascii=False, default=str)
    return _text(value, MAX_VALUE)


def _text(text: str, max_length: int) -> str:
    """Clean the text, then cut it: half a credential would not be recognised as one."""
    text = clean(text).strip()
    return text if len(text) <= max_length else text[: max_length - len(CUT)].rstrip() + CUT
