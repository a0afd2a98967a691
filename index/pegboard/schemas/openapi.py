"""OpenAPI's schema dialect, 3.0 and 3.1, as JSON Schema 2020-12."""

from collections.abc import Callable
from typing import Any

NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
"""Keywords whose values are objects from names to schemas."""
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords whose values are lists of schemas."""
SINGLE = (
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
"""Keywords whose value is a schema, or in old drafts a list of schemas."""
DATA = {"type", "enum", "const", "default", "examples", "required", "dependentRequired"}
"""Keywords whose values are data, and copied unchanged."""
DROPPED = {"discriminator", "xml", "externalDocs", "nullable", "example"}
"""OpenAPI keywords that are dropped: they do not validate, or are converted to other keywords."""
REMARKS = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
"""Keywords that describe without constraining; next to a reference, they replace the target's."""


def to_json_schema(schema: dict[str, Any], write: Callable[[Any], Any]) -> dict[str, Any]:
    """Convert one schema of OpenAPI 3.0 or 3.1 to JSON Schema 2020-12.

    Args:
        write: converts each subschema.
    """
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in DROPPED or key.startswith("x-"):
            continue
        if key in NAMED and isinstance(value, dict):
            out[key] = {name: write(item) for name, item in value.items()}
        elif key in (*LISTED, *SINGLE):
            out[key] = [write(item) for item in value] if isinstance(value, list) else write(value)
        elif key in DATA or not isinstance(value, dict | list):
            # Structures under unknown keywords are dropped, since references in them would remain.
            out[key] = value
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(out.get(exclusive), bool) and out.pop(exclusive) and limit in out:
            out[exclusive] = out.pop(limit)
    if isinstance(out.get("examples"), dict):
        out["examples"] = [
            item.get("value") if isinstance(item, dict) else item
            for item in out["examples"].values()
        ]
    if "example" in schema and "examples" not in out:
        out["examples"] = [schema["example"]]
    return nullable(out) if allows_null(schema) else out


def allows_null(schema: dict[str, Any]) -> bool:
    """Return whether a schema says `nullable`, or `x-nullable` as in Swagger 2."""
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with null allowed, too."""
    types = schema.get("type")
    if types is None and "enum" not in schema:
        remarks = {key: value for key, value in schema.items() if key in REMARKS}
        rest = {key: value for key, value in schema.items() if key not in REMARKS}
        return {**remarks, "anyOf": [rest, {"type": "null"}]} if rest else schema
    out = dict(schema)
    if types is not None:
        listed = types if isinstance(types, list) else [types]
        out["type"] = list(dict.fromkeys([*listed, "null"]))
    if isinstance(out.get("enum"), list) and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out
