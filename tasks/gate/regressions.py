"""How a staged release differs from the live one: golden queries that it lost, canaries that broke,
queries that an unexpected tool captured, and which tools changed."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.systems import QueryResult
from pegboard.search.loaded import LoadedRelease
from pegboard.store.diff import ReleaseDiff, diff_releases
from pegboard.store.releases import Release, ReleaseStore
from tasks.plan import Plan
from tasks.safety.capture import NEAR_COPY

MAX_TEXT = 500
"""Characters of a changed field, before and after."""
MAX_CAPTURED = 20
"""Maximum captured queries listed in the details; the count is of all."""


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query that one release answers completely and the other does not.

    Attributes:
        needed: the names of its tools, as the query gives them.
        before, now: the rank of each in the live and in the staged release, from 1; None if it was
            not retrieved.
        instead: the tools that are in front now and were not before; if there are none, all that
            are in front now.
        changed: those of the needed tools, and of `instead`, that changed; all of these until
            `attribute_changes`.
    """

    query: str
    id: str
    needed: tuple[str, ...]
    before: Mapping[str, int | None]
    now: Mapping[str, int | None]
    instead: tuple[str, ...]
    changed: tuple[str, ...]


def lost_and_won(
    staged: Evaluation, live: Evaluation | None, k: int
) -> tuple[list[QueryChange], list[QueryChange]]:
    """Return the queries that were complete among the first k and are not now, and vice versa."""
    lost: list[QueryChange] = []
    won: list[QueryChange] = []
    for now, before in zip(staged.results, live.results if live else (), strict=live is not None):
        complete, was_complete = now.last_rank() <= k, before.last_rank() <= k
        if complete != was_complete:
            (won if complete else lost).append(_query_change(now, before, k))
    return lost, won


def broken_canaries(
    staged: Evaluation | None, live: Evaluation | None, k: int
) -> list[QueryChange]:
    """Return the canaries that miss a tool among the first k, whether or not live did."""
    return [_query_change(now, was, k) for now, was in _pairs(staged, live) if now.last_rank() > k]


def _pairs(
    staged: Evaluation | None, live: Evaluation | None
) -> list[tuple[QueryResult, QueryResult | None]]:
    """The results of each query now and in live; none without a staged evaluation."""
    results = staged.results if staged is not None else ()
    before = live.results if live is not None else [None] * len(results)
    return list(zip(results, before, strict=staged is not None))


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
        changed=(*sorted(ids.difference(instead)), *instead),
    )


def captured_queries(
    staged: Evaluation | None,
    live: Evaluation | None,
    changed: Collection[str],
    flags: Mapping[str, Collection[str]],
) -> list[dict[str, Any]]:
    """Return the queries whose first place an unexpected tool took, with the first tool now and in
    live, and why it is suspicious, if it is.

    A query is captured if its first tool is suspicious, or is new or changed since live and not
    needed while live had a tool of another agent there. Other reasons for a new order, such as
    another encoder, capture nothing.

    Args:
        live: of the same queries.
        changed: the ids of tools that are new or changed since live.
        flags: the flags of suspicious tools.
    """
    captured: list[dict[str, Any]] = []
    for now, before in _pairs(staged, live):
        if not now.retrieved or (first := now.retrieved[0].id) not in changed | flags.keys():
            continue
        was = before.retrieved[0].id if before is not None and before.retrieved else None
        needed = any(first in tools for tools in now.needed.tools.values())
        codes = sorted(flags.get(first, ()))
        # A copy under a right tool's name counts as right by its name.
        suspicious = bool(codes) and (not needed or NEAR_COPY in codes)
        displaced = was is not None and _agent(was) != _agent(first) and first in changed
        if suspicious or (displaced and not needed):
            row = {"query": now.query.query, "id": now.query.id, "tool": first, "before": was}
            captured.append({**row, "flags": codes})
    return captured


def capture_details(
    captured: Sequence[Mapping[str, Any]], queries: int, share: float | None
) -> dict[str, Any]:
    """Return the captured queries as JSON values.

    Args:
        queries: how many were judged.
        share: the most that may be captured, of them; None allows all.
    """
    most = None if share is None else max(1, int(share * queries))
    first = [dict(query) for query in captured[:MAX_CAPTURED]]
    return {"count": len(captured), "of": queries, "most": most, "queries": first}


def _agent(tool: str) -> str:
    return tool.rpartition("/")[0]


def tool_changes(
    store: ReleaseStore, live: Release | None, staged: Release, plan: Plan, *, diff: bool
) -> tuple[dict[str, Any], ReleaseDiff | None]:
    """Return the changes since the live release as JSON values: the release itself (`against`), the
    `new`, `changed` and `removed` tools, and of `indexes` with another recipe each part before and
    after. Without a live release there are none.

    Args:
        diff: compare the releases; otherwise the tools are those that the plan found changed, since
            the diff of two large releases takes seconds.
    """
    if live is None:
        return {"against": None, "new": (), "changed": (), "removed": (), "indexes": {}}, None
    tools = {"new": plan.new, "changed": plan.changed, "removed": plan.removed}
    if not diff:
        return {"against": live.id, **tools, "indexes": {}}, None
    difference = diff_releases(store, live, staged)
    changed = tuple(change.id for change in difference.changed)
    tools = {"new": difference.added, "changed": changed, "removed": difference.removed}
    indexes = {
        name: {part: (change.old, change.new) for part, change in index.recipe.items()}
        for name, index in difference.indexes.items()
        if index.recipe
    }
    return {"against": live.id, **tools, "indexes": indexes}, difference


def attribute_changes(
    queries: Sequence[QueryChange],
    changes: Mapping[str, Any],
    diff: ReleaseDiff | None,
    before: LoadedRelease | None,
    now: LoadedRelease,
) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return the queries with the tools that changed, and the changed fields of these tools, both
    as JSON values.

    Args:
        before, now: the live and the staged release.
    """
    kinds = {tool: kind for kind in ("new", "changed", "removed") for tool in changes[kind]}
    queries = [
        replace(query, changed=tuple(tool for tool in query.changed if tool in kinds))
        for query in queries
    ]
    rows = [asdict(query) for query in queries]
    tools = list(dict.fromkeys(tool for query in queries for tool in query.changed))
    if diff is None or before is None:
        return rows, []
    fields = {change.id: change.fields for change in diff.changed}
    added = now.tools([tool for tool in tools if kinds[tool] == "new"])
    removed = before.tools([tool for tool in tools if kinds[tool] == "removed"])
    attributed: list[Mapping[str, Any]] = []
    for tool in tools:
        changed = {
            name: {"before": _text(change.old), "after": _text(change.new)}
            for name, change in fields.get(tool, {}).items()
        }
        if tool in added or tool in removed:
            was, is_now = (
                _text(side[tool].description) if tool in side else None for side in (removed, added)
            )
            changed = {"description": {"before": was, "after": is_now}}
        attributed.append({"tool": tool, "change": kinds[tool], "fields": changed})
    return rows, attributed


def _text(value: Any) -> str | None:
    if value is None:
        return None
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."
