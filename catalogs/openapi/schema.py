"""OpenAPI's schemas as JSON Schema 2020-12 that stands alone: without OpenAPI's own keywords, and
without references outside it.

A reference is written out in place, unless that never ends or grows too large; then what it names
stands once under the tool's own `$defs`. Which of the two depends on the tool's own schemas only,
so a tool's digest does not change when another operation of the document does.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from catalogs.openapi.document import Broken, References

MAX_INLINED = 500
"""Subschemas of a tool with every reference written out. Up to here a model reads it best in one
piece.
"""
MAX_SMALL = 20
"""Subschemas of a reference that is still written out in place when the whole is larger than that.
"""
MAX_PARTS = 1_000
"""Subschemas of a tool, after which a further reference is left out, and says so: in some documents
every schema leads to thousands of others. The nearest ones are written first."""
MAX_WRITTEN = 50_000
"""Subschemas of a tool; more would pass the size limit of a schema many times over."""

NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = (
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
DATA = {"type", "enum", "const", "default", "examples", "required", "dependentRequired"}
DROPPED = {"discriminator", "xml", "externalDocs", "nullable", "example"}
"""OpenAPI's own keywords, which say nothing to a validator, or which are said in another way here.
"""
IDENTITY = {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
"""Keywords of a schema's address. Every reference is resolved, and an `$id` would change what
`#/$defs/...` means.
"""
REMARKS = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
"""Keywords that describe and do not constrain, so that they may replace those of what a reference
names.
"""

Side = Literal["input", "output"]


def converted(schema: dict[str, Any], write: Callable[[Any], Any]) -> dict[str, Any]:
    """One schema in the dialect of OpenAPI 3.0 or 3.1 as JSON Schema 2020-12; `write` converts each
    subschema.
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
            out[key] = (
                # a structure under an unknown keyword may hold references, which nobody would
                # resolve
                value
            )
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
    return nullable(out) if schema.get("nullable") is True else out


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, with null allowed besides."""
    types = schema.get("type")
    if types is None and "enum" not in schema:
        remarks = {key: value for key, value in schema.items() if key in REMARKS}
        rest = {key: value for key, value in schema.items() if key not in REMARKS}
        return {**remarks, "anyOf": [rest, {"type": "null"}]} if rest else schema
    out = dict(schema)
    if types is not None:
        out["type"] = list(
            dict.fromkeys([*(types if isinstance(types, list) else [types]), "null"])
        )
    if isinstance(out.get("enum"), list) and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out


def _title(key: str) -> str:
    """The last word of a reference, as a name that needs no escape in another."""
    return (
        re.sub(r"[^\w.-]", "_", key.rpartition("/")[2].replace("~1", "_").replace("~0", "_"))
        or "Schema"
    )


def _subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            yield from value.values()
        elif key in (*LISTED, *SINGLE):
            yield from value if isinstance(value, list) else [value]


@dataclass(slots=True)
class SchemaGraph:
    """Which of a document's schemas refer to which: those that lead back to themselves, and how
    large the others grow.
    """

    refs: References
    _parts: dict[str, tuple[int, list[str]]] = field(
        default_factory=dict[str, tuple[int, list[str]]]
    )
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _cyclic: set[str] = field(default_factory=set[str])

    def size(self, schema: Any, base: str) -> int:
        """The number of subschemas with all references written out; a cyclic one counts once."""
        own, keys = self._scan(schema, base)
        for key in keys:
            self._explore(key)
        return own + sum(self._sizes[key] for key in keys)

    def is_cyclic(self, key: str) -> bool:
        self._explore(key)
        return key in self._cyclic

    def size_of(self, key: str) -> int:
        self._explore(key)
        return self._sizes[key]

    def _scan(self, schema: Any, base: str) -> tuple[int, list[str]]:
        count, keys, waiting = 0, list[str](), [schema]
        while waiting:
            current = waiting.pop()
            count += 1
            if isinstance(current, dict):
                if "$ref" in current:
                    keys.append(self.refs.key(current["$ref"], base))
                waiting.extend(_subschemas(current))
        return count, keys

    def _children(self, key: str) -> list[str]:
        if key not in self._parts:
            self._parts[key] = self._scan(self.refs.lookup(key), key.partition("#")[0])
        return self._parts[key][1]

    def _explore(self, root: str) -> None:
        """Tarjan's algorithm (1972), without recursion: it closes each circle of references after
        all that it leads to.
        """
        if root in self._sizes:
            return
        order: dict[str, int] = {root: 0}
        low: dict[str, int] = {root: 0}
        path, work = [root], [(root, iter(self._children(root)))]
        while work:
            key, children = work[-1]
            child = next((c for c in children if c not in self._sizes), None)
            if child is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[key])
                if low[key] == order[key]:
                    self._close(key, path)
            elif child in order:
                low[key] = min(low[key], order[child])
            else:
                order[child] = low[child] = len(order)
                path.append(child)
                work.append((child, iter(self._children(child))))

    def _close(self, key: str, path: list[str]) -> None:
        members = path[path.index(key) :]
        del path[path.index(key) :]
        if len(members) > 1 or key in self._children(key):
            self._cyclic.update(members)
            self._sizes.update(dict.fromkeys(members, 1))
        else:
            own, children = self._parts[key]
            self._sizes[key] = own + sum(self._sizes[child] for child in children)


@dataclass(slots=True)
class Page:
    """The schemas of one side of a tool, which share one `$defs`. `roots` are all that will be
    written on it, with their files.
    """

    graph: SchemaGraph
    side: Side
    roots: Iterable[tuple[Any, str]]
    defs: dict[str, Any] = field(default_factory=dict[str, Any])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _waiting: list[str] = field(default_factory=list[str])
    _written: int = 0
    _inlined: int = 0

    def __post_init__(self) -> None:
        total = sum(self.graph.size(schema, base) for schema, base in self.roots)
        self._inlined = MAX_INLINED if total <= MAX_INLINED else MAX_SMALL

    def write(self, schema: Any, base: str) -> Any:
        """The schema as JSON Schema, with references only to `defs`, which this completes."""
        out = self._write(schema, base)
        while self._waiting:
            key = self._waiting.pop(0)
            self.defs[self._names[key]] = self._write(
                self.graph.refs.lookup(key), key.partition("#")[0]
            )
        return out

    def _write(self, schema: Any, base: str) -> Any:
        self._written += 1
        if self._written > MAX_WRITTEN:
            raise Broken(f"its {self.side} schema has more than {MAX_WRITTEN:,} parts")
        if not isinstance(schema, dict):
            return schema
        if "$dynamicRef" in schema:
            raise Broken(
                f"its {self.side} schema has a $dynamicRef, which is not supported; name the "
                f"schema by $ref"
            )
        if "$ref" in schema:
            return self._reference(schema, base)
        bare = {key: value for key, value in schema.items() if key not in IDENTITY}
        return self._of_this_side(converted(bare, lambda item: self._write(item, base)))

    def _reference(self, schema: dict[str, Any], base: str) -> Any:
        key = self.graph.refs.key(schema["$ref"], base)
        if self.graph.is_cyclic(key) or self.graph.size_of(key) > self._inlined:
            known = key in self._names or self._written <= MAX_PARTS
            left_out = (
                f"{_title(key)}, whose schema is left out, because the whole would have "
                f"over {MAX_PARTS:,} parts."
            )
            target = {"$ref": f"#/$defs/{self._name(key)}"} if known else {"description": left_out}
        else:
            target = self._write(self.graph.refs.lookup(key), key.partition("#")[0])
        # OpenAPI 3.0 says that what stands beside a $ref is ignored; its authors mean it all the
        # same, as 3.1 does.
        beside = {name: value for name, value in schema.items() if name not in ("$ref", "nullable")}
        beside = self._write(beside, base) if beside else {}
        if not isinstance(target, dict) or not (beside.keys() <= REMARKS or "$ref" in target):
            target = {"allOf": [target, beside]} if beside else target
        else:
            target = {**target, **beside}
        return (
            nullable(target)
            if schema.get("nullable") is True and isinstance(target, dict)
            else target
        )

    def _name(self, key: str) -> str:
        if key not in self._names:
            name = _title(key)
            taken = set(self._names.values())
            number = next(
                n
                for n in range(1, len(taken) + 2)
                if (name if n == 1 else f"{name}_{n}") not in taken
            )
            self._names[key] = name if number == 1 else f"{name}_{number}"
            self._waiting.append(key)
        return self._names[key]

    def _of_this_side(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema without the properties that only the other side may have."""
        hidden = "readOnly" if self.side == "input" else "writeOnly"
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return schema
        gone = {
            name
            for name, item in properties.items()
            if isinstance(item, dict) and item.get(hidden) is True
        }
        if not gone:
            return schema
        out = {
            **schema,
            "properties": {name: item for name, item in properties.items() if name not in gone},
        }
        if isinstance(schema.get("required"), list):
            out["required"] = [name for name in schema["required"] if name not in gone]
        return out
