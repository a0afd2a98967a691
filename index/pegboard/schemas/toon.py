"""Tool definitions as TOON (Token-Oriented Object Notation): a table of arguments for each tool.

    tools[1]:
      - name: convert_currency
        description: "Converts an amount, at today's rate."
        arguments[2]{name,type,description}:
          amount,number,How much
          to?,EUR|USD,The currency to convert to

Field names stand once for all rows, which is where TOON saves tokens; a JSON Schema written as TOON
would repeat them. An argument with `?` is optional. Arguments of an object follow it as
`address.street`, those of a list's items as `lines[].amount`. Bounds, patterns, defaults and
examples are left out. Every text is quoted where the format wants it, so that no description can
pass for another tool.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pegboard.schemas.for_models import object_schema, referenced

MAX_DEPTH = 4
"""Objects within objects whose arguments are listed."""
MAX_ARGUMENTS = 500
"""Of one tool: parts of a schema may be referred to from many places."""
_QUOTED = re.compile(
    r"^$|^\s|\s$|^-|^(true|false|null)$|^\d[\d.eE+-]*$"
    r'|[:,"\\\[\]{}\x00-\x1f\x7f-\x9f\u2028\u2029]'
)
_ESCAPED = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029]')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Schema = Mapping[str, Any]


def toon_definitions(tools: Sequence[tuple[str, str, Schema]]) -> str:
    """Return tools, each a name, a description and an input schema, as one TOON document."""
    lines = [f"tools[{len(tools)}]:"]
    for name, description, schema in tools:
        lines += [f"  - name: {_text(name)}", f"    description: {_text(description)}"]
        whole = object_schema(schema)
        rows = list(islice(_rows(whole, whole, "", frozenset()), MAX_ARGUMENTS))
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
    """Name, type and description of each argument; `inside` has the references that led here."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or prefix.count(".") == MAX_DEPTH:
        return
    needed: set[Any] = set(required) if isinstance(required, list | tuple) else set()
    for name, declared in properties.items():
        part, path = _resolved(declared, root), f"{prefix}{name}"
        own: Any = declared.get("description") if isinstance(declared, Mapping) else None
        description = " ".join(str(own or part.get("description") or "").split())
        yield path if name in needed else f"{path}?", _type(part, root), description
        for inner, place in ((declared, path), (part.get("items"), f"{path}[]")):
            reference = str(inner.get("$ref", "")) if isinstance(inner, Mapping) else ""
            if not reference or reference not in inside:
                below = inside | {reference} if reference else inside
                yield from _rows(_resolved(inner, root), root, f"{place}.", below)


def _type(schema: Schema, root: Schema, depth: int = MAX_DEPTH) -> str:
    """A type in a word: `integer`, `a|b` of an enumeration, `string[]`, `string|null`."""
    if isinstance(values := schema.get("enum"), list | tuple):
        return "|".join(map(str, values))
    if "const" in schema:
        return str(schema["const"])
    for keyword in ("anyOf", "oneOf"):
        if depth and isinstance(parts := schema.get(keyword), list | tuple):
            types = (_type(_resolved(part, root), root, depth - 1) for part in parts)
            return "|".join(dict.fromkeys(types))
    own: Any = schema.get("type")
    if isinstance(own, list | tuple):
        return "|".join(map(str, own))
    if own == "array":
        items = _resolved(schema.get("items"), root)
        return f"{_type(items, root, depth - 1) if depth else 'any'}[]"
    return str(own or ("object" if "properties" in schema else "any"))


def _resolved(schema: Any, root: Schema) -> Schema:
    """The schema, or what it refers to within the tool's; empty for what is no object."""
    if isinstance(schema, Mapping) and "$ref" in schema:
        schema = referenced(schema["$ref"], root)
    return schema if isinstance(schema, Mapping) else {}


def _text(text: str) -> str:
    if not _QUOTED.search(text):
        return text
    return f'"{_ESCAPED.sub(lambda match: _ESCAPES.get(match[0], " "), text)}"'


def typescript_signature(name: str, schema: Schema) -> str:
    """Return how a tool is called, as a function of TypeScript: `add(list: string, note?: string)`.

    Descriptions are left out; objects are written to two levels.
    """
    whole = object_schema(schema)
    return f"{name}({_members(whole, whole, ', ', 2)})"


def _members(schema: Schema, root: Schema, separator: str, depth: int) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed: set[Any] = set(required) if isinstance(required, list | tuple) else set()
    return separator.join(
        f"{key}{'' if key in needed else '?'}: {_typescript(_resolved(part, root), root, depth)}"
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
