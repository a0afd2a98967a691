"""Golden queries whose first place an unexpected tool took: stuffed with examples, or a copy.

A query is captured if its first tool is suspicious, or is new or changed since live and not needed
while live had a tool of another agent there. Other reasons for a new order, such as another
encoder, capture nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.systems import QueryResult
from tasks.safety.capture import NEAR_COPY

MAX_QUERIES = 20
"""Maximum captured queries listed in the details; the count is of all."""


@dataclass(frozen=True, slots=True)
class CapturedQuery:
    """A query and the tool that took its first place.

    Attributes:
        tool, before: the ids of the first tool now and in live; None without one in live.
        flags: why the tool is suspicious, if it is.
    """

    query: str
    id: str
    tool: str
    before: str | None
    flags: tuple[str, ...]


def captured_queries(
    staged: Evaluation | None,
    live: Evaluation | None,
    changed: Collection[str],
    flags: Mapping[str, Collection[str]],
) -> list[CapturedQuery]:
    """Return the captured queries of an evaluation.

    Args:
        live: of the same queries.
        changed: the ids of tools that are new or changed since live.
        flags: the flags of suspicious tools.
    """
    if staged is None:
        return []
    before = live.results if live is not None else [None] * len(staged.results)
    pairs = zip(staged.results, before, strict=True)
    captured = [_captured(now, was, changed, flags) for now, was in pairs]
    return [query for query in captured if query is not None]


def _captured(
    now: QueryResult,
    before: QueryResult | None,
    changed: Collection[str],
    flags: Mapping[str, Collection[str]],
) -> CapturedQuery | None:
    if not now.retrieved or (first := now.retrieved[0].id) not in changed | flags.keys():
        return None
    was = before.retrieved[0].id if before is not None and before.retrieved else None
    needed = any(first in tools for tools in now.needed.tools.values())
    codes = tuple(sorted(flags.get(first, ())))
    # A copy under a right tool's name counts as right by its name.
    suspicious = bool(codes) and (not needed or NEAR_COPY in codes)
    displaced = was is not None and _agent(was) != _agent(first) and first in changed
    if suspicious or (displaced and not needed):
        return CapturedQuery(now.query.query, now.query.id, first, was, codes)
    return None


def capture_details(
    captured: Sequence[CapturedQuery], queries: int, share: float | None
) -> dict[str, Any]:
    """Return the captured queries as JSON values.

    Args:
        queries: how many were judged.
        share: the most that may be captured, of them; None allows all.
    """
    most = None if share is None else max(1, int(share * queries))
    return {
        "count": len(captured),
        "of": queries,
        "most": most,
        "queries": [asdict(query) for query in captured[:MAX_QUERIES]],
    }


def _agent(tool: str) -> str:
    return tool.rpartition("/")[0]
