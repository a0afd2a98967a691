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
    lost_rows: list[dict[str, Any]] = []
    won_rows: list[dict[str, Any]] = []
    live_results = live.results if live else ()
    for staged_result, live_result in zip(staged.results, live_results, strict=live is not None):
        is_complete = staged_result.last_rank() <= k
        was_complete = live_result.last_rank() <= k
        if is_complete == was_complete:
            continue
        row = _query_row(staged_result, live_result, k, changes)
        if is_complete:
            won_rows.append(row)
        else:
            lost_rows.append(row)
    return lost_rows, won_rows


def broken_canaries(
    staged: Evaluation, live: Evaluation | None, k: int, changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the canaries that miss a tool among the first k, whether or not live did."""
    return [
        _query_row(staged_result, live_result, k, changes)
        for staged_result, live_result in _pairs(staged, live)
        if staged_result.last_rank() > k
    ]


def _pairs(
    staged: Evaluation, live: Evaluation | None
) -> list[tuple[QueryResult, QueryResult | None]]:
    """The results of each query in the staged release and in live."""
    live_results = live.results if live is not None else [None] * len(staged.results)
    return list(zip(staged.results, live_results, strict=True))


def _query_row(
    staged: QueryResult, live: QueryResult | None, k: int, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a query that one release answers completely and the other does not, as JSON values.

    Returns:
        The `needed` names; the rank of each in live (`before`) and in the staged release (`now`),
        from 1, None if it was not retrieved; `instead`, the tools that are in front now and were
        not before, or if there are none all in front; and which of these and of the needed tools
        are `changed`.
    """
    needed = [staged.needed, *([live.needed] if live else [])]
    ids = {tool for part in needed for tools in part.tools.values() for tool in tools}
    front = [tool.id for tool in staged.retrieved[:k] if tool.id not in ids]
    live_front = {tool.id for tool in live.retrieved[:k]} if live else set[str]()
    instead = [tool for tool in front if tool not in live_front] or front
    kinds = {*changes["new"], *changes["changed"], *changes["removed"]}
    involved = (*sorted(ids.difference(instead)), *instead)
    return {
        "query": staged.query.query,
        "id": staged.query.id,
        "needed": list(staged.query.tools),
        "before": live.ranks() if live else {},
        "now": staged.ranks(),
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
    for result, live_result in _pairs(staged, live):
        top = result.retrieved[0].id if result.retrieved else None
        if top is None or top not in changed | flags.keys():
            continue
        live_top = None
        if live_result is not None and live_result.retrieved:
            live_top = live_result.retrieved[0].id
        needed = any(top in tools for tools in result.needed.tools.values())
        codes = sorted(flags.get(top, ()))
        # A copy under a right tool's name counts as right by its name.
        suspicious = bool(codes) and (not needed or NEAR_COPY in codes)
        displaced = live_top is not None and _agent(live_top) != _agent(top) and top in changed
        if suspicious or (displaced and not needed):
            query = result.query
            row = {"query": query.query, "id": query.id, "tool": top, "before": live_top}
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
    live_digests = _digests(store, live)
    staged_digests = _digests(store, staged)
    common = live_digests.keys() & staged_digests.keys()
    changed = {tool for tool in common if live_digests[tool] != staged_digests[tool]}
    return {
        "against": live.id,
        "new": sorted(staged_digests.keys() - live_digests.keys()),
        "changed": sorted(changed),
        "removed": sorted(live_digests.keys() - staged_digests.keys()),
    }


def _digests(store: ReleaseStore, release: Release) -> dict[str, str]:
    rows = store.read_rows(release.tables["tools"], ["id", "digest"])
    return dict(zip(rows.column("id").to_pylist(), rows.column("digest").to_pylist(), strict=True))
