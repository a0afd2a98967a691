"""The difference between two releases: tools and their texts, dependencies, indexes.

Tables whose pins are equal are not read. Of others the digests are compared first, and only rows
that differ are read whole."""

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
RECIPE = ("encoder", "fingerprint", "dimensions", "options", "parts", "shape", "questions")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a tool, old and new: a text, a JSON value, or a list, with what came and went."""

    old: Any
    new: Any
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """The dependencies of a tool that were added, removed and changed.

    Each is the id of a tool with the type, and the parameter if it is for one.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool of both releases and the fields that differ; an LLM's are named `enrichment.NAME`."""

    id: str
    fields: Mapping[str, FieldChange]


@dataclass(frozen=True, slots=True)
class IndexDiff:
    """An index of either release; `recipe` holds the settings that differ.

    `state` is `added`, `dropped`, `other recipe`, `rows` or `same`.
    """

    state: str
    recipe: Mapping[str, FieldChange] = field(default_factory=dict[str, FieldChange])


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """What differs in release `new` from `old`. Ids are sorted.

    Attributes:
        edges: of tools whose dependencies differ, by id, whether or not the tool itself does.
        counts: tools added, removed, changed, unchanged.
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
        """All of it as JSON values."""
        return asdict(self)


def diff_releases(store: ReleaseStore, old: Release, new: Release) -> ReleaseDiff:
    """Compare two releases of a board.

    Raises ContractMismatch for a release of an unknown contract, BoardNotFound if a table or
    version of one is gone."""
    for release in (old, new):
        check_contract(release.contract, release.id)
    before, after = (_digests(store, release.tables["tools"]) for release in (old, new))
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    both = before.keys() & after.keys()
    differing = sorted(tool for tool in both if before[tool] != after[tool])
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
    before, after = tools_with_kinds(store, old, ids), tools_with_kinds(store, new, ids)
    changes = (ToolChange(tool, field_changes(before[tool], after[tool])) for tool in ids)
    return [change for change in changes if change.fields]


def field_changes(old: tuple[Tool, str], new: tuple[Tool, str]) -> dict[str, FieldChange]:
    """Return the fields that differ between two states of a tool, each with its agent's kind."""
    before, after = _values(*old), _values(*new)
    return {
        name: _change(before[name], after[name])
        for name in before
        if json.dumps(before[name]) != json.dumps(after[name])
    }


def _values(tool: Tool, kind: str) -> dict[str, Any]:
    whole = replace(tool, enrichment=tool.enrichment or Enrichment())
    fields: dict[str, Any] = {"kind": kind, **asdict(whole)}
    for name in ("id", "catalog", "agent"):
        del fields[name]
    fields |= {f"enrichment.{name}": value for name, value in fields.pop("enrichment").items()}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def _change(old: Any, new: Any) -> FieldChange:
    if not isinstance(old, list) or not isinstance(new, list):
        return FieldChange(old, new)
    before, after = [_text(value) for value in old], [_text(value) for value in new]
    added = tuple(value for value in after if value not in before)
    removed = tuple(value for value in before if value not in after)
    return FieldChange(old, new, added, removed)


def _text(value: Any) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )


def tools_with_kinds(
    store: ReleaseStore, release: Release, ids: Sequence[str]
) -> dict[str, tuple[Tool, str]]:
    """Return the tools of those ids, each with its agent's kind.

    A release of an earlier contract is read with empty values for the columns that it lacks.
    """
    tools: dict[str, tuple[Tool, str]] = {}
    checked = "tools" if release.contract == CONTRACT else None
    for start in range(0, len(ids), IDS_AT_ONCE):
        where = f"id IN ({sql_literals(ids[start : start + IDS_AT_ONCE])})"
        rows = store.read_rows(release.tables["tools"], where=where, name=checked)
        for row in map(complete_tool, rows.to_pylist()):
            tools[row["id"]] = (tool_from_row(row), row["kind"])
    return tools


def _edges(store: ReleaseStore, old: Release, new: Release) -> dict[str, Changes]:
    """What differs of the dependencies of each tool."""
    pins = old.tables[EDGES], new.tables[EDGES]
    if pins[0].digest == pins[1].digest:
        return {}
    # Without their places: a tool that gains a dependency moves its others, which is no change.
    columns = ["key", "reason", "origin", "confidence", "evidence"]
    before, after = (
        {row["key"]: row for row in store.read_rows(pin, columns, name=EDGES).to_pylist()}
        for pin in pins
    )
    changed = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    changes: dict[str, dict[str, list[str]]] = {}
    for key in sorted(before.keys() ^ after.keys() | changed):
        kind = "removed" if key not in after else "changed" if key in before else "added"
        source, target, type_, parameter = (*key.split("#", 3), "", "", "")[:4]
        text = f"{target} ({type_}{f' for {parameter}' if parameter else ''})"
        changes.setdefault(source, {}).setdefault(kind, []).append(text)
    return {
        source: Changes(**{kind: tuple(edges) for kind, edges in kinds.items()})
        for source, kinds in changes.items()
    }


def _indexes(old: Release, new: Release) -> dict[str, IndexDiff]:
    before, after = old.manifest["indexes"], new.manifest["indexes"]
    diffs: dict[str, IndexDiff] = {}
    for name in sorted({*before, *after}):
        table = embedding_table(name)
        if name not in before:
            diffs[name] = IndexDiff("added")
            continue
        if name not in after:
            diffs[name] = IndexDiff("dropped")
            continue
        recipe = {
            key: FieldChange(before[name].get(key), after[name].get(key))
            for key in RECIPE
            if before[name].get(key) != after[name].get(key)
        }
        same = old.tables[table].digest == new.tables[table].digest
        state = "other recipe" if recipe else "same" if same else "rows"
        diffs[name] = IndexDiff(state, recipe)
    return diffs


def _digests(store: ReleaseStore, pin: Pin) -> dict[str, str]:
    """The digest of each tool, by its id."""
    rows = store.read_rows(pin, ["id", "digest"], name="tools")
    return dict(zip(rows.column("id").to_pylist(), rows.column("digest").to_pylist(), strict=True))


def field_lines(name: str, field: FieldChange) -> list[str]:
    """Return the name of a field with its old and new text; of lists, the items that differ."""
    lines = [name]
    for sign, value, parts in (("-", field.old, field.removed), ("+", field.new, field.added)):
        for text in parts if isinstance(value, list) else (_readable(value),):
            lines += [f"  {sign} {line}" for line in text.splitlines() or [""]]
    return lines


def _readable(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
