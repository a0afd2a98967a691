"""A tool as a row of text: what the lake keeps of it, and its digest, with each part written as
canonical JSON only once.

Canonical JSON is most of what listing a large catalog costs, and the same text is measured,
checked, stored and hashed."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, overload

from pegboard.canonical import canonical_json
from pegboard.records import Tool
from pegboard.store.contract import CATALOG_TOOL, tool_fields

T = TypeVar("T")
_TEXT = json.JSONEncoder(ensure_ascii=False)
_COLUMNS = (*(column.name for column in CATALOG_TOOL if column.name != "kind"), "digest")


class Packed(Sequence[T]):
    """Values of rows that stay packed until they are used: a listing may have a million."""

    def __init__(self, packed: Sequence[bytes], make: Callable[[bytes], T]) -> None:
        self.packed, self._make = packed, make

    def __len__(self) -> int:
        return len(self.packed)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...

    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return tuple(map(self._make, self.packed[at]))
        return self._make(self.packed[at])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self.packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return repr(tuple(self))


def packed_row(row: Mapping[str, Any], where: str = "") -> bytes:
    """Return a row of `tool_row` as one text, with its place in the source."""
    return json.dumps([*(row[name] for name in _COLUMNS), where]).encode()


def unpacked_row(packed: bytes) -> dict[str, Any]:
    """Return the row of a `packed_row`."""
    return dict(zip(_COLUMNS, json.loads(packed), strict=False))


def place_of(packed: bytes) -> str:
    """Return the place in the source of a `packed_row`."""
    return str(json.loads(packed)[-1])


def unpacked_tool(packed: bytes) -> Tool:
    """Return the tool of a `packed_row`."""
    return tool_of(unpacked_row(packed))


def tool_row(tool: Tool, written: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The columns of a tool but for its agent's kind. `digest` is the tool's own; see `row_digest`.

    Args:
        written: what is known already of the canonical JSON of `input_schema`, `output_schema` and
            `annotations`, by these names.
    """
    known = written or {}
    texts = {
        "input_schema": known.get("input_schema") or _json(tool.input_schema),
        "output_schema": known.get("output_schema") or _json(tool.output_schema),
        "annotations": known.get("annotations") or _json(tool.annotations),
        "examples": _json(list(tool.examples)),
        "tags": _json(sorted(set(tool.tags))),
    }
    edges = _json([[one.tool, one.type, one.parameter, one.reason] for one in tool.dependencies])
    said = [_TEXT.encode(tool.id), _TEXT.encode(tool.name), _TEXT.encode(tool.description)]
    said += [
        texts["input_schema"],
        texts["output_schema"],
        texts["annotations"],
        texts["examples"],
        edges,
        texts["tags"],
    ]
    return {
        "id": tool.id,
        "catalog": tool.catalog,
        "agent": tool.agent,
        "name": tool.name,
        "description": tool.description,
        "input_schema": texts["input_schema"],
        "output_schema": None if tool.output_schema is None else texts["output_schema"],
        "annotations": texts["annotations"],
        "dependencies": _json([asdict(one) for one in tool.dependencies]),
        "examples": list(tool.examples),
        "tags": list(tool.tags),
        "digest": hashlib.sha256(
            f"[{','.join(said)}]".encode("utf-8", "surrogatepass")
        ).hexdigest(),
    }


def tool_of(row: Mapping[str, Any]) -> Tool:
    """The tool of a row, also of one with more columns."""
    return Tool(**tool_fields(row))


def _json(value: Any) -> str:
    # Most tools have no output schema, annotations, examples, dependencies or tags.
    if value is None:
        return "null"
    return canonical_json(value) if value else "[]" if isinstance(value, list) else "{}"


def row_digest(tool_digest: str, kind: str) -> str:
    """The digest of a stored row: of what its catalog says of the tool, and of its agent's kind.

    Equal to `pegboard.canonical.digest(tool_digest, kind)`; neither has a character that JSON would
    escape."""
    return hashlib.sha256(f'["{tool_digest}","{kind}"]'.encode()).hexdigest()
