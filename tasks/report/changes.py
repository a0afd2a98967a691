"""What changed in a release against the one that was live when it was made."""

import json
from collections.abc import Sequence
from typing import Any

from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import FieldChange, IndexDiff, ToolChange, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.report.excerpts import LONG, SHORT, excerpt, first_rows
from tasks.safety.changed import differing_parts

MAX_ITEMS = 10
"""Items of a list, such as example requests, that are shown as added or removed."""
COUNTS = {"added": "new", "removed": "removed", "changed": "changed", "unchanged": "unchanged"}
"""The names of the counts in a report, and in a manifest."""


def changes_data(
    store: ReleaseStore,
    release: Release,
    releases: Sequence[Release],
    loaded: LoadedRelease,
    count: int,
) -> dict[str, Any]:
    """Return the differences of a release from its predecessor, as JSON values.

    Args:
        releases: all releases of the board.
        count: how many tools of each kind of change are shown.
    """
    changes = release.manifest.get("changes", {})
    against = changes.get("against")
    if against is None:
        counts = {"added": release.tables["tools"].rows, "removed": 0, "changed": 0, "unchanged": 0}
        return {"against": None, "counts": counts}
    before = next((other for other in releases if other.id == against), None)
    if before is None:
        return {
            "against": against,
            "counts": {name: changes.get(key) for name, key in COUNTS.items()},
            "missing": f"Release {against}, against which this one was made, was pruned; only the "
            f"numbers are known.",
        }
    diff = diff_releases(store, before, release)
    changed = [_changed_tool(change) for change in diff.changed[:count]]
    return {
        "against": against,
        "counts": dict(diff.counts),
        "added": {"total": len(diff.added), "shown": _described(loaded, diff.added[:count])},
        "removed": first_rows([{"id": tool} for tool in diff.removed], count),
        "changed": {"total": len(diff.changed), "shown": changed},
        "edges": None if diff.edges is None else len(diff.edges),
        "indexes": [_changed_index(name, index) for name, index in diff.indexes.items()],
    }


def _described(loaded: LoadedRelease, ids: Sequence[str]) -> list[dict[str, str]]:
    tools = loaded.tools(ids)
    return [{"id": tool, "description": excerpt(tools[tool].description)} for tool in ids]


def _changed_tool(change: ToolChange) -> dict[str, Any]:
    fields = [_changed_field(name, field) for name, field in change.fields.items()]
    return {"id": change.id, "fields": fields}


def _changed_index(name: str, index: IndexDiff) -> dict[str, Any]:
    return {
        "name": name,
        "state": index.state,
        "recipe": [_changed_field(field, change) for field, change in index.recipe.items()],
    }


def _changed_field(name: str, change: FieldChange) -> dict[str, Any]:
    """What differs of a field before and after; of a list the items added and removed."""
    if change.added or change.removed:
        return {
            "field": name,
            "added": [excerpt(item, SHORT) for item in change.added[:MAX_ITEMS]],
            "removed": [excerpt(item, SHORT) for item in change.removed[:MAX_ITEMS]],
        }
    before, after = _text(change.old), _text(change.new)
    if before and after:
        before, after = differing_parts(before, after)
    return {"field": name, "before": _excerpt(before), "after": _excerpt(after)}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt(text: str | None) -> str | None:
    return None if text is None else excerpt(text, LONG)
