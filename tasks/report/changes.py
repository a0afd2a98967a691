"""The changes of a release against the one that was live when it was made."""

import json
from collections.abc import Sequence
from typing import Any

from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import FieldChange, IndexDiff, ToolChange, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.report.excerpts import LONG, SHORT, excerpt, first_rows
from tasks.safety.changed import differing_parts

MAX_ITEMS = 10
"""Largest number of added, and of removed, items of a list that are shown, such as examples."""
COUNTS = {"added": "new", "removed": "removed", "changed": "changed", "unchanged": "unchanged"}
"""The name of each count in a report -> its name in a manifest."""


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
        count: largest number of tools that are shown for each kind of change.
    """
    changes = release.manifest.get("changes", {})
    against = changes.get("against")
    if against is None:
        counts = {"added": release.tables["tools"].rows, "removed": 0, "changed": 0, "unchanged": 0}
        return {"against": None, "counts": counts}
    predecessor = next((other for other in releases if other.id == against), None)
    if predecessor is None:
        return {
            "against": against,
            "counts": {name: changes.get(key) for name, key in COUNTS.items()},
            "missing": f"Release {against}, the predecessor of this one, was pruned; only the "
            f"numbers are known.",
        }
    diff = diff_releases(store, predecessor, release)
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
    """Return the differing parts of a field, or the items that were added to and removed from a
    list.
    """
    if change.added or change.removed:
        return {
            "field": name,
            "added": [excerpt(item, SHORT) for item in change.added[:MAX_ITEMS]],
            "removed": [excerpt(item, SHORT) for item in change.removed[:MAX_ITEMS]],
        }
    old_text = _text(change.old)
    new_text = _text(change.new)
    if old_text and new_text:
        old_text, new_text = differing_parts(old_text, new_text)
    return {"field": name, "before": _excerpt(old_text), "after": _excerpt(new_text)}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt(text: str | None) -> str | None:
    return None if text is None else excerpt(text, LONG)
