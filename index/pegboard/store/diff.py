"""What is different between two releases: tools, the words they are found by, their dependencies
and neighbours, and the indexes.

Tables whose pins are equal are not read. Of others the digests are compared first, and only rows
that differ are read whole."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease, tool_from_row
from pegboard.store.contract import EDGES, check_contract, embedding_table, key_column
from pegboard.store.database import sql_literals, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY_ROWS = 50_000
"""Indexes up to this many rows are read to find neighbours; larger ones are asked."""
NEIGHBOURS_OF = 1_000
"""Tools whose neighbours are looked up: a release in which more differ is another board."""
KEYS_AT_ONCE = 1_000
RECIPE = ("encoder", "fingerprint", "dimensions", "options", "parts", "shape", "questions")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a tool, as it was and as it is: a text, a JSON value, or a list, of which `added`
    and `removed` are parts.
    """

    old: Any
    new: Any
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The tools that came among the nearest ones of a tool, and those that went, nearest first."""

    gained: tuple[str, ...]
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeChanges:
    """What a tool came to depend on, what it no longer does, and what is said otherwise: ids of
    tools, each with the dependency's type, and with the parameter for which it is needed if it is
    needed for one."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool that both releases have, with the fields that differ; what was written about it is
    `enrichment.<field>`.
    """

    id: str
    fields: Mapping[str, FieldChange]


@dataclass(frozen=True, slots=True)
class IndexDiff:
    """An index of either release: `added`, `dropped`, `other recipe` (with what differs of it),
    `rows` or `same`.
    """

    state: str
    recipe: Mapping[str, FieldChange] = field(default_factory=dict[str, FieldChange])
    rows_added: int = 0
    rows_removed: int = 0
    rows_changed: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """What is different in release `new` as against `old`. Ids are sorted.

    Attributes:
        neighbours: of changed and added tools, by id; only those whose neighbours differ.
        edges: of tools whose dependencies differ, by id, whether or not the tool itself does.
        neighbours_by: the index by which they were found, or None if the releases have none that
            can be compared.
        counts: tools added, removed, changed, unchanged.
    """

    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ToolChange, ...]
    neighbours: Mapping[str, Neighbours]
    neighbours_by: str | None
    indexes: Mapping[str, IndexDiff]
    counts: Mapping[str, int]
    edges: Mapping[str, EdgeChanges]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def diff_releases(
    store: ReleaseStore, old: Release, new: Release, neighbours: int = 5
) -> ReleaseDiff:
    """Compare two releases of a board.

    Args:
        neighbours: how many nearest tools of each changed or added tool are compared; 0 for none.

    Raises ContractMismatch for a release of an unknown contract, BoardNotFound if a table or
    version of one is gone."""
    for release in (old, new):
        check_contract(release.contract)
    before, after = (_column(store, one.tables["tools"], "id", "digest") for one in (old, new))
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    differing = sorted(one for one in before.keys() & after.keys() if before[one] != after[one])
    changed = _changes(store, old, new, differing)
    index = _comparable_index(old, new) if neighbours else None
    ids = [*(one.id for one in changed), *added]
    near = _neighbours(store, old, new, index, ids[:NEIGHBOURS_OF], neighbours) if index else {}
    return ReleaseDiff(
        old=old.id,
        new=new.id,
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        neighbours=near,
        neighbours_by=index,
        indexes=_indexes(store, old, new),
        counts={
            "added": len(added),
            "removed": len(removed),
            "changed": len(changed),
            "unchanged": len(before.keys() & after.keys()) - len(changed),
        },
        edges=_edges(store, old, new),
    )


def _changes(
    store: ReleaseStore, old: Release, new: Release, ids: Sequence[str]
) -> list[ToolChange]:
    before, after = _tools(store, old, ids), _tools(store, new, ids)
    changes = (ToolChange(one, _fields(before[one], after[one])) for one in ids)
    return [change for change in changes if change.fields]


def _fields(old: tuple[Tool, str], new: tuple[Tool, str]) -> dict[str, FieldChange]:
    before, after = _values(*old), _values(*new)
    return {
        name: _change(before[name], after[name])
        for name in before
        if json.dumps(before[name]) != json.dumps(after[name])
    }


def _values(tool: Tool, kind: str) -> dict[str, Any]:
    written = tool.enrichment.to_dict() if tool.enrichment else {}
    blank: dict[str, Any] = {
        "description": "",
        "avoid": "",
        "arguments": {},
        "questions": [],
        "topics": [],
    }
    return {
        "name": tool.name,
        "kind": kind,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "tags": list(tool.tags),
        "examples": list(tool.examples),
        "dependencies": [asdict(one) for one in tool.dependencies],
        "flags": list(tool.flags),
        **{f"enrichment.{name}": written.get(name, nothing) for name, nothing in blank.items()},
    }


def _change(old: Any, new: Any) -> FieldChange:
    if not isinstance(old, list) or not isinstance(new, list):
        return FieldChange(old, new)
    before, after = [_text(one) for one in old], [_text(one) for one in new]
    added, removed = (
        [one for one in after if one not in before],
        [one for one in before if one not in after],
    )
    return FieldChange(old, new, tuple(added), tuple(removed))


def _text(value: Any) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )


def _tools(
    store: ReleaseStore, release: Release, ids: Sequence[str]
) -> dict[str, tuple[Tool, str]]:
    """The tools of those ids, each with its kind."""
    found: dict[str, tuple[Tool, str]] = {}
    for start in range(0, len(ids), KEYS_AT_ONCE):
        where = f"id IN ({sql_literals(ids[start : start + KEYS_AT_ONCE])})"
        for row in _read(store, release.tables["tools"], where=where).to_pylist():
            found[row["id"]] = tool_from_row(row), row["kind"]
    return found


def _edges(store: ReleaseStore, old: Release, new: Release) -> dict[str, EdgeChanges]:
    """What differs of the dependencies of each tool."""
    pins = old.tables[EDGES], new.tables[EDGES]
    if pins[0].digest == pins[1].digest:
        return {}
    before, after = (_column(store, pin, key_column(EDGES), "digest") for pin in pins)
    both = [key for key in sorted(before.keys() & after.keys()) if before[key] != after[key]]
    said = [_said(store, pin, both) for pin in pins]
    # Of a tool that needs one more, others have only another place.
    differing = before.keys() ^ after.keys() | {
        key for key in both if said[0].get(key) != said[1].get(key)
    }
    found: dict[str, dict[str, list[str]]] = {}
    for key in sorted(differing):
        kind = "removed" if key not in after else "changed" if key in before else "added"
        source, target, type_, parameter = key.split("#", 3)
        needed = f"{target} ({type_}{f' for {parameter}' if parameter else ''})"
        found.setdefault(source, {}).setdefault(kind, []).append(needed)
    return {
        source: EdgeChanges(**{kind: tuple(said) for kind, said in kinds.items()})
        for source, kinds in found.items()
    }


def _said(store: ReleaseStore, pin: Pin, keys: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """What the edges of those keys say besides their keys, but for their places."""
    columns, found = (
        ["key", "reason", "origin", "confidence", "evidence"],
        dict[str, tuple[Any, ...]](),
    )
    for start in range(0, len(keys), KEYS_AT_ONCE):
        where = f"key IN ({sql_literals(keys[start : start + KEYS_AT_ONCE])})"
        rows = _read(store, pin, columns, where)
        for key, *rest in zip(*(rows.column(name).to_pylist() for name in columns), strict=True):
            found[key] = tuple(rest)
    return found


def _comparable_index(old: Release, new: Release) -> str | None:
    """The default index, if both releases have it from the same encoder."""
    name = new.manifest["default_index"]
    before, after = old.manifest["indexes"].get(name), new.manifest["indexes"][name]
    same = before is not None and before["fingerprint"] == after["fingerprint"]
    return name if same and old.manifest["default_index"] == name else None


def _neighbours(
    store: ReleaseStore, old: Release, new: Release, index: str, ids: Sequence[str], count: int
) -> dict[str, Neighbours]:
    before, after = (_nearest(store, release, index, ids, count) for release in (old, new))
    found: dict[str, Neighbours] = {}
    for one in ids:
        then, now = before.get(one, ()), after.get(one, ())
        gained, lost = (
            tuple(x for x in now if x not in then),
            tuple(x for x in then if x not in now),
        )
        if gained or lost:
            found[one] = Neighbours(gained, lost)
    return found


def _nearest(
    store: ReleaseStore, release: Release, index: str, ids: Sequence[str], count: int
) -> dict[str, tuple[str, ...]]:
    """The nearest tools of each of those that the release has: by the vector of the tool's first
    row.
    """
    import numpy as np

    if not ids:
        return {}
    pin, vectors = release.tables[embedding_table(index)], dict[str, Any]()
    for start in range(0, len(ids), KEYS_AT_ONCE):
        where = f"tool IN ({sql_literals(ids[start : start + KEYS_AT_ONCE])})"
        rows = _read(store, pin, ["key", "tool", "vector"], where).sort_by("key").to_pylist()
        for row in rows:
            # `description` and `document` come first, before `question` and `topics`, but after
            # `arguments`.
            if row["tool"] not in vectors or "#arguments#" in vectors[row["tool"]][0]:
                vectors[row["tool"]] = row["key"], row["vector"]
    searched = LoadedRelease(store, release, IN_MEMORY_ROWS).index(index)
    return {
        tool: tuple(
            near.tool
            for near in searched.vector(np.asarray(vector, np.float32), count + 1, None)
            if near.tool != tool
        )[:count]
        for tool, (_, vector) in vectors.items()
    }


def _indexes(store: ReleaseStore, old: Release, new: Release) -> dict[str, IndexDiff]:
    before, after = old.manifest["indexes"], new.manifest["indexes"]
    found: dict[str, IndexDiff] = {}
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            rows = (new if name in after else old).tables[embedding_table(name)].rows
            found[name] = (
                IndexDiff("added", rows_added=rows)
                if name in after
                else IndexDiff("dropped", rows_removed=rows)
            )
            continue
        recipe = {
            key: FieldChange(before[name].get(key), after[name].get(key))
            for key in RECIPE
            if before[name].get(key) != after[name].get(key)
        }
        table = embedding_table(name)
        added, removed, changed = _rows(store, old.tables[table], new.tables[table])
        state = "other recipe" if recipe else "rows" if added or removed or changed else "same"
        found[name] = IndexDiff(state, recipe, added, removed, changed)
    return found


def _rows(store: ReleaseStore, old: Pin, new: Pin) -> tuple[int, int, int]:
    """How many rows were added, removed and changed."""
    if old.digest == new.digest:
        return 0, 0, 0
    before, after = _column(store, old, "key", "digest"), _column(store, new, "key", "digest")
    changed = sum(before[key] != after[key] for key in before.keys() & after.keys())
    return len(after.keys() - before.keys()), len(before.keys() - after.keys()), changed


def _column(store: ReleaseStore, pin: Pin, key: str, column: str) -> dict[str, str]:
    rows = _read(store, pin, [key, column])
    return dict(zip(rows.column(key).to_pylist(), rows.column(column).to_pylist(), strict=True))


def _read(
    store: ReleaseStore, pin: Pin, columns: Iterable[str] | None = None, where: str | None = None
) -> "pa.Table":
    table = store.read_table(pin.table, pin.version)
    with store_errors(store.uri):
        return table.read(list(columns) if columns is not None else None, where)
