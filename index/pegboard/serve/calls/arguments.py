"""Check of the arguments of a call against the input schema of its tool, before the call. What a
model wrote in another form than the schema, but with one meaning, is put right."""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import jsonschema_rs
from pydantic_core import from_json

from pegboard.records import Tool
from pegboard.serve.errors import CallProblem

CHECKED = {
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
"""Keywords that are checked, besides names and required properties. Checking each one takes time in
proportion to the arguments. References, alternatives and patterns can take forever, and are not
checked."""
_TYPE_OF: Mapping[type[Any], str] = {
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
"""The JSON type of values other than numbers and texts."""
MAX_PROBLEMS = 5
"""Most problems that an error lists."""
MAX_PROBLEM = 300
"""Most characters of a problem, and of the place where it is."""


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the form of the tool's schema: numbers, booleans, objects and lists
    that were written as a text, without null for optional ones that are not null.

    Nothing is checked against an invalid schema: the tool itself decides.

    Raises:
        CallProblem: the arguments do not match the schema, as far as `CHECKED` says.
    """
    try:
        # Lone surrogates, NaN and 200 levels of nesting cannot be sent to any tool.
        fitted = from_json(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise CallProblem(
            "invalid",
            f"The arguments are not JSON, or too deep: {error!s:.200}. {tool.id} was not called.",
        ) from None
    try:
        validator = _validator(json.dumps(dict(tool.input_schema)))
    except (TypeError, ValueError, RecursionError):
        return fitted
    fitted = _fitted(fitted, tool.input_schema)
    lines: list[str] = []
    for error in islice(validator.iter_errors(fitted), MAX_PROBLEMS):
        place = ".".join(str(part) for part in error.instance_path)[:MAX_PROBLEM]
        lines.append(f"- {place or 'arguments'}: {error.message[:MAX_PROBLEM]}")
    if lines:
        problems = "\n".join(lines)
        raise CallProblem(
            "invalid",
            f"The arguments do not fit the tool's inputSchema, and it was not called:\n{problems}",
        )
    return fitted


def _fitted(value: Any, schema: Any) -> Any:
    """Return a value in the form of its schema, if it has only one meaning there."""
    if not isinstance(schema, Mapping):
        return value
    schema = cast("Mapping[str, Any]", schema)
    if isinstance(value, str):
        value = _from_text(value, _types(schema))
    if isinstance(value, list):
        return [_fitted(item, schema.get("items")) for item in cast("list[Any]", value)]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    required = schema.get("required")
    return {
        name: _fitted(item, properties.get(name))
        for name, item in cast("dict[str, Any]", value).items()
        if item is not None or not _is_left_out(name, properties.get(name), required)
    }


def _is_left_out(name: str, schema: Any, required: Any) -> bool:
    """Whether null for an argument means that there is none."""
    if not isinstance(schema, Mapping) or (isinstance(required, list) and name in required):
        return False
    types = _types(cast("Mapping[str, Any]", schema))
    return bool(types) and "null" not in types


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a schema names, also in alternatives; none if it may be another."""
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(alternatives, list):
        types = [
            _types(part) if isinstance(part, Mapping) else frozenset() for part in alternatives
        ]
        return frozenset().union(*types) if all(types) else frozenset()
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return frozenset(name for name in cast("list[Any]", names) if isinstance(name, str))


def _from_text(text: str, types: frozenset[str]) -> Any:
    """Return the value that a text stands for where a text is not allowed; else the text."""
    if not types or "string" in types:
        return text
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        value = {"True": True, "False": False}.get(text.strip(), text)
    return value if _TYPE_OF.get(type(value)) in types or _is_number(value, types) else text


def _is_number(value: Any, types: frozenset[str]) -> bool:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return not isinstance(value, bool) and (
        (isinstance(value, int | float) and "number" in types) or (is_whole and "integer" in types)
    )


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Return the validator of a schema, cached by its JSON, since each call reads its tool anew."""
    return jsonschema_rs.validator_for(_checked_part(from_json(schema)))


def _checked_part(schema: Any) -> Any:
    """Return the part of a schema that is checked. A property with a default is not required, since
    its tool fills it in.
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else {}
    checked = {key: value for key, value in schema.items() if key in CHECKED}
    checked["items"] = _checked_part(schema.get("items"))
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict):
        properties = {}
    checked["properties"] = {name: _checked_part(value) for name, value in properties.items()}
    if isinstance(required, list):
        defaults = {
            name
            for name, value in properties.items()
            if isinstance(value, dict) and "default" in value
        }
        checked["required"] = [name for name in required if name not in defaults]
    if "patternProperties" not in schema:
        checked["additionalProperties"] = _checked_part(schema.get("additionalProperties", True))
    return checked
