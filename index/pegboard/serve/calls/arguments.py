"""Check of the arguments of a call against the input schema of its tool, before the call."""

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
"""Keywords that are checked, besides names and required properties. Checking each one takes time in
proportion to the arguments. References, alternatives and patterns can take forever, and are not
checked."""
MAX_PROBLEMS = 5
"""Most problems that an error lists."""
MAX_PROBLEM = 300
"""Most characters of a problem, and of the place where it is."""


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise CallProblem if the arguments do not match the tool's schema, as far as `CHECKED` says.

    Nothing is checked against an invalid schema: the tool itself decides.
    """
    try:
        # Lone surrogates, NaN and 200 levels of nesting cannot be sent to any tool.
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
        place = ".".join(str(part) for part in error.instance_path)[:MAX_PROBLEM]
        lines.append(f"- {place or 'arguments'}: {error.message[:MAX_PROBLEM]}")
    if lines:
        problems = "\n".join(lines)
        raise CallProblem(
            "invalid",
            f"The arguments do not fit the tool's inputSchema, and it was not called:\n{problems}",
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
