"""Which golden queries a staged release lost against the live one, and which tools changed."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.systems import QueryResult
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import ReleaseDiff, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.plan import Plan

MAX_TEXT = 500
"""Characters of a changed field, before and after."""


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query that one release answers completely and the other does not.

    Attributes:
        needed: the names of its tools, as the query gives them.
        before, now: the rank of each in the live and in the staged release, from 1; None if it was
            not retrieved.
        instead: the tools that are in front now and were not before; if there are none, all that
            are in front now.
        involved: the ids of the needed tools, and of those in `instead`.
        changed: those of `involved` that changed.
    """

    query: str
    id: str
    needed: tuple[str, ...]
    before: Mapping[str, int | None]
    now: Mapping[str, int | None]
    instead: tuple[str, ...]
    involved: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: value for name, value in asdict(self).items() if name != "involved"}


@dataclass(frozen=True, slots=True)
class ToolChanges:
    """The differences of the staged release from the live one.

    Attributes:
        against: the live release; None without one.
        new, changed, removed: tools by id.
        indexes: for each index whose recipe changed, each part before and after.
    """

    against: str | None = None
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    indexes: Mapping[str, Mapping[str, tuple[Any, Any]]] = field(
        default_factory=dict[str, Mapping[str, tuple[Any, Any]]]
    )

    def kinds(self) -> dict[str, str]:
        """Return `new`, `changed` or `removed` for the id of each such tool."""
        kinds = {"new": self.new, "changed": self.changed, "removed": self.removed}
        return {tool: kind for kind, tools in kinds.items() for tool in tools}


def lost_and_won(
    staged: Evaluation, live: Evaluation | None, k: int
) -> tuple[list[QueryChange], list[QueryChange]]:
    """Return the queries that were complete among the first k and are not now, and vice versa."""
    lost: list[QueryChange] = []
    won: list[QueryChange] = []
    for now, before in zip(staged.results, live.results if live else (), strict=live is not None):
        complete, was_complete = now.last_rank() <= k, before.last_rank() <= k
        if was_complete and not complete:
            lost.append(_query_change(now, before, k))
        elif complete and not was_complete:
            won.append(_query_change(now, before, k))
    return lost, won


def broken_canaries(
    staged: Evaluation | None, live: Evaluation | None, k: int
) -> list[QueryChange]:
    """Return the canaries that miss a tool among the first k, whether or not live did."""
    if staged is None:
        return []
    before = live.results if live is not None else [None] * len(staged.results)
    return [
        _query_change(now, was, k)
        for now, was in zip(staged.results, before, strict=True)
        if now.last_rank() > k
    ]


def _query_change(now: QueryResult, before: QueryResult | None, k: int) -> QueryChange:
    needed = [now.needed, *([before.needed] if before else [])]
    ids = {tool for part in needed for tools in part.tools.values() for tool in tools}
    front = [tool.id for tool in now.retrieved[:k] if tool.id not in ids]
    front_before = {tool.id for tool in before.retrieved[:k]} if before else set[str]()
    instead = tuple(tool for tool in front if tool not in front_before) or tuple(front)
    return QueryChange(
        query=now.query.query,
        id=now.query.id,
        needed=now.query.tools,
        before=before.ranks() if before else {},
        now=now.ranks(),
        instead=instead,
        involved=frozenset((*ids, *instead)),
    )


def tool_changes(
    store: ReleaseStore, live: Release | None, staged: Release, plan: Plan, *, diff: bool
) -> tuple[ToolChanges, ReleaseDiff | None]:
    """Return the changes since the live release; none without one.

    Args:
        diff: compare the releases; otherwise the tools are those that the plan found changed, since
            the diff of two large releases takes seconds.
    """
    if live is None:
        return ToolChanges(), None
    if not diff:
        return ToolChanges(live.id, plan.new, plan.changed, plan.removed), None
    difference = diff_releases(store, live, staged, neighbours=0)
    indexes = {
        name: {part: (change.old, change.new) for part, change in index.recipe.items()}
        for name, index in difference.indexes.items()
        if index.recipe
    }
    changed = tuple(change.id for change in difference.changed)
    changes = ToolChanges(live.id, difference.added, changed, difference.removed, indexes)
    return changes, difference


def attribute_changes(
    queries: Sequence[QueryChange],
    changes: ToolChanges,
    diff: ReleaseDiff | None,
    before: LoadedRelease | None,
    now: LoadedRelease,
) -> tuple[list[QueryChange], list[Mapping[str, Any]]]:
    """Return the queries with the tools that changed, and the changed fields of these tools.

    Args:
        before, now: the live and the staged release.
    """
    kinds = changes.kinds()
    queries = [_with_changed_tools(query, kinds) for query in queries]
    tools = list(dict.fromkeys(tool for query in queries for tool in query.changed))
    if diff is None or before is None:
        return queries, []
    fields = {change.id: change.fields for change in diff.changed}
    added = now.tools([tool for tool in tools if kinds[tool] == "new"])
    removed = before.tools([tool for tool in tools if kinds[tool] == "removed"])
    rows: list[Mapping[str, Any]] = []
    for tool in tools:
        changed = {
            name: _pair(change.old, change.new) for name, change in fields.get(tool, {}).items()
        }
        if tool in added or tool in removed:
            pair = _pair(_description(removed.get(tool)), _description(added.get(tool)))
            changed = {"description": pair}
        rows.append({"tool": tool, "change": kinds[tool], "fields": changed})
    return queries, rows


def _with_changed_tools(query: QueryChange, changed: Collection[str]) -> QueryChange:
    needed = sorted(query.involved.difference(query.instead))
    return replace(query, changed=tuple(t for t in (*needed, *query.instead) if t in changed))


def _description(tool: Tool | None) -> str | None:
    return None if tool is None else tool.description


def _pair(before: Any, after: Any) -> dict[str, Any]:
    return {"before": _text(before), "after": _text(after)}


def _text(value: Any) -> str | None:
    if value is None:
        return None
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."
