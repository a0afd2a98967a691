"""The arguments of a call against the input schema of its tool, before anything is called."""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
from pydantic_core import from_json

from pegboard.records import Tool
from pegboard.serve.errors import CallProblem

CHECKED = {
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
"""Keywords that are checked beside names and required ones. Each takes time in proportion to the
arguments; references, alternatives and patterns, with which a schema can take forever, do not."""
MAX_PROBLEMS = 5
SHOWN = 300
"""Characters of one problem, and of the place where it is."""


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise CallProblem with what is wrong with the arguments, as far as that is quick to tell.

    A schema that cannot be used checks nothing: the tool itself will judge.
    """
    try:
        # Half a character, no number or 200 levels: no tool could be sent these.
        from_json(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise CallProblem(
            "invalid",
            f"The arguments are not JSON, or too deep: {error!s:.200}. {tool.id} was not called.",
        ) from None
    try:
        validator = _validator(json.dumps(dict(tool.input_schema)))
    except (TypeError, ValueError, RecursionError):
        return
    lines: list[str] = []
    for error in islice(validator.iter_errors(dict(arguments)), MAX_PROBLEMS):
        place = ".".join(str(part) for part in error.instance_path)[:SHOWN]
        lines.append(f"- {place or 'arguments'}: {error.message[:SHOWN]}")
    if lines:
        problems = "\n".join(lines)
        raise CallProblem(
            "invalid",
            f"The arguments do not fit the tool's inputSchema, and it was not called:\n{problems}",
        )


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Return the compiled check of a schema, by its JSON: each call reads its tool anew."""
    return jsonschema_rs.validator_for(_quick(from_json(schema)))


def _quick(schema: Any) -> Any:
    """Return what is checked of a schema. A property that has a default is not required: its tool
    fills it in.
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else {}
    quick = {key: value for key, value in schema.items() if key in CHECKED}
    quick["items"] = _quick(schema.get("items"))
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        properties = {}
    quick["properties"] = {name: _quick(value) for name, value in properties.items()}
    if isinstance(required, list):
        defaults = {
            name
            for name, value in properties.items()
            if isinstance(value, dict) and "default" in value
        }
        quick["required"] = [name for name in required if name not in defaults]
    if "patternProperties" not in schema:
        quick["additionalProperties"] = _quick(schema.get("additionalProperties", True))
    return quick
