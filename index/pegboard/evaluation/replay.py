"""Replay: what the requests of a gateway's log find in a release, beside what they found then.

The log has the tools that each request found; what a client was not allowed to see is not among
them, while a replay searches the whole board. Requests are searched one after another in batches,
each different text once, however often it was made."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pegboard.board import Board
from pegboard.evaluation.usage import Usage

BATCH = 128
"""Requests of one search."""


@dataclass(frozen=True, slots=True)
class ReplayedRequest:
    """One request.

    Attributes:
        count: how often it was made.
        before, after: the ids of the tools that it found, then and now, best first.
        called: the ids of the tools that were called after it.
        nothing_fits: whether none of `after` is likely to fit.
    """

    query: str
    count: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    called: frozenset[str]
    nothing_fits: bool

    @property
    def lost(self) -> list[str]:
        """The tools that it does not find any more."""
        return [tool for tool in self.before if tool not in self.after]

    @property
    def won(self) -> list[str]:
        """The tools in place of the lost ones."""
        return [tool for tool in self.after if tool not in self.before]

    @property
    def without_result(self) -> bool:
        """Whether it finds nothing that fits."""
        return self.nothing_fits or not self.after

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        lists = {"lost": self.lost, "won": self.won, "called": sorted(self.called)}
        return {"query": self.query, "count": self.count, "after": list(self.after), **lists}


@dataclass(frozen=True, slots=True)
class Replay:
    """The requests of a log in one release.

    Attributes:
        tools: the ids of the release's tools.
    """

    release: str
    requests: tuple[ReplayedRequest, ...]
    tools: tuple[str, ...]

    @property
    def never_found(self) -> list[str]:
        """The tools that no request finds, by id."""
        found = {tool for request in self.requests for tool in request.after}
        return [tool for tool in self.tools if tool not in found]

    @property
    def calls_lost(self) -> list[tuple[ReplayedRequest, str]]:
        """The requests that had found a tool which was called, and do not find it now."""
        return [
            (request, tool)
            for request in self.requests
            for tool in request.lost
            if tool in request.called
        ]

    def replaced(self) -> list[dict[str, Any]]:
        """Return the tools that requests lost, those of most requests first: how many lost it,
        whether the release still has it, and how often which tools came instead.
        """
        lost: Counter[str] = Counter()
        instead: dict[str, Counter[str]] = {}
        for request in self.requests:
            for tool in request.lost:
                lost[tool] += request.count
                others = instead.setdefault(tool, Counter())
                others.update(dict.fromkeys(request.won, request.count))
        tools = set(self.tools)
        return [
            {
                "tool": tool,
                "requests": count,
                "in_release": tool in tools,
                "instead": dict(instead[tool].most_common()),
            }
            for tool, count in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as JSON values. Counts are of requests as often as they were made."""
        calls = [
            (request, tool)
            for request in self.requests
            for tool in request.called.intersection(request.before)
        ]
        return {
            "release": self.release,
            "requests": _count(self.requests),
            "different": len(self.requests),
            "same_first": _count(
                request for request in self.requests if request.before[:1] == request.after[:1]
            ),
            "same_tools": _count(
                request for request in self.requests if not request.lost and not request.won
            ),
            "called": {"before": len(calls), "lost": len(self.calls_lost)},
            "without_result": [
                request.to_dict() for request in self.requests if request.without_result
            ],
            "replaced": self.replaced(),
            "never_found": self.never_found,
            "tools": len(self.tools),
            "changed": [
                request.to_dict() for request in self.requests if request.lost or request.won
            ],
        }


def replay(usage: Usage, board: Board, k: int = 5, **options: Any) -> Replay:
    """Search the requests of a log in the release from which a board answers.

    Args:
        usage: as `read_usage` gives it.
        k: the most tools of a request that are compared; of one that had found fewer, as many as
            it had found.
        options: of `Board.find_many`.
    """
    board = board.at_current_release()
    called: dict[str, set[str]] = {}
    for use in usage.uses:
        called.setdefault(use.query, set()).add(use.tool)
    queries = [query for query in usage.requests if query.strip()]
    requests: list[ReplayedRequest] = []
    for start in range(0, len(queries), BATCH):
        part = queries[start : start + BATCH]
        for query, result in zip(part, board.find_many(part, k, **options), strict=True):
            logged = usage.requests[query]
            before = logged.tools[:k]
            after = tuple(hit.tool.id for hit in result)[: len(before) or k]
            tools = frozenset(called.get(query, ()))
            nothing = result.nothing_fits
            requests.append(ReplayedRequest(query, logged.count, before, after, tools, nothing))
    release, names = board.tool_names()
    return Replay(release, tuple(requests), tuple(sorted(tool for tool, _, _ in names)))


def _count(requests: Iterable[ReplayedRequest]) -> int:
    return sum(request.count for request in requests)
