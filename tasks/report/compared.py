"""What changed in a release against the one before: tools by name, fields as they were and as they
are.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import FieldChange, ReleaseDiff, ToolChange, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.report.texts import LONG, SHORT, cut

PARTS = 10
"""Parts of a list, such as example requests, that are named as added or removed."""


def listed(rows: Sequence[Any], count: int) -> dict[str, Any]:
    """A list of which the first rows are shown, and all are counted."""
    return {"total": len(rows), "shown": list(rows[:count])}


def changes_data(
    store: ReleaseStore,
    release: Release,
    every: Sequence[Release],
    loaded: LoadedRelease,
    count: int,
) -> dict[str, Any]:
    """What is different in a release as against the one that was live when it was made.

    Args:
        every: all releases of the board.
        count: tools of each kind of change that are shown.
    """
    said = release.manifest.get("changes", {})
    against = said.get("against")
    if against is None:
        return _first(loaded, count)
    before = next((one for one in every if one.id == against), None)
    if before is None:
        counts = {name: said.get(key) for name, key in _COUNTED}
        why = (
            f"Release {against}, against which this one was made, was pruned; only the numbers "
            f"are known."
        )
        return {"against": against, "counts": counts, "missing": why}
    diff = diff_releases(store, before, release, neighbours=0)
    return {
        "against": against,
        "against_at": before.created_at.isoformat(timespec="seconds"),
        "counts": dict(diff.counts),
        "added": {"total": len(diff.added), "shown": _described(loaded, diff.added[:count])},
        "removed": listed([{"id": one} for one in diff.removed], count),
        "changed": listed([_changed(one) for one in diff.changed[:count]], count)
        | {"total": len(diff.changed)},
        "fields": _fields(diff),
        "edges": None if diff.edges is None else len(diff.edges),
        "indexes": [
            {
                "name": name,
                "state": one.state,
                "added": one.rows_added,
                "removed": one.rows_removed,
                "changed": one.rows_changed,
                "recipe": [_pair(field, change) for field, change in one.recipe.items()],
            }
            for name, one in diff.indexes.items()
        ],
    }


_COUNTED = (
    ("added", "new"),
    ("removed", "removed"),
    ("changed", "changed"),
    ("unchanged", "unchanged"),
)


def _first(loaded: LoadedRelease, count: int) -> dict[str, Any]:
    ids = sorted(one for one, _, _ in loaded.tool_names())
    return {
        "against": None,
        "counts": {"added": len(ids), "removed": 0, "changed": 0, "unchanged": 0},
        "added": {"total": len(ids), "shown": _described(loaded, ids[:count])},
        "removed": listed([], count),
        "changed": listed([], count),
        "fields": [],
        "edges": None,
        "indexes": [],
    }


def _described(loaded: LoadedRelease, ids: Sequence[str]) -> list[dict[str, str]]:
    tools = loaded.tools(ids)
    return [{"id": one, "description": cut(tools[one].description)} for one in ids]


def _fields(diff: ReleaseDiff) -> list[dict[str, Any]]:
    """How many tools each field differs in, most first."""
    counts: dict[str, int] = {}
    for one in diff.changed:
        for name in one.fields:
            counts[name] = counts.get(name, 0) + 1
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [{"field": name, "tools": tools} for name, tools in ranked]


def _changed(change: ToolChange) -> dict[str, Any]:
    return {"id": change.id, "fields": [_pair(name, one) for name, one in change.fields.items()]}


def _pair(name: str, change: FieldChange) -> dict[str, Any]:
    """A field as it was and as it is; of a list only what was added and removed."""
    if change.added or change.removed:
        return {
            "field": name,
            "added": [cut(one, SHORT) for one in change.added[:PARTS]],
            "removed": [cut(one, SHORT) for one in change.removed[:PARTS]],
        }
    return {"field": name, "before": _text(change.old), "after": _text(change.new)}


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return cut(str(value), LONG)
