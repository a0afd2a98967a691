"""Write tool definitions as TOON (Token-Oriented Object Notation): a table of arguments per tool.

    tools[1]:
      - name: convert_currency
        description: "Converts an amount, at today's rate."
        arguments[2]{name,type,description}:
          amount,number,How much
          to?,EUR|USD,The currency to convert to

TOON saves tokens by writing field names once for all rows; a JSON Schema written as TOON would
repeat them. `?` marks optional arguments. Members of an object follow it as `address.street`,
members of list items as `lines[].amount`. Bounds, patterns, defaults and examples are left out.
Texts are quoted where the format requires it, so that a description cannot imitate another tool.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pegboard.schemas.for_models import named_for_models, referenced

MAX_DEPTH = 4
"""Maximum depth of nested objects whose members are listed."""
MAX_ARGUMENTS = 500
"""Maximum number of arguments of one tool, since a schema may refer to its parts many times."""
_QUOTED = re.compile(
    r"^$|^\s|\s$|^-|^(true|false|null)$|^\d[\d.eE+-]*$"
    r'|[:,"\\\[\]{}\x00-\x1f\x7f-\x9f\u2028\u2029]'
)
"""Matches texts that must be quoted."""
_ESCAPED = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029]')
"""Matches characters that must be escaped within quotes."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""Escape sequences by character; other escaped characters become a space."""

Schema = Mapping[str, Any]


def toon_definitions(tools: Sequence[tuple[str, str, Schema]]) -> str:
    """Return one TOON document of tools, each given by name, description and input schema."""
    lines = [f"tools[{len(tools)}]:"]
    for name, description, schema in tools:
        lines += [f"  - name: {_text(name)}", f"    description: {_text(description)}"]
        root = named_for_models(schema)
        rows = list(islice(_rows(root, root, "", frozenset()), MAX_ARGUMENTS))
        described = any(description for _, _, description in rows)
        if rows:
            columns = "name,type,description" if described else "name,type"
            lines.append(f"    arguments[{len(rows)}]{{{columns}}}:")
        for row in rows:
            lines.append(f"      {','.join(map(_text, row if described else row[:2]))}")
    return "\n".join(lines)


def _rows(
    schema: Schema, root: Schema, prefix: str, inside: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of each argument.

    Args:
        inside: the references on the path from the root, which are not followed again.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or prefix.count(".") == MAX_DEPTH:
        return
    required = _required_names(schema)
    for name, declared in properties.items():
        part = _resolved(declared, root)
        path = f"{prefix}{name}"
        text: Any = declared.get("description") if isinstance(declared, Mapping) else None
        description = " ".join(str(text or part.get("description") or "").split())
        yield path if name in required else f"{path}?", _type(part, root), description
        for inner, place in ((declared, path), (part.get("items"), f"{path}[]")):
            reference = str(inner.get("$ref", "")) if isinstance(inner, Mapping) else ""
            if not reference or reference not in inside:
                below = inside | {reference} if reference else inside
                yield from _rows(_resolved(inner, root), root, f"{place}.", below)


def _type(schema: Schema, root: Schema, depth: int = MAX_DEPTH) -> str:
    """Return a short type: `integer`, `a|b` for an enumeration, `string[]`, `string|null`."""
    if isinstance(values := schema.get("enum"), list | tuple):
        return "|".join(map(str, values))
    if "const" in schema:
        return str(schema["const"])
    for keyword in ("anyOf", "oneOf"):
        if depth and isinstance(parts := schema.get(keyword), list | tuple):
            types = (_type(_resolved(part, root), root, depth - 1) for part in parts)
            return "|".join(dict.fromkeys(types))
    kind: Any = schema.get("type")
    if isinstance(kind, list | tuple):
        return "|".join(map(str, kind))
    if kind == "array":
        items = _resolved(schema.get("items"), root)
        return f"{_type(items, root, depth - 1) if depth else 'any'}[]"
    return str(kind or ("object" if "properties" in schema else "any"))


def _required_names(schema: Schema) -> set[Any]:
    required = schema.get("required")
    return set(required) if isinstance(required, list | tuple) else set()


def _resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema, or the target of its `$ref`; empty if that is not an object."""
    if isinstance(schema, Mapping) and "$ref" in schema:
        schema = referenced(schema["$ref"], root)
    return schema if isinstance(schema, Mapping) else {}


def _text(text: str) -> str:
    if not _QUOTED.search(text):
        return text
    return f'"{_ESCAPED.sub(lambda match: _ESCAPES.get(match[0], " "), text)}"'


def typescript_signature(name: str, schema: Schema) -> str:
    """Return the signature of a tool in TypeScript: `add(list: string, note?: string)`.

    Descriptions are left out; objects are written to a depth of two.
    """
    root = named_for_models(schema)
    return f"{name}({_members(root, root, ', ', 2)})"


def _members(schema: Schema, root: Schema, separator: str, depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    required = _required_names(schema)
    return separator.join(
        f"{key}{'' if key in required else '?'}: {_typescript(_resolved(part, root), root, depth)}"
        for key, part in islice(properties.items(), MAX_ARGUMENTS)
    )


def _typescript(schema: Schema, root: Schema, depth: int) -> str:
    if isinstance(values := schema.get("enum"), list | tuple):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if schema.get("type") == "array":
        items = _resolved(schema.get("items"), root)
        inner = _typescript(items, root, depth) if depth else "any"
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if depth and isinstance(schema.get("properties"), Mapping):
        return f"{{ {_members(schema, root, '; ', depth - 1)} }}"
    return _type(schema, root).replace("integer", "number").replace("|", " | ")
