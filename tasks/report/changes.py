"""What changed in a release against the one that was live when it was made."""

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import FieldChange, IndexDiff, ReleaseDiff, ToolChange, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.report.excerpts import LONG, SHORT, excerpt, first_rows

MAX_ITEMS = 10
"""Items of a list, such as example requests, that are shown as added or removed."""
COUNTS = {"added": "new", "removed": "removed", "changed": "changed", "unchanged": "unchanged"}
"""The names of the counts in a report, and in a manifest."""
MAX_CHARACTERS = 4_000
"""Of each text whose words are compared; what follows is not."""
MAX_PAIRS = 20_000
"""Pairs of words that are compared, after the equal beginning and end were set aside. Texts that
differ in more are shown one after the other, so that the time is bounded whatever they are."""
CONTEXT = 12
"""Words that are shown before and after a change."""
GAP = " … "
WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")

Piece = tuple[str, str]
"""`same`, `added` or `removed`, and a text."""


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
        return _all_new(loaded, count)
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
        "against_at": before.created_at.isoformat(timespec="seconds"),
        "counts": dict(diff.counts),
        "added": {"total": len(diff.added), "shown": _described(loaded, diff.added[:count])},
        "removed": first_rows([{"id": tool} for tool in diff.removed], count),
        "changed": {"total": len(diff.changed), "shown": changed},
        "fields": _tools_per_field(diff),
        "edges": None if diff.edges is None else len(diff.edges),
        "indexes": [_changed_index(name, index) for name, index in diff.indexes.items()],
    }


def _all_new(loaded: LoadedRelease, count: int) -> dict[str, Any]:
    ids = sorted(tool for tool, _, _ in loaded.tool_names())
    return {
        "against": None,
        "counts": {"added": len(ids), "removed": 0, "changed": 0, "unchanged": 0},
        "added": {"total": len(ids), "shown": _described(loaded, ids[:count])},
        "removed": first_rows([], count),
        "changed": first_rows([], count),
        "fields": [],
        "edges": None,
        "indexes": [],
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


def _tools_per_field(diff: ReleaseDiff) -> list[dict[str, Any]]:
    """In how many tools each field differs, most first."""
    counts: dict[str, int] = {}
    for change in diff.changed:
        for name in change.fields:
            counts[name] = counts.get(name, 0) + 1
    ranked = sorted(counts.items(), key=lambda field: (-field[1], field[0]))
    return [{"field": name, "tools": tools} for name, tools in ranked]


def _changed_field(name: str, change: FieldChange) -> dict[str, Any]:
    """A field before and after with its changed words; of a list the items added and removed."""
    if change.added or change.removed:
        return {
            "field": name,
            "added": [excerpt(item, SHORT) for item in change.added[:MAX_ITEMS]],
            "removed": [excerpt(item, SHORT) for item in change.removed[:MAX_ITEMS]],
        }
    before, after = _text(change.old), _text(change.new)
    row = {"field": name, "before": _excerpt(before), "after": _excerpt(after)}
    if before and after:
        row["words"] = [list(piece) for piece in diff_words(before, after)]
    return row


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt(text: str | None) -> str | None:
    return None if text is None else excerpt(text, LONG)


def diff_words(before: str, after: str) -> list[Piece]:
    """Return the pieces of two texts in order; of long equal pieces only the ends."""
    old, new = (WORD.findall(text[:MAX_CHARACTERS]) for text in (before, after))
    olds, news = ([word.strip() for word in words] for words in (old, new))
    if olds == news:
        return _replaced(old, new)
    shortest, start, end = min(len(old), len(new)), 0, 0
    while start < shortest and olds[start] == news[start]:
        start += 1
    while end < shortest - start and olds[-1 - end] == news[-1 - end]:
        end += 1
    old, olds = old[start : len(old) - end], olds[start : len(olds) - end]
    first, middle, last = new[:start], new[start : len(new) - end], new[len(new) - end :]
    pieces = [("same", _shortened(first, after=True))] if first else []
    if len(old) * len(middle) > MAX_PAIRS:
        pieces += _replaced(old, middle)
    else:
        matcher = SequenceMatcher(None, olds, news[start : len(news) - end], autojunk=False)
        for kind, i, j, k, m in matcher.get_opcodes():
            same = [("same", _shortened(middle[k:m], before=True, after=True))]
            pieces += same if kind == "equal" else _replaced(old[i:j], middle[k:m])
    return [*pieces, ("same", _shortened(last, before=True))] if last else pieces


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Piece]:
    pairs = (("removed", "".join(old)), ("added", "".join(new)))
    return [(kind, text) for kind, text in pairs if text]


def _shortened(words: Sequence[str], *, before: bool = False, after: bool = False) -> str:
    """The words next to the changes before and after equal ones."""
    if len(words) <= 2 * CONTEXT + 1:
        return "".join(words)
    first, last = words[:CONTEXT] if before else (), words[-CONTEXT:] if after else ()
    return f"{''.join(first)}{GAP}{''.join(last)}"
