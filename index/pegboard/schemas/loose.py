"""Convert loosely written parameters to JSON Schema: lists of parameters, and types such as `str`,
`List[int]` or `bool, optional`.

Nothing is dropped: unknown type names become `x-type`, and unknown keywords are kept."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

TYPES: dict[str, str] = {
    **dict.fromkeys(
        ("string", "str", "text", "char", "varchar", "uuid", "url", "uri", "email", "path"),
        "string",
    ),
    **dict.fromkeys(("integer", "int", "int32", "int64", "long", "short"), "integer"),
    **dict.fromkeys(
        ("number", "float", "float32", "float64", "double", "decimal", "numeric"), "number"
    ),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "set", "sequence"), "array"),
    **dict.fromkeys(
        ("object", "dict", "dictionary", "map", "mapping", "json", "hashmap"), "object"
    ),
    **dict.fromkeys(("null", "none", "nonetype"), "null"),
}
"""JSON Schema type by loose type name, in lower case."""
FORMATS = {
    "date": "date",
    "datetime": "date-time",
    "date-time": "date-time",
    "timestamp": "date-time",
    "time": "time",
}
"""JSON Schema `format` of a string by loose type name, in lower case."""
ANYTHING = {"any", "", "enum", "unknown", "mixed", "var", "typing.any"}
"""Type names that allow any value; an enum lists its values in a separate keyword."""
MAX_TYPE = 1_000
"""Maximum characters of a type name that is parsed; longer ones become `x-type`."""
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Keywords whose values are objects from names to schemas."""
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords whose values are lists of schemas."""
SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
"""Keywords whose value is a schema."""


class Unusable(Exception):
    """A text or value that cannot be converted to a schema, and why."""


def loose_object(value: Any, required: Any = None) -> dict[str, Any] | None:
    """Return the schema of an object; None for an empty value.

    Args:
        value: a JSON Schema, a list of named parameters, or a mapping of names to types or schemas;
            or one of these as JSON text.
        required: the names of required members, as a list or as JSON text, for sources that list
            them separately.

    Raises Unusable for anything else.
    """
    value = _decoded(value)
    if value in (None, ""):
        return None
    if isinstance(value, Mapping) and _is_schema(value):
        schema = _schema(dict(value))
        names: list[str] = []
    elif isinstance(value, Mapping):
        schema, names = _object(dict(value).items())
    elif isinstance(value, list):
        schema, names = _object(_named(item, number) for number, item in enumerate(value))
    else:
        raise Unusable(
            f"it is {value!r:.80}, expected a JSON Schema, a list of parameters or a mapping of "
            f"names"
        )
    if names := list(dict.fromkeys([*schema.get("required", []), *names, *_names(required)])):
        schema["required"] = names
    return schema


def mended(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a loosely written schema as valid JSON Schema: type names, flags and repeated names in
    `required`, and members that are null are corrected.

    Raises Unusable for a property that is neither a schema nor the name of a type.

    Example:
        >>> mended({"properties": {"a": {"type": "str", "required": True}}, "title": None})
        {'properties': {'a': {'type': 'string'}}, 'required': ['a']}
    """
    return _schema(dict(schema))


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object's schema unchanged. Wrap any other schema in an object as `result`, with
    FastMCP's mark.
    """
    if "object" in str(schema.get("type", "object")):
        return schema
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


def loose_type(text: str) -> dict[str, Any]:
    """Return the schema of a type name; unknown names become `x-type`."""
    if len(text) > MAX_TYPE:
        return {"x-type": text}
    name = " ".join(text.split()).strip("`'\"")
    lower = re.sub(r",? ?\(?optional\)?$", "", name.lower()).strip()
    lower = lower.removeprefix("typing.").removeprefix("builtins.")
    if lower in TYPES:
        return {"type": TYPES[lower]}
    if lower in FORMATS:
        return {"type": "string", "format": FORMATS[lower]}
    if lower in ANYTHING:
        return {}
    if match := re.fullmatch(
        r"(?:list|array|sequence|set|tuple|iterable)(?: ?\[(.+)\]| ?<(.+)>| of (.+?)s?)", lower
    ):
        inner = next(group for group in match.groups() if group)
        return (
            {"type": "array", "items": loose_type(inner)}
            if "," not in inner
            else {"type": "array", "x-type": name}
        )
    if match := re.fullmatch(r"(\w+)\[\]", lower):
        return {"type": "array", "items": loose_type(match[1])}
    if re.fullmatch(r"(?:dict|map|mapping)\s*[\[<].+[\]>]", lower):
        return {"type": "object"}
    if match := re.fullmatch(r"optional\[(.+)\]", lower):
        return _union([match[1], "null"], name)
    if "|" in lower or " or " in lower:
        return _union(re.split(r" ?\| ?| or ", lower), name)
    return {"x-type": name}


def _union(names: Iterable[str], original: str) -> dict[str, Any]:
    parts = [loose_type(name) for name in names]
    types = [part["type"] for part in parts if part.keys() == {"type"}]
    return (
        {"type": list(dict.fromkeys(types))} if len(types) == len(parts) else {"x-type": original}
    )


def _is_schema(value: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a schema; if not, its keys are parameters (even `type`)."""
    if any(isinstance(value.get(key), str) for key in ("$ref", "$schema")):
        return True
    members = value.get("properties", {})
    named = isinstance(members, Mapping) and all(
        isinstance(item, Mapping | bool) for item in members.values()
    )
    if isinstance(value.get("type"), str | list):
        kind = TYPES.get(value["type"].lower()) if isinstance(value["type"], str) else "object"
        # Alone, {"type": "str"} is a parameter named `type`.
        return named and (kind == "object" or (kind is not None and len(value) > 1))
    return ("properties" in value and named) or any(
        isinstance(value.get(key), list) for key in LISTED
    )


def _object(members: Iterable[tuple[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, spec in members:
        if name in properties:
            raise Unusable(f"it has the parameter {name!r} twice")
        properties[name], is_required = _member(name, spec)
        if is_required:
            required.append(name)
    return {"type": "object", "properties": properties}, required


def _named(item: Any, number: int) -> tuple[str, Any]:
    if isinstance(item, str) and item.strip():
        return item.strip(), {}
    rest = dict(item) if isinstance(item, Mapping) else {}
    name = rest.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise Unusable(f"its parameter {number} has no name: {item!r:.80}")
    return name.strip(), rest


def _member(name: str, spec: Any) -> tuple[Any, bool]:
    """Return the schema of one parameter, and whether it is required."""
    if spec is None or isinstance(spec, bool):
        return {}, False
    if isinstance(spec, str):
        kind = loose_type(spec)
        return ({"description": spec} if "x-type" in kind else kind), False
    if not isinstance(spec, Mapping):
        raise Unusable(f"the parameter {name!r} is {spec!r:.80}, expected a type or an object")
    rest = dict(spec)
    flag = rest.get("required")
    is_required = flag is True or (
        isinstance(flag, str) and flag.strip().lower() in ("true", "yes", "required")
    )
    if not isinstance(flag, list):
        rest.pop("required", None)
    return _schema(rest), is_required


def _schema(spec: dict[str, Any]) -> dict[str, Any]:
    """Convert loose type names at every level, and single values where a list is expected."""
    out: dict[str, Any] = {}
    flagged: list[str] = []
    for key, value in spec.items():
        if key == "properties" and isinstance(value, Mapping):
            members = {
                name: (item, False) if isinstance(item, bool) else _member(name, item)
                for name, item in value.items()
            }
            out[key] = {name: item for name, (item, _) in members.items()}
            flagged = [name for name, (_, needed) in members.items() if needed]
        elif key in NAMED and isinstance(value, Mapping):
            out[key] = {
                name: _schema(dict(item)) if isinstance(item, Mapping) else item
                for name, item in value.items()
            }
        elif key in LISTED and isinstance(value, list):
            out[key] = [
                _schema(dict(item)) if isinstance(item, Mapping) else item for item in value
            ]
        elif key in SINGLE and isinstance(value, Mapping):
            out[key] = _schema(dict(value))
        elif key == "items" and isinstance(value, str):
            out[key] = loose_type(value)
        elif key == "type" and isinstance(value, str):
            out |= {
                name: item
                for name, item in loose_type(value).items()
                if name not in spec or name == "type"
            }
        elif key == "type" and isinstance(value, list):
            out |= _union(map(str, value), str(value))
        elif key == "choices" and isinstance(value, list) and "enum" not in spec:
            out["enum"] = value
        elif key == "enum" and not isinstance(value, list):
            if value not in (None, ""):
                out["enum"] = (
                    [part.strip() for part in value.split(",")]
                    if isinstance(value, str)
                    else [value]
                )
        elif (key == "example" and "examples" not in spec) or (
            key == "examples" and not isinstance(value, list)
        ):
            out["examples"] = [value]
        elif key == "required" and isinstance(value, bool):
            continue  # a flag of a property, which its parent has read
        elif value is not None or key in ("default", "const"):
            out[key] = value
    names = out.get("required", [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        out |= {"required": list(dict.fromkeys([*names, *flagged]))} if names or flagged else {}
    return out


def _names(required: Any) -> list[str]:
    required = _decoded(required, comma=True)
    if required is None or required == "":
        return []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise Unusable(f"its required names are {required!r:.80}, expected a list of names")
    return required


def _decoded(value: Any, comma: bool = False) -> Any:
    if not isinstance(value, str) or not value.strip():
        return value
    if comma and not value.lstrip().startswith("["):
        return [name.strip() for name in value.split(",") if name.strip()]
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"expected JSON text, got text that is not JSON: {error}") from None
