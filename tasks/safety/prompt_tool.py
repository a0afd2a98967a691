"""A tool as a prompt shows it: everything that says what it does, cleaned and of bounded size."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.records import Tool
from pegboard.schemas.for_models import referenced
from pegboard.text.redaction import HIDDEN_CREDENTIAL, takes_credential
from tasks.safety.untrusted import clean

CUT = " [cut]"
"""Replaces what was left out."""

MAX_NAME = 200
MAX_DESCRIPTION = 4_000
MAX_ARGUMENT_NAME = 100
MAX_NOTE = 300
"""Characters of the description of an argument."""
MAX_VALUES = 30
MAX_VALUE = 60
"""Characters of one value of an enum, and of a default."""
MAX_EXAMPLES = 10
MAX_EXAMPLE = 300
MAX_TOOL = 16_000
"""Characters of the whole as JSON: about 4,000 tokens, so that a tool and its neighbours fit a
context of 8,000.
"""


def tool_data(tool: Tool, *, description: str | None = None) -> dict[str, Any]:
    """Return a tool as JSON for a prompt, cleaned, of at most `MAX_TOOL` characters: arguments that
    do not fit are counted.

    Args:
        description: replaces the catalog's own, if given.
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
    """The arguments that have room in so many characters of JSON."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    needed = {str(name) for name in _sequence(schema.get("required"))}
    shown: dict[str, Any] = {}
    for number, (name, spec) in enumerate(properties.items()):
        needs = {"required": True} if name in needed else {}
        label = _text(str(name), MAX_ARGUMENT_NAME)
        argument = _argument(str(name), spec, schema) | needs
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
    return _text(
        f"{text} of {inner}" if text == "array" and isinstance(inner, str) else text, MAX_VALUE
    )


def _resolved(spec: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or what its local reference points to."""
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
    return _text(
        value
        if isinstance(value, str)
        else json.dumps(clean(value), ensure_ascii=False, default=str),
        MAX_VALUE,
    )


def _text(text: str, most: int) -> str:
    """Clean the text, then cut it: a cut through a credential would hide what it was."""
    text = clean(text).strip()
    return text if len(text) <= most else text[: most - len(CUT)].rstrip() + CUT
