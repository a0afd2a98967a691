"""Which golden queries a staged release lost against the live one, to which tools, and what changed
in those tools.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pegboard.evaluation.results import Evaluation, QueryResult
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import ReleaseDiff, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.gate.verdict import Live
from tasks.plan import Plan

CUT = 500
"""Characters of a field that are kept of what it was and what it is."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A query that one release answers and the other does not.

    Attributes:
        needed: the names of its tools, as it gives them.
        before, now: for each of them its rank in the live and in the staged release, from 1; None
            if it was not found.
        instead: the tools that are in front now and were not; or simply those that are in front,
            where nothing else came.
        changed: the ids of the tools among all of these that are not as they were.
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
        """As JSON values."""
        return {name: value for name, value in asdict(self).items() if name != "involved"}


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different in the staged release as against the live one.

    Attributes:
        new, changed, removed: all tools that are, by id.
        indexes: the indexes that both have and that are made otherwise: for each what differs, as
            it was and as it is.
        fields: of the tools that lost queries involve: the kind of change and the fields, as JSON
            values.
    """

    against: str | None = None
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    indexes: Mapping[str, Mapping[str, tuple[Any, Any]]] = field(
        default_factory=dict[str, Mapping[str, tuple[Any, Any]]]
    )
    fields: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the fields."""
        return {name: value for name, value in asdict(self).items() if name != "fields"}


def is_complete(answer: QueryResult, k: int) -> bool:
    """Whether all tools that the query needs are among the first k."""
    return all(rank is not None and rank <= k for rank in answer.ranks().values())


def lost_and_won(ours: Evaluation, live: Live, k: int) -> tuple[list[Lost], list[Lost]]:
    """The queries that were complete among the first k and are not now, and those the other way
    round.
    """
    if live.evaluation is None:
        return [], []
    lost: list[Lost] = []
    won: list[Lost] = []
    for now, before in zip(ours.results, live.evaluation.results, strict=True):
        is_now, was = is_complete(now, k), is_complete(before, k)
        if was and not is_now:
            lost.append(_lost(now, before, k))
        elif is_now and not was:
            won.append(_lost(now, before, k))
    return lost, won


def broken(canaries: Evaluation | None, before: Evaluation | None, k: int) -> list[Lost]:
    """The canaries that do not find all their tools among the first k, whether or not they did
    before.
    """
    if canaries is None:
        return []
    others = before.results if before is not None else [None] * len(canaries.results)
    return [
        _lost(now, was, k)
        for now, was in zip(canaries.results, others, strict=True)
        if not is_complete(now, k)
    ]


def changes_between(
    store: ReleaseStore, live: Release | None, staged: Release, plan: Plan, *, looked_into: bool
) -> tuple[Changes, ReleaseDiff | None]:
    """All that changed, and the whole difference where it is looked into; nothing without a live
    release.

    Where nothing went wrong it is enough to know which tools the plan found changed: the difference
    of two large releases takes seconds."""
    if live is None:
        return Changes(), None
    if not looked_into:
        return Changes(live.id, plan.new, plan.changed, plan.removed), None
    diff = diff_releases(store, live, staged, neighbours=0)
    indexes = {
        name: {part: (change.old, change.new) for part, change in index.recipe.items()}
        for name, index in diff.indexes.items()
        if index.recipe
    }
    return Changes(
        live.id, diff.added, tuple(one.id for one in diff.changed), diff.removed, indexes
    ), diff


def with_changes(
    several: Sequence[Lost],
    changes: Changes,
    diff: ReleaseDiff | None,
    before: LoadedRelease | None,
    now: LoadedRelease,
) -> tuple[list[Lost], list[Mapping[str, Any]]]:
    """The lost queries, each with the ids of its tools that changed; and what changed in them, in
    the order of the queries.
    """
    kinds = {
        one: kind
        for kind, ids in (
            ("new", changes.new),
            ("changed", changes.changed),
            ("removed", changes.removed),
        )
        for one in ids
    }
    marked = [_marked(one, kinds) for one in several]
    involved = list(dict.fromkeys(tool for one in marked for tool in one.changed))
    if diff is None or before is None:
        return marked, []
    fields = {one.id: one.fields for one in diff.changed}
    added = now.tools([one for one in involved if kinds[one] == "new"])
    gone = before.tools([one for one in involved if kinds[one] == "removed"])
    said: list[Mapping[str, Any]] = []
    for tool in involved:
        changed = {name: _pair(one.old, one.new) for name, one in fields.get(tool, {}).items()}
        if tool in added or tool in gone:
            changed = {
                "description": _pair(_described(gone.get(tool)), _described(added.get(tool)))
            }
        said.append({"tool": tool, "change": kinds[tool], "fields": changed})
    return marked, said


def _lost(now: QueryResult, before: QueryResult | None, k: int) -> Lost:
    ids = set[str]().union(
        *now.needed.tools.values(), *(before.needed.tools.values() if before else ())
    )
    front = [one.id for one in now.retrieved[:k] if one.id not in ids]
    was = {one.id for one in before.retrieved[:k]} if before else set[str]()
    instead = tuple(one for one in front if one not in was) or tuple(front)
    ranks = before.ranks() if before else {}
    return Lost(
        query=now.query.query,
        id=now.query.id,
        needed=now.query.tools,
        before=ranks,
        now=now.ranks(),
        instead=instead,
        involved=frozenset((*ids, *instead)),
    )


def _marked(one: Lost, changed: Collection[str]) -> Lost:
    needed = sorted(tool for tool in one.involved if tool not in one.instead)
    return replace(one, changed=tuple(tool for tool in (*needed, *one.instead) if tool in changed))


def _described(tool: Tool | None) -> str | None:
    return None if tool is None else tool.description


def _pair(before: Any, after: Any) -> dict[str, Any]:
    return {"before": _cut(before), "after": _cut(after)}


def _cut(value: Any) -> str | None:
    if value is None:
        return None
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    return text if len(text) <= CUT else f"{text[: CUT - 3]}..."
