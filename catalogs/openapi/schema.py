"""Convert OpenAPI schemas to JSON Schema 2020-12 without OpenAPI keywords or external references.

References are inlined, unless they are cyclic or too large; then the target is written once under
the tool's `$defs`. If the whole is too long nevertheless, no reference is inlined. The choice
depends on the tool's schemas only, so the digest of a tool does not change with other operations of
the document.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, TypeVar

from catalogs.openapi.references import References
from catalogs.openapi.subtypes import LITERALS, Subtypes, with_literals
from pegboard.canonical import canonical_json
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, flaw_of
from pegboard.foreign.limits import MAX_SCHEMA
from pegboard.schemas.openapi import (
    LISTED,
    NAMED,
    REMARKS,
    SINGLE,
    allows_null,
    nullable,
    to_json_schema,
)

MAX_INLINED = 500
"""Maximum number of subschemas of a tool for inlining every reference. Models read inlined schemas
best."""
MAX_SMALL = 20
"""Maximum number of subschemas of a reference that is inlined in a tool above MAX_INLINED."""
MAX_PARTS = 1_000
"""Number of subschemas of a tool after which further references are replaced by a note: in some
documents every schema leads to thousands of others. The nearest ones are written first."""
MAX_WRITTEN = 50_000
"""Maximum number of subschemas of a tool; more would exceed the size limit of a schema by far."""

T = TypeVar("T")
Side = Literal["input", "output"]
"""Whether a schema describes the arguments or the result of a tool."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of its references a schema writes out.

    Attributes:
        inlined: most subschemas of all references together of which each is inlined.
        small: most subschemas of a reference that is inlined in a larger schema.
        parts: subschemas after which further references are replaced by a note.
    """

    inlined: int = MAX_INLINED
    small: int = MAX_SMALL
    parts: int = MAX_PARTS


DETAILS = (
    Detail(),
    Detail(inlined=0, small=0),
    Detail(inlined=0, small=0, parts=MAX_PARTS // 10),
    Detail(inlined=0, small=0, parts=MAX_PARTS // 100),
)
"""What is tried in turn, until a schema is short enough."""


class TooLong(SourceError):
    """A schema that is too long in each detail."""


def shortened(write: Callable[[Detail], T]) -> T:
    """Return what a function writes in the first detail in which it is short enough.

    Args:
        write: writes a schema, or something with one; raises TooLong.

    Raises:
        TooLong: it is too long in each detail.
    """
    for detail in DETAILS[:-1]:
        with suppress(TooLong):
            return write(detail)
    return write(DETAILS[-1])


def check_length(schema: Any, side: Side) -> None:
    """Raise TooLong for a schema that no tool may have."""
    size = _least_size(schema)
    if MAX_SCHEMA // 2 < size <= MAX_SCHEMA:
        size = len(canonical_json(schema))
    if size > MAX_SCHEMA:
        raise TooLong(
            f"its {side} schema has more than {MAX_SCHEMA:,} characters, even with references; "
            f"shorten it"
        )


def _least_size(value: Any) -> int:
    """Return a number of characters that the JSON of a value has at least; not above MAX_SCHEMA by
    much, since inlined references may make it long beyond measure.
    """
    size = 0
    pending = [value]
    while pending and size <= MAX_SCHEMA:
        part = pending.pop()
        if isinstance(part, dict):
            size += sum(map(len, part)) + 4 * len(part)
            pending += part.values()
        elif isinstance(part, list):
            size += len(part)
            pending += part
        else:
            size += len(part) if isinstance(part, str) else 1
    return size


IDENTITY = {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
"""Keywords that identify schemas. They are dropped because references are resolved, and an `$id`
would change the meaning of `#/$defs/...`."""


def _title(key: str) -> str:
    """Return the last segment of a reference, as a name that needs no escaping in a reference."""
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
    """References between the schemas of a document: which are cyclic, and the size of others.

    Attributes:
        subtypes: the subtypes that references to their base mean; None for no such references.
    """

    refs: References
    subtypes: Subtypes | None = None
    _parts: dict[str, tuple[int, list[str]]] = field(
        default_factory=dict[str, tuple[int, list[str]]]
    )
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _cyclic: set[str] = field(default_factory=set[str])

    def size(self, schema: Any, base: str) -> int:
        """Return the number of subschemas with references inlined; cyclic references count once."""
        subschema_count, keys = self._scan(schema, base)
        for key in keys:
            self._explore(key)
        return subschema_count + sum(self._sizes[key] for key in keys)

    def ends_within(self, key: str, size: int) -> bool:
        self._explore(key)
        return key not in self._cyclic and self._sizes[key] <= size

    def key(self, reference: Mapping[str, Any], base: str, holder: Any) -> str:
        """Return the absolute form of what a `$ref` means.

        Args:
            holder: the schema that has the reference.
        """
        key = self.refs.key(reference["$ref"], base)
        return self.subtypes.key(key, reference, holder) if self.subtypes else key

    def lookup(self, key: str) -> Any:
        """Return what a key of this graph leads to."""
        return self.subtypes.lookup(key) if self.subtypes else self.refs.lookup(key)

    def follow(self, part: Any, base: str, holder: Any = None) -> tuple[Any, str]:
        """Return the part itself or what its `$ref` means, and the file that contains it."""
        if self.subtypes and isinstance(part, dict) and "$ref" in part:
            key = self.key(part, base, holder)
            uri = key.partition("#")[0]
            if key != self.refs.key(part["$ref"], base):
                return self.lookup(key), uri
            target = self.lookup(key)
            if isinstance(target, dict) and "$ref" in target:
                return self.refs.follow(target, uri)
            return target, uri
        return self.refs.follow(part, base)

    def _scan(self, schema: Any, base: str) -> tuple[int, list[str]]:
        """Return the number of subschemas, and the keys of the references among them."""
        subschema_count = 0
        keys: list[str] = []
        pending: list[tuple[Any, Any]] = [(schema, None)]
        while pending:
            current, holder = pending.pop()
            subschema_count += 1
            if isinstance(current, dict):
                if "$ref" in current:
                    keys.append(self.key(current, base, holder))
                pending.extend((part, current) for part in _subschemas(current))
        return subschema_count, keys

    def _children(self, key: str) -> list[str]:
        if key not in self._parts:
            self._parts[key] = self._scan(self.lookup(key), key.partition("#")[0])
        return self._parts[key][1]

    def _explore(self, root: str) -> None:
        """Measure a reference and everything reachable from it; members of a cycle count once."""
        if root in self._sizes:
            return

        def unmeasured(key: str) -> Iterator[str]:
            return (child for child in self._children(key) if child not in self._sizes)

        for members in _strong_components(root, unmeasured):
            key = members[0]
            subschema_count, children = self._parts[key]
            if len(members) > 1 or key in children:
                self._cyclic.update(members)
                self._sizes.update(dict.fromkeys(members, 1))
            else:
                referenced = sum(self._sizes[child] for child in children)
                self._sizes[key] = subschema_count + referenced


def _strong_components(
    root: str, successors: Callable[[str], Iterable[str]]
) -> Iterator[list[str]]:
    """Yield the strongly connected components reachable from a root, each after its successors.

    Tarjan, "Depth-first search and linear graph algorithms", 1972; iterative, since paths may be
    longer than the recursion limit.
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
    """Writes the input or output schemas of a tool, which share one `$defs`.

    Args:
        roots: all schemas that will be written, with the URIs of their files.
        detail: how much of the references is written out.

    Attributes:
        defs: the definitions that the schemas refer to.
        left_out: names of the definitions that are replaced by a note.
    """

    graph: SchemaGraph
    side: Side
    roots: Iterable[tuple[Any, str]]
    detail: Detail = Detail()
    defs: dict[str, Any] = field(default_factory=dict[str, Any])
    left_out: dict[str, None] = field(default_factory=dict[str, None])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _numbers: dict[str, "count[int]"] = field(default_factory=dict[str, "count[int]"])
    _waiting: list[str] = field(default_factory=list[str])
    _written: int = 0
    _inlined: int = 0

    def __post_init__(self) -> None:
        total = sum(self.graph.size(schema, base) for schema, base in self.roots)
        is_small = total <= self.detail.inlined
        self._inlined = self.detail.inlined if is_small else self.detail.small

    def write(self, schema: Any, base: str) -> Any:
        """Return the schema as JSON Schema that refers only to `defs`, and add to `defs`."""
        out = self._write(schema, base)
        while self._waiting:
            key = self._waiting.pop(0)
            self.defs[self._names[key]] = self._write(self.graph.lookup(key), key.partition("#")[0])
        return out

    def _write(self, schema: Any, base: str, holder: Any = None) -> Any:
        self._written += 1
        if self._written > MAX_WRITTEN:
            raise TooLong(
                f"its {self.side} schema has more than {MAX_WRITTEN:,} parts; describe less, or "
                f"split it"
            )
        if isinstance(schema, RepeatedNames):
            raise SourceError(str(flaw_of(schema)))
        if not isinstance(schema, dict):
            return schema
        if "$dynamicRef" in schema:
            raise SourceError(
                f"its {self.side} schema has a $dynamicRef, which is not supported; use $ref"
            )
        if "$ref" in schema:
            return self._reference(schema, base, holder)
        subtypes = self.graph.subtypes
        marked = subtypes.marked(schema, base) if subtypes else schema
        bare = {key: value for key, value in marked.items() if key not in IDENTITY}
        return self._of_this_side(
            to_json_schema(bare, lambda item: self._write(item, base, schema))
        )

    def _reference(self, schema: dict[str, Any], base: str, holder: Any) -> Any:
        key = self.graph.key(schema, base, holder)
        if not self.graph.ends_within(key, self._inlined):
            described = key in self._names or self._written <= self.detail.parts
            if not described:
                self.left_out[_title(key)] = None
            left_out = (
                f"{_title(key)}, whose schema is left out, because the whole would have "
                f"over {self.detail.parts:,} parts."
            )
            target = (
                {"$ref": f"#/$defs/{self._name(key)}"} if described else {"description": left_out}
            )
        else:
            target = self._write(self.graph.lookup(key), key.partition("#")[0])
        if LITERALS in schema and isinstance(target, dict):
            target = with_literals(target, *schema[LITERALS])
        # OpenAPI 3.0 ignores siblings of a $ref, but authors mean them, and 3.1 allows them.
        own = ("$ref", "nullable", "x-nullable")
        siblings = {key: value for key, value in schema.items() if key not in own}
        siblings = self._write(siblings, base) if siblings else {}
        if not isinstance(target, dict) or not (siblings.keys() <= REMARKS or "$ref" in target):
            target = {"allOf": [target, siblings]} if siblings else target
        else:
            target = {**target, **siblings}
        return nullable(target) if allows_null(schema) and isinstance(target, dict) else target

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
        """Return the schema without properties of the other side (`readOnly` or `writeOnly`)."""
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
