"""Bring a JSON Schema of any draft, however carelessly written, to valid JSON Schema 2020-12.

Model APIs validate every definition of a request, and one invalid schema fails the whole request.
What is valid already stays as it is, to the byte. Catalogs are untrusted: the walk is bounded in
depth, and takes time in proportion to the schema.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

MAX_DEPTH = 60
"""Maximum depth of nested schemas; deeper ones accept anything."""
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords whose values are lists of schemas."""
NAMED = ("properties", "patternProperties", "$defs", "dependentSchemas")
"""Keywords whose values are schemas by name."""
SINGLE = (
    *("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
"""Keywords whose value is a schema."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Schema = dict[str, Any]
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")


@dataclass(slots=True)
class Repaired:
    """A valid schema, and what had to be changed.

    Attributes:
        changes: sentences for people, each once, in the order in which they were made.
    """

    schema: Schema
    changes: list[str] = field(default_factory=list[str])


def repaired(schema: Mapping[str, Any]) -> Repaired:
    """Return a schema as valid JSON Schema 2020-12 whose references all resolve.

    - Drafts 4 to 2019 are converted: `definitions`, lists of `items`, boolean `exclusiveMinimum`,
      `dependencies`, `id`, `$recursiveRef`.
    - A reference that leads nowhere, or to another document, is removed: any value passes there.
    - Keywords with invalid values are left out, such as `"required": null`; PHP's `[]` for an
      empty object becomes one.
    - A list has `items`, and a required property is declared.
    """
    repair = _Repair(schema)
    result = repair.schema(schema, 0)
    if not isinstance(result, dict):
        result = {}
    if repair.changes:
        result.pop("$schema", None)
        result = repair.with_definitions(result)
    return Repaired(result, list(dict.fromkeys(repair.changes)))


def target_of(reference: Any, root: Any) -> Any:
    """Return what a reference within the schema `root` leads to; None if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return _anchored(root, reference[1:], MAX_DEPTH)
    value = root
    for part in reference[2:].split("/") if reference != "#" else ():
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _anchored(schema: Any, anchor: str, steps: int) -> Any:
    """Return the part of a schema with an anchor; None without one."""
    if steps < 0:
        return None
    if isinstance(schema, Mapping):
        names = (schema.get("$anchor"), schema.get("$dynamicAnchor"))
        identities = (schema.get("$id"), schema.get("id"))
        if anchor in names or f"#{anchor}" in identities:
            return schema
    parts = schema.values() if isinstance(schema, Mapping) else schema
    for part in parts if isinstance(schema, Mapping | list) else ():
        found = _anchored(part, anchor, steps - 1)
        if found is not None:
            return found
    return None


class _Repair:
    """The repair of one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.changes: list[str] = []
        self.definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._by_name: dict[str, Any] | None = None

    def schema(self, value: Any, depth: int) -> Any:
        """Return a repaired schema; a boolean where one stands and is not `true`."""
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, Mapping):
            if value == []:
                return self._changed({}, "An empty list stands where a schema is expected")
            return self._changed({}, "A schema is neither an object nor a boolean")
        if depth > MAX_DEPTH:
            return self._changed({}, f"Schemas are nested more than {MAX_DEPTH} deep")
        converted = self._current_draft(cast("Mapping[str, Any]", value))
        out: Schema = {}
        for key, member in converted.items():
            if key == "$id" and depth:
                # References below it would be relative to it.
                self.changes.append("A part of the schema has an identity of its own")
                continue
            for name, kept in self._keyword(key, member, depth):
                out[name] = kept
        if _is_array(out) and "items" not in out and "prefixItems" not in out:
            self.changes.append("A list does not say what its items are")
            out["items"] = {}
        self._declare_required(out)
        return out

    def with_definitions(self, schema: Schema) -> Schema:
        """Return a schema with the parts that moved to `$defs`."""
        if not self.definitions:
            return schema
        return {**schema, "$defs": {**schema.get("$defs", {}), **self.definitions}}

    def _changed(self, value: Any, change: str) -> Any:
        self.changes.append(change)
        return value

    def _keyword(self, key: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
        """Yield a keyword with its repaired value; nothing if it is invalid."""
        if key in NAMED:
            if isinstance(value, Mapping):
                members = cast("Mapping[str, Any]", value)
                yield (
                    key,
                    {str(name): self._member(part, depth + 1) for name, part in members.items()},
                )
            else:
                self.changes.append(f"`{key}` is not an object")
                if key == "properties":
                    yield key, {}
        elif key in LISTED:
            if isinstance(value, list) and value:
                yield key, [self._member(part, depth + 1) for part in cast("list[Any]", value)]
            else:
                self.changes.append(f"`{key}` is not a list of schemas")
        elif key in SINGLE:
            if isinstance(value, bool):
                yield key, value
            elif isinstance(value, Mapping) or value == []:
                yield key, self.schema(value, depth + 1)
            else:
                self.changes.append(f"`{key}` is not a schema")
        elif key in REFERENCES:
            yield from self._reference(key, value)
        elif key in _VALID and not _VALID[key](value):
            yield from self._invalid(key, value)
        else:
            yield key, value

    def _member(self, value: Any, depth: int) -> Any:
        if isinstance(value, bool):
            # OpenAI and Gemini take no boolean as the schema of a property.
            return self._changed(self.schema(value, depth), "A schema is a boolean")
        return self.schema(value, depth)

    def _invalid(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield what can be kept of a keyword with an invalid value."""
        self.changes.append(f"`{key}` is {value!r:.60}")
        if key == "examples":
            yield key, [value]
        elif key in ("description", "title") and isinstance(value, int | float):
            yield key, str(value)
        elif key == "type" and isinstance(value, list):
            known = [name for name in TYPES if name in value]
            if known:
                yield key, known
        elif key == "required" and isinstance(value, list):
            names = [name for name in cast("list[Any]", value) if isinstance(name, str)]
            if names:
                yield key, list(dict.fromkeys(names))

    def _current_draft(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema with the keywords of draft 2020-12."""
        if not _OLD & schema.keys() and not isinstance(schema.get("items"), list):
            return schema
        out: Schema = {}
        for key, value in schema.items():
            out |= self._converted(key, value, schema)
        if isinstance(schema.get("definitions"), Mapping):
            newer = schema.get("$defs")
            out["$defs"] = {
                **schema["definitions"],
                **(newer if isinstance(newer, Mapping) else {}),
            }
        return out

    def _converted(self, key: str, value: Any, schema: Mapping[str, Any]) -> Schema:
        """Return a keyword as draft 2020-12 writes it."""
        if key == "definitions":
            definitions = {"$defs": value} if isinstance(value, Mapping) else {}
            return self._changed(definitions, "`definitions` is an older draft's `$defs`")
        if key == "items" and isinstance(value, list):
            rest = schema.get("additionalItems")
            closed = {"items": rest} if isinstance(rest, bool | Mapping) else {}
            first = {"prefixItems": value} if value else {}
            return self._changed(first | closed, "`items` is a list, as in older drafts")
        if key == "additionalItems":
            return self._changed({}, "`additionalItems` is a keyword of older drafts")
        if key in _BOUNDS and isinstance(value, bool):
            bound = schema.get(_BOUNDS[key])
            exclusive = {key: bound} if value and _is_number(bound) else {}
            return self._changed(exclusive, f"`{key}` is a boolean, as in draft 4")
        if key in _EXCLUSIVE and schema.get(_EXCLUSIVE[key]) is True:
            return {}
        if key == "dependencies":
            newer = _dependencies(value) if isinstance(value, Mapping) else {}
            return self._changed(newer, "`dependencies` is an older draft's keyword")
        if key == "id" and isinstance(value, str) and "$id" not in schema:
            return self._changed({"$id": value}, "`id` is draft 4's `$id`")
        return {key: value}

    def _reference(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield a reference that resolves within the schema; nothing for any other."""
        if key != "$ref":
            self.changes.append(f"`{key}` is not what model APIs resolve")
        target = target_of(value, self.root)
        if isinstance(value, str) and target is None and not value.startswith("#"):
            target = self._by_identity(value)
        if target is None and isinstance(value, str):
            target = self._named(_last_part(value))
        if not isinstance(target, Mapping | bool) or not isinstance(value, str):
            self.changes.append(f"The reference {value!r:.80} leads nowhere")
            return
        if key == "$ref" and (value == "#" or _is_definition(value, self.root)):
            yield "$ref", value
            return
        if name := self._renamed_definition(value):
            yield "$ref", f"#/$defs/{name}"
            return
        if value in ("#", "") or target is self.root:
            yield "$ref", "#"
            return
        yield "$ref", f"#/$defs/{self._definition(value, target)}"

    def _renamed_definition(self, reference: str) -> str:
        """Return the name of a member of `definitions`, which becomes `$defs`; else ""."""
        keyword, _, name = reference.removeprefix("#/").partition("/")
        definitions = self.root.get("definitions")
        newer = self.root.get("$defs")
        is_free = not isinstance(newer, Mapping) or name not in newer
        is_member = isinstance(definitions, Mapping) and name in definitions
        return name if keyword == "definitions" and is_member and is_free else ""

    def _named(self, name: str) -> Any:
        """Return the definition of a name, wherever in the schema it stands."""
        if self._by_name is None:
            self._by_name = dict(_named_parts(self.root, MAX_DEPTH))
        return self._by_name.get(name)

    def _by_identity(self, reference: str) -> Any:
        """Return the definition whose `$id` a reference is."""
        base, _, anchor = reference.partition("#")
        for part in _definitions_of(self.root):
            if isinstance(part, Mapping) and base and part.get("$id", part.get("id")) == base:
                return target_of(f"#{anchor}", part)
        return self.root if base and self.root.get("$id", self.root.get("id")) == base else None

    def _definition(self, reference: str, target: Any) -> str:
        """Return the name in `$defs` of what a reference leads to; it is copied there."""
        name = self._names.get(reference)
        if name is None:
            known = {*_named_definitions(self.root), *self.definitions}
            name = _unused(_last_part(reference), known)
            self._names[reference] = name
            self.definitions[name] = {}  # where the target refers to itself
            self.definitions[name] = self.schema(target, 1)
            self.changes.append(f"The reference {reference!r:.80} does not lead to `$defs`")
        return name

    def _declare_required(self, schema: Schema) -> None:
        """Declare the required properties of an object that says all that it has."""
        properties = schema.get("properties")
        required = schema.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list):
            return
        if any(key in schema for key in ("allOf", "anyOf", "oneOf", "$ref", "patternProperties")):
            return
        missing = [name for name in cast("list[str]", required) if name not in properties]
        for name in missing:
            self.changes.append(f"The required property {name!r:.60} is not declared")
            properties[name] = {}


def _is_array(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not isinstance(value, float) or math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_names(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(cast("list[str]", value))) == len(cast("list[str]", value))


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and _is_names(value) and all(name in TYPES for name in value)
    return value in TYPES if isinstance(value, str) else False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_anchor(value: Any) -> bool:
    return isinstance(value, str) and _ANCHOR.fullmatch(value) is not None


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_VALID: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$schema", "$comment", "pattern", "format"), _is_text),
    **dict.fromkeys(("title", "description"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), _is_anchor),
    "dependentRequired": lambda value: (
        isinstance(value, Mapping) and all(map(_is_names, value.values()))
    ),
    "$vocabulary": lambda value: isinstance(value, Mapping),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "examples": lambda value: isinstance(value, list),
    "required": _is_names,
    "type": _is_type,
    "$id": lambda value: isinstance(value, str) and "#" not in value,
}
"""What a keyword's value has to be."""
_OLD = {
    *("definitions", "additionalItems", "exclusiveMinimum", "exclusiveMaximum"),
    *("dependencies", "id"),
}
"""Keywords that older drafts write in another way."""
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_EXCLUSIVE = {bound: flag for flag, bound in _BOUNDS.items()}


def _dependencies(value: Mapping[str, Any]) -> Schema:
    required = {name: part for name, part in value.items() if _is_names(part)}
    schemas = {name: part for name, part in value.items() if isinstance(part, Mapping | bool)}
    out: Schema = {"dependentRequired": required} if required else {}
    return out | ({"dependentSchemas": schemas} if schemas else {})


def _named_definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in ("definitions", "$defs"):
        if isinstance(root.get(key), Mapping):
            out |= root[key]
    return out


def _definitions_of(root: Mapping[str, Any]) -> Iterator[Any]:
    yield from _named_definitions(root).values()


def _named_parts(schema: Any, steps: int) -> Iterator[tuple[str, Any]]:
    """Yield the definitions anywhere in a schema, the outermost last."""
    if steps < 0:
        return
    parts = schema.values() if isinstance(schema, Mapping) else schema
    for part in parts if isinstance(schema, Mapping | list) else ():
        yield from _named_parts(part, steps - 1)
    if isinstance(schema, Mapping):
        yield from _named_definitions(schema).items()


def _is_definition(reference: str, root: Mapping[str, Any]) -> bool:
    """Return whether a reference leads to a member of `$defs`, under its name as it is written."""
    keyword, _, name = reference.removeprefix("#/").partition("/")
    return keyword == "$defs" and "/" not in name and name in (root.get("$defs") or {})


def _last_part(reference: str) -> str:
    name = unquote(reference.rpartition("/")[2]).replace("~1", "_").replace("~0", "_")
    return "".join(char if char.isalnum() else "_" for char in name.lstrip("#")) or "part"


def _unused(name: str, known: set[str]) -> str:
    number = 2
    candidate = name
    while candidate in known:
        candidate = f"{name}_{number}"
        number += 1
    return candidate
