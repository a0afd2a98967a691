"""Subtypes of a schema with a `discriminator`: which there are, and which value stands for which.

Two forms are in use. A base has a `discriminator`, and its subtypes refer to it in `allOf`; then a
reference to the base means any of them. Or a `oneOf` lists the subtypes beside a `discriminator`.
Both become a union: a `oneOf` of marked references. See the OpenAPI Specification 3.1, "Composition
and Inheritance", and for `x-ms-discriminator-value` the extensions of AutoRest.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from catalogs.openapi.references import References
from pegboard.errors import SourceError

UNION = "x-pegboard-union"
"""Member of a union: the property whose value says which subtype is meant."""
LITERALS = "x-pegboard-literals"
"""Member of a reference in a union: the property, and its values for this subtype."""
VALUE = "x-ms-discriminator-value"
"""Member of a subtype that has the value for it."""
MARK = "^"
"""Begins the fragment of the key of a union; what follows is that of its base."""
MAX_INHERITED = 20
"""Levels of `allOf` that are searched for a property."""


@dataclass(frozen=True, slots=True)
class Union:
    """The subtypes of a base.

    Attributes:
        subtypes: the identities of the subtypes' schemas, which refer to the base as such.
    """

    schema: Mapping[str, Any]
    subtypes: frozenset[int]


@dataclass(slots=True)
class Subtypes:
    """Finds the subtypes of the schemas of a document."""

    refs: References
    _unions: dict[str, Union | None] = field(default_factory=dict[str, Union | None])
    _children: dict[str, dict[str, list[str]]] = field(
        default_factory=dict[str, dict[str, list[str]]]
    )

    def key(self, key: str, reference: Mapping[str, Any], holder: Any) -> str:
        """Return the key of the union that a reference means; else its own key.

        Args:
            key: the absolute form of the reference.
            holder: the schema that has the reference, directly or in a list.
        """
        if LITERALS in reference:
            return key
        if key not in self._unions:
            self._unions[key] = None  # where a subtype refers to the base again
            self._unions[key] = self._union(key)
        union = self._unions[key]
        if union is None or id(holder) in union.subtypes:
            return key
        uri, _, fragment = key.partition("#")
        return f"{uri}#{MARK}{fragment}"

    def lookup(self, key: str) -> Any:
        """Return a union by its key, or the target of any other key."""
        uri, _, fragment = key.partition("#")
        union = self._unions.get(f"{uri}#{fragment.removeprefix(MARK)}")
        if union is not None and fragment.startswith(MARK):
            return union.schema
        return self.refs.lookup(key)

    def marked(self, schema: Mapping[str, Any], base: str) -> Mapping[str, Any]:
        """Return a schema with a `discriminator` that has a `mapping`, with the values at the
        alternatives that do not state them.
        """
        name, mapping = _discriminator(schema)
        keyword = next((key for key in ("oneOf", "anyOf") if key in schema), "")
        alternatives = schema.get(keyword)
        if not name or not mapping or not isinstance(alternatives, list):
            return schema
        values = self._mapped(mapping, base)
        marked = [self._with_values(part, base, name, values) for part in alternatives]
        if marked == alternatives:
            return schema
        is_complete = all(isinstance(part, dict) and LITERALS in part for part in marked)
        return {**schema, keyword: marked} | ({UNION: name} if is_complete else {})

    def property_of(self, schema: Any, base: str, name: str) -> dict[str, Any]:
        """Return the schema of a property of an object, also if it is inherited; {} without."""
        return next((item for item in self._declared(schema, base, name, MAX_INHERITED)), {})

    def _declared(self, schema: Any, base: str, name: str, levels: int) -> Iterator[dict[str, Any]]:
        schema, base = self.refs.follow(schema, base)
        if not isinstance(schema, dict) or not levels:
            return
        properties = schema.get("properties")
        if isinstance(properties, dict) and name in properties:
            item, _ = self.refs.follow(properties[name], base)
            if isinstance(item, dict):
                yield item
        parents = schema.get("allOf")
        for parent in parents if isinstance(parents, list) else ():
            yield from self._declared(parent, base, name, levels - 1)

    def _with_values(self, part: Any, base: str, name: str, values: Mapping[str, list[str]]) -> Any:
        if not (isinstance(part, dict) and "$ref" in part):
            return part
        key = self.refs.key(part["$ref"], base)
        declared = list(self._declared(part, base, name, MAX_INHERITED))
        if key not in values or any("enum" in item or "const" in item for item in declared):
            return part
        return {**part, LITERALS: (name, values[key])}

    def _union(self, key: str) -> Union | None:
        """Return the union of a base with a `discriminator`, if it has subtypes by inheritance."""
        schema = self.refs.lookup(key)
        base = key.partition("#")[0]
        if not isinstance(schema, dict) or "oneOf" in schema or "anyOf" in schema:
            return None
        name, mapping = _discriminator(schema)
        if not name:
            return None
        values = self._mapped(mapping, base)
        subtypes = {sub: self.refs.lookup(sub) for sub in self._inherited(key)}
        values = self._implied(subtypes, values)
        if not values.keys() - {key}:
            return None
        alternatives = [{"$ref": sub, LITERALS: (name, texts)} for sub, texts in values.items()]
        known = [*subtypes.values(), *(self.refs.lookup(sub) for sub in values if sub != key)]
        texts = {member: schema[member] for member in ("title", "description") if member in schema}
        return Union({**texts, "oneOf": alternatives, UNION: name}, frozenset(map(id, known)))

    def _mapped(self, mapping: Mapping[str, Any], base: str) -> dict[str, list[str]]:
        """Return the values of a mapping by the keys of their subtypes, of those that exist."""
        values: dict[str, list[str]] = {}
        for value, target in mapping.items():
            with suppress(SourceError):
                named = self._named(base).get(target) if isinstance(target, str) else None
                key = named or self.refs.key(target, base)
                if isinstance(self.refs.lookup(key), dict):
                    values.setdefault(key, []).append(value)
        return values

    def _implied(
        self, subtypes: Mapping[str, Any], mapped: Mapping[str, list[str]]
    ) -> dict[str, list[str]]:
        """Return the values with those of subtypes that no mapping has: what they state, or else
        their names. Beside others that state it, one without is abstract.
        """
        values = {**mapped}
        stated = {key: part[VALUE] for key, part in subtypes.items() if VALUE in part}
        for key in subtypes:
            if key in values:
                continue
            if isinstance(stated.get(key), str):
                values[key] = [stated[key]]
            elif not stated and not (mapped and self._children_of(key)):
                values[key] = [key.rpartition("/")[2]]
        return values

    def _inherited(self, key: str) -> list[str]:
        """Return the keys of all schemas that refer to a base in `allOf`, also indirectly."""
        found: dict[str, None] = {}
        pending = self._children_of(key)
        while pending:
            child = pending.pop(0)
            if child not in found and child != key:
                found[child] = None
                pending += self._children_of(child)
        return [*found]

    def _children_of(self, key: str) -> list[str]:
        uri = key.partition("#")[0]
        if uri not in self._children:
            children: dict[str, list[str]] = {}
            for child in self._named(uri).values():
                with suppress(SourceError):
                    part = self.refs.lookup(child)
                    parents = part.get("allOf") if isinstance(part, dict) else None
                    for parent in parents if isinstance(parents, list) else ():
                        if isinstance(parent, dict) and "$ref" in parent:
                            parent_key = self.refs.key(parent["$ref"], uri)
                            children.setdefault(parent_key, []).append(child)
            self._children[uri] = children
        return [*self._children[uri].get(key, ())]

    def _named(self, uri: str) -> dict[str, str]:
        """Return the keys of the named schemas of a document."""
        document = self.refs.lookup(f"{uri}#")
        names: dict[str, str] = {}
        for place in ("components/schemas", "definitions"):
            holder = document
            for part in place.split("/"):
                holder = holder.get(part) if isinstance(holder, dict) else None
            for name in holder if isinstance(holder, dict) else ():
                escaped = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
                names[name] = f"{uri}#/{place}/{escaped}"
        return names


def with_literals(target: dict[str, Any], name: str, values: list[str]) -> dict[str, Any]:
    """Return the written schema of a subtype, with the values that stand for it."""
    literal = {"enum": values}
    properties = target.get("properties")
    required = target.get("required")
    if "$ref" in target or not isinstance(required or [], list):
        return {"allOf": [target, {"properties": {name: literal}, "required": [name]}]}
    properties = properties if isinstance(properties, dict) else {}
    declared = properties.get(name)
    declared = declared if isinstance(declared, dict) else {"type": "string"}
    rest = {key: value for key, value in declared.items() if key != "const"}
    return {
        **target,
        "properties": {**properties, name: {**rest, **literal}},
        "required": list(dict.fromkeys([*(required or ()), name])),
    }


def _discriminator(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the property of a `discriminator`, and its mapping; in Swagger 2 it is a text."""
    discriminator = schema.get("discriminator")
    if isinstance(discriminator, str):
        return discriminator, {}
    if not isinstance(discriminator, dict):
        return "", {}
    name = discriminator.get("propertyName")
    mapping = discriminator.get("mapping")
    return (
        name if isinstance(name, str) else "",
        mapping if isinstance(mapping, dict) else {},
    )
