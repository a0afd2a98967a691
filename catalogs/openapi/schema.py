"""OpenAPI's schemas as JSON Schema 2020-12 that stands alone: without OpenAPI's own keywords, and
without references outside it.

A reference is written out in place, unless that never ends or grows too large; then what it names
stands once under the tool's own `$defs`. Which of the two depends on the tool's own schemas only,
so a tool's digest does not change when another operation of the document does.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from catalogs.openapi.document import References
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, flaw_of
from pegboard.schemas.openapi import LISTED, NAMED, REMARKS, SINGLE, nullable, to_json_schema

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

IDENTITY = {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
"""Keywords of a schema's address. Every reference is resolved, and an `$id` would change what
`#/$defs/...` means.
"""
Side = Literal["input", "output"]


def _title(key: str) -> str:
    """Return the last word of a reference, as a name that needs no escape in another."""
    word = key.rpartition("/")[2].replace("~1", "_").replace("~0", "_")
    return re.sub(r"[^\w.-]", "_", word) or "Schema"


def _subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            yield from value.values()
        elif key in (*LISTED, *SINGLE):
            yield from value if isinstance(value, list) else [value]


@dataclass(slots=True)
class SchemaGraph:
    """Which schemas of a document refer to which: cyclic ones, and the sizes of the others."""

    refs: References
    _parts: dict[str, tuple[int, list[str]]] = field(
        default_factory=dict[str, tuple[int, list[str]]]
    )
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _cyclic: set[str] = field(default_factory=set[str])

    def size(self, schema: Any, base: str) -> int:
        """Return the number of subschemas with references written out; cyclic ones count once."""
        own, keys = self._scan(schema, base)
        for key in keys:
            self._explore(key)
        return own + sum(self._sizes[key] for key in keys)

    def ends_within(self, key: str, size: int) -> bool:
        self._explore(key)
        return key not in self._cyclic and self._sizes[key] <= size

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
        """Measure a reference and all that it leads to; the members of a circle count once."""
        if root in self._sizes:
            return

        def unmeasured(key: str) -> Iterator[str]:
            return (child for child in self._children(key) if child not in self._sizes)

        for members in _strong_components(root, unmeasured):
            key = members[0]
            own, children = self._parts[key]
            if len(members) > 1 or key in children:
                self._cyclic.update(members)
                self._sizes.update(dict.fromkeys(members, 1))
            else:
                self._sizes[key] = own + sum(self._sizes[child] for child in children)


def _strong_components(
    root: str, successors: Callable[[str], Iterable[str]]
) -> Iterator[list[str]]:
    """Yield the strongly connected components reachable from a root, each after its successors.

    Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion, since paths
    may be long.
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    pending: dict[str, None] = {}
    walk: list[tuple[str, Iterator[str]]] = []

    def enter(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        pending[node] = None
        walk.append((node, iter(successors(node))))

    enter(root)
    while walk:
        node, targets = walk[-1]
        target = next((item for item in targets if item not in numbers or item in pending), None)
        if target is None:
            walk.pop()
            if walk:
                lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
            if lowest[node] == numbers[node]:
                members: list[str] = []
                while not members or members[-1] != node:
                    members.append(pending.popitem()[0])
                yield members
        elif target in numbers:
            lowest[node] = min(lowest[node], numbers[target])
        else:
            enter(target)


@dataclass(slots=True)
class SchemaWriter:
    """Writes the schemas of one side of a tool, which share one `$defs`.

    Args:
        roots: all schemas that will be written, with their files.
    """

    graph: SchemaGraph
    side: Side
    roots: Iterable[tuple[Any, str]]
    defs: dict[str, Any] = field(default_factory=dict[str, Any])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _numbers: dict[str, "count[int]"] = field(default_factory=dict[str, "count[int]"])
    _waiting: list[str] = field(default_factory=list[str])
    _written: int = 0
    _inlined: int = 0

    def __post_init__(self) -> None:
        total = sum(self.graph.size(schema, base) for schema, base in self.roots)
        self._inlined = MAX_INLINED if total <= MAX_INLINED else MAX_SMALL

    def write(self, schema: Any, base: str) -> Any:
        """Return the schema as JSON Schema, with references only to `defs`, which it fills."""
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
            raise SourceError(
                f"its {self.side} schema has more than {MAX_WRITTEN:,} parts; describe less, or "
                f"split it"
            )
        if isinstance(schema, RepeatedNames):
            raise SourceError(flaw_of(schema))
        if not isinstance(schema, dict):
            return schema
        if "$dynamicRef" in schema:
            raise SourceError(
                f"its {self.side} schema has a $dynamicRef, which is not supported; name the "
                f"schema by $ref"
            )
        if "$ref" in schema:
            return self._reference(schema, base)
        bare = {key: value for key, value in schema.items() if key not in IDENTITY}
        return self._of_this_side(to_json_schema(bare, lambda item: self._write(item, base)))

    def _reference(self, schema: dict[str, Any], base: str) -> Any:
        key = self.graph.refs.key(schema["$ref"], base)
        if not self.graph.ends_within(key, self._inlined):
            described = key in self._names or self._written <= MAX_PARTS
            left_out = (
                f"{_title(key)}, whose schema is left out, because the whole would have "
                f"over {MAX_PARTS:,} parts."
            )
            target = (
                {"$ref": f"#/$defs/{self._name(key)}"} if described else {"description": left_out}
            )
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
        is_nullable = schema.get("nullable") is True and isinstance(target, dict)
        return nullable(target) if is_nullable else target

    def _name(self, key: str) -> str:
        if key not in self._names:
            name = title = _title(key)
            while name in self._numbers:
                name = f"{title}_{next(self._numbers[title])}"
            self._numbers[name] = count(2)
            self._names[key] = name
            self._waiting.append(key)
        return self._names[key]

    def _of_this_side(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema without the properties that only the other side may have."""
        hidden = "readOnly" if self.side == "input" else "writeOnly"
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return schema
        hidden_names = {name for name, item in properties.items() if has_flag(item, hidden)}
        if not hidden_names:
            return schema
        shown = {name: item for name, item in properties.items() if name not in hidden_names}
        out = {**schema, "properties": shown}
        if isinstance(schema.get("required"), list):
            out["required"] = [name for name in schema["required"] if name not in hidden_names]
        return out


def has_flag(schema: Any, flag: str) -> bool:
    return isinstance(schema, dict) and schema.get(flag) is True
