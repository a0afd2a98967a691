"""How a staged release differs from the live one: golden queries that it lost, canaries that broke,
queries that an unexpected tool captured, and which tools changed."""

from collections.abc import Collection, Mapping
from typing import Any

from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.systems import QueryResult
from pegboard.store.releases import Release, ReleaseStore
from tasks.safety.capture import NEAR_COPY


def lost_and_won(
    staged: Evaluation, live: Evaluation | None, k: int, changes: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the queries that were complete among the first k and are not now, and vice versa.

    Args:
        changes: the result of `tool_changes`.
    """
    lost: list[dict[str, Any]] = []
    won: list[dict[str, Any]] = []
    for now, before in zip(staged.results, live.results if live else (), strict=live is not None):
        complete, was_complete = now.last_rank() <= k, before.last_rank() <= k
        if complete != was_complete:
            (won if complete else lost).append(_query_row(now, before, k, changes))
    return lost, won


def broken_canaries(
    staged: Evaluation, live: Evaluation | None, k: int, changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the canaries that miss a tool among the first k, whether or not live did."""
    return [
        _query_row(now, was, k, changes) for now, was in _pairs(staged, live) if now.last_rank() > k
    ]


def _pairs(
    staged: Evaluation, live: Evaluation | None
) -> list[tuple[QueryResult, QueryResult | None]]:
    """The results of each query now and in live."""
    before = live.results if live is not None else [None] * len(staged.results)
    return list(zip(staged.results, before, strict=True))


def _query_row(
    now: QueryResult, before: QueryResult | None, k: int, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a query that one release answers completely and the other does not, as JSON values.

    Returns:
        The `needed` names; the rank of each in live (`before`) and in the staged release (`now`),
        from 1, None if it was not retrieved; `instead`, the tools that are in front now and were
        not before, or if there are none all in front; and which of these and of the needed tools
        are `changed`.
    """
    needed = [now.needed, *([before.needed] if before else [])]
    ids = {tool for part in needed for tools in part.tools.values() for tool in tools}
    front = [tool.id for tool in now.retrieved[:k] if tool.id not in ids]
    front_before = {tool.id for tool in before.retrieved[:k]} if before else set[str]()
    instead = [tool for tool in front if tool not in front_before] or front
    kinds = {*changes["new"], *changes["changed"], *changes["removed"]}
    involved = (*sorted(ids.difference(instead)), *instead)
    return {
        "query": now.query.query,
        "id": now.query.id,
        "needed": list(now.query.tools),
        "before": before.ranks() if before else {},
        "now": now.ranks(),
        "instead": instead,
        "changed": [tool for tool in involved if tool in kinds],
    }


def captured_queries(
    staged: Evaluation,
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


def _agent(tool: str) -> str:
    return tool.rpartition("/")[0]


def tool_changes(store: ReleaseStore, live: Release | None, staged: Release) -> dict[str, Any]:
    """Return the changes since the live release as JSON values: the release itself (`against`), and
    the `new`, `changed` and `removed` tools. Without a live release there are none.
    """
    if live is None:
        return {"against": None, "new": (), "changed": (), "removed": ()}
    before, after = (_digests(store, release) for release in (live, staged))
    changed = {tool for tool in before.keys() & after.keys() if before[tool] != after[tool]}
    return {
        "against": live.id,
        "new": sorted(after.keys() - before.keys()),
        "changed": sorted(changed),
        "removed": sorted(before.keys() - after.keys()),
    }


def _digests(store: ReleaseStore, release: Release) -> dict[str, str]:
    rows = store.read_rows(release.tables["tools"], ["id", "digest"])
    return dict(zip(rows.column("id").to_pylist(), rows.column("digest").to_pylist(), strict=True))
