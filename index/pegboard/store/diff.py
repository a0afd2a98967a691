"""The difference between two releases: tools and their texts, dependencies, indexes.

Tables with equal pins are not read. For other tables the digests of rows are compared first, and
only rows that differ are read in full."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pegboard.records import Enrichment, Tool
from pegboard.store.contract import (
    CONTRACT,
    EDGES,
    check_contract,
    complete_tool,
    embedding_table,
)
from pegboard.store.database import sql_literals
from pegboard.store.releases import Pin, Release, ReleaseStore
from pegboard.store.rows import tool_from_row

IDS_AT_ONCE = 1_000
"""Maximum number of ids in one query."""
RECIPE = ("encoder", "fingerprint", "dimensions", "options", "parts", "shape", "questions")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The old and the new value of a field.

    Attributes:
        old, new: a text, another JSON value, or a list.
        added, removed: the items of a list that differ.
    """

    old: Any
    new: Any
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """The dependencies of a tool that were added, removed and changed.

    A dependency is given as the id of the tool it depends on, with its type and, if it has one, its
    parameter.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool of both releases and the fields that differ, by name. Fields that an LLM wrote are
    named `enrichment.NAME`.
    """

    id: str
    fields: Mapping[str, FieldChange]


@dataclass(frozen=True, slots=True)
class IndexDiff:
    """The difference of an index.

    Attributes:
        state: `added`, `dropped`, `other recipe`, `rows` or `same`.
        recipe: the settings that differ.
    """

    state: str
    recipe: Mapping[str, FieldChange] = field(default_factory=dict[str, FieldChange])


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """The difference between the releases `old` and `new`. Ids are sorted.

    Attributes:
        edges: the differences in dependencies, by the dependent tool's id, also of tools that have
            no other difference.
        counts: the number of tools added, removed, changed and unchanged.
    """

    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ToolChange, ...]
    indexes: Mapping[str, IndexDiff]
    counts: Mapping[str, int]
    edges: Mapping[str, Changes]

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        return asdict(self)


def diff_releases(store: ReleaseStore, old: Release, new: Release) -> ReleaseDiff:
    """Compare two releases of a board.

    Raises ContractMismatch for a release of an unknown contract, BoardNotFound if a table or
    version was removed."""
    for release in (old, new):
        check_contract(release.contract, release.id)
    old_digests = _digests(store, old.tables["tools"])
    new_digests = _digests(store, new.tables["tools"])
    added = sorted(new_digests.keys() - old_digests.keys())
    removed = sorted(old_digests.keys() - new_digests.keys())
    both = old_digests.keys() & new_digests.keys()
    differing = sorted(tool for tool in both if old_digests[tool] != new_digests[tool])
    changed = _changes(store, old, new, differing)
    return ReleaseDiff(
        old=old.id,
        new=new.id,
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        indexes=_indexes(old, new),
        counts={
            "added": len(added),
            "removed": len(removed),
            "changed": len(changed),
            "unchanged": len(both) - len(changed),
        },
        edges=_edges(store, old, new),
    )


def _changes(
    store: ReleaseStore, old: Release, new: Release, ids: Sequence[str]
) -> list[ToolChange]:
    old_tools = tools_with_kinds(store, old, ids)
    new_tools = tools_with_kinds(store, new, ids)
    changes = (ToolChange(tool, field_changes(old_tools[tool], new_tools[tool])) for tool in ids)
    return [change for change in changes if change.fields]


def field_changes(old: tuple[Tool, str], new: tuple[Tool, str]) -> dict[str, FieldChange]:
    """Return the fields that differ between two states of a tool, each given with its agent's
    kind.
    """
    old_values = _values(*old)
    new_values = _values(*new)
    return {
        name: _change(old_values[name], new_values[name])
        for name in old_values
        if json.dumps(old_values[name]) != json.dumps(new_values[name])
    }


def _values(tool: Tool, kind: str) -> dict[str, Any]:
    enriched = replace(tool, enrichment=tool.enrichment or Enrichment())
    fields: dict[str, Any] = {"kind": kind, **asdict(enriched)}
    for name in ("id", "catalog", "agent"):
        del fields[name]
    fields |= {f"enrichment.{name}": value for name, value in fields.pop("enrichment").items()}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def _change(old: Any, new: Any) -> FieldChange:
    if not isinstance(old, list) or not isinstance(new, list):
        return FieldChange(old, new)
    old_items = [_text(value) for value in old]
    new_items = [_text(value) for value in new]
    added = tuple(item for item in new_items if item not in old_items)
    removed = tuple(item for item in old_items if item not in new_items)
    return FieldChange(old, new, added, removed)


def _text(value: Any) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )


def tools_with_kinds(
    store: ReleaseStore, release: Release, ids: Sequence[str]
) -> dict[str, tuple[Tool, str]]:
    """Return the tools with these ids, each with its agent's kind.

    A release of an earlier contract is read with empty values for the columns that it lacks.
    """
    tools: dict[str, tuple[Tool, str]] = {}
    contract_table = "tools" if release.contract == CONTRACT else None
    for start in range(0, len(ids), IDS_AT_ONCE):
        where = f"id IN ({sql_literals(ids[start : start + IDS_AT_ONCE])})"
        rows = store.read_rows(release.tables["tools"], where=where, name=contract_table)
        for row in map(complete_tool, rows.to_pylist()):
            tools[row["id"]] = (tool_from_row(row), row["kind"])
    return tools


def _edges(store: ReleaseStore, old: Release, new: Release) -> dict[str, Changes]:
    """Return the differences in the dependencies of each tool."""
    if old.tables[EDGES].digest == new.tables[EDGES].digest:
        return {}
    old_edges = _edges_by_key(store, old.tables[EDGES])
    new_edges = _edges_by_key(store, new.tables[EDGES])
    both = old_edges.keys() & new_edges.keys()
    changed = {key for key in both if old_edges[key] != new_edges[key]}
    changes: dict[str, dict[str, list[str]]] = {}
    for key in sorted(old_edges.keys() ^ new_edges.keys() | changed):
        if key not in new_edges:
            kind = "removed"
        elif key in old_edges:
            kind = "changed"
        else:
            kind = "added"
        source, target, type_, parameter = (*key.split("#", 3), "", "", "")[:4]
        text = f"{target} ({type_}{f' for {parameter}' if parameter else ''})"
        changes.setdefault(source, {}).setdefault(kind, []).append(text)
    return {
        source: Changes(**{kind: tuple(edges) for kind, edges in kinds.items()})
        for source, kinds in changes.items()
    }


def _indexes(old: Release, new: Release) -> dict[str, IndexDiff]:
    old_indexes = old.manifest["indexes"]
    new_indexes = new.manifest["indexes"]
    diffs: dict[str, IndexDiff] = {}
    for name in sorted({*old_indexes, *new_indexes}):
        table = embedding_table(name)
        if name not in old_indexes:
            diffs[name] = IndexDiff("added")
            continue
        if name not in new_indexes:
            diffs[name] = IndexDiff("dropped")
            continue
        recipe = {
            key: FieldChange(old_indexes[name].get(key), new_indexes[name].get(key))
            for key in RECIPE
            if old_indexes[name].get(key) != new_indexes[name].get(key)
        }
        if recipe:
            state = "other recipe"
        elif old.tables[table].digest == new.tables[table].digest:
            state = "same"
        else:
            state = "rows"
        diffs[name] = IndexDiff(state, recipe)
    return diffs


def _edges_by_key(store: ReleaseStore, pin: Pin) -> dict[str, dict[str, Any]]:
    """Return the rows of `edges` by key, without their order: a new dependency moves the others of
    its tool, which does not count as a change.
    """
    columns = ["key", "reason", "origin", "confidence", "evidence"]
    rows = store.read_rows(pin, columns, name=EDGES)
    return {row["key"]: row for row in rows.to_pylist()}


def _digests(store: ReleaseStore, pin: Pin) -> dict[str, str]:
    """Return the digest of each tool, by its id."""
    rows = store.read_rows(pin, ["id", "digest"], name="tools")
    return dict(zip(rows.column("id").to_pylist(), rows.column("digest").to_pylist(), strict=True))


def field_lines(name: str, field: FieldChange) -> list[str]:
    """Return lines with the name of a field and its old and new text; for lists, the items that
    differ.
    """
    lines = [name]
    for sign, value, items in (("-", field.old, field.removed), ("+", field.new, field.added)):
        texts = items if isinstance(value, list) else (_readable(value),)
        for text in texts:
            lines += [f"  {sign} {line}" for line in text.splitlines() or [""]]
    return lines


def _readable(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
