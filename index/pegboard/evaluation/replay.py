"""Replay the requests of a gateway's log against a release, and compare the results with the log.

The log has only tools that the client was allowed to see, while a replay searches the whole board.
Requests are searched in batches, each distinct text once, however often it was made."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pegboard.board import Board
from pegboard.evaluation.usage import Usage

BATCH = 128
"""Number of requests searched at a time."""


@dataclass(frozen=True, slots=True)
class ReplayedRequest:
    """A request of the log, with its results then and now.

    Attributes:
        count: how often the request was made.
        logged: the ids of the tools found when it was logged, best first.
        replayed: the ids of the tools found in the release, best first.
        called: the ids of the tools that were called after it.
        nothing_fits: whether none of `replayed` is likely to fit.
    """

    query: str
    count: int
    logged: tuple[str, ...]
    replayed: tuple[str, ...]
    called: frozenset[str]
    nothing_fits: bool

    @property
    def lost(self) -> list[str]:
        """The tools found when it was logged and not found now."""
        return [tool for tool in self.logged if tool not in self.replayed]

    @property
    def won(self) -> list[str]:
        """The tools found now and not when it was logged."""
        return [tool for tool in self.replayed if tool not in self.logged]

    @property
    def without_result(self) -> bool:
        """Whether it finds nothing that fits."""
        return self.nothing_fits or not self.replayed

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        lists = {"lost": self.lost, "won": self.won, "called": sorted(self.called)}
        return {"query": self.query, "count": self.count, "after": list(self.replayed), **lists}


@dataclass(frozen=True, slots=True)
class Replay:
    """The requests of a log, replayed in one release.

    Attributes:
        tools: the ids of the release's tools.
    """

    release: str
    requests: tuple[ReplayedRequest, ...]
    tools: tuple[str, ...]

    @property
    def never_found(self) -> list[str]:
        """The tools that no request finds, by id."""
        found_tools = {tool for request in self.requests for tool in request.replayed}
        return [tool for tool in self.tools if tool not in found_tools]

    @property
    def calls_lost(self) -> list[tuple[ReplayedRequest, str]]:
        """Each request with a tool that it had found, that was called, and that is lost now."""
        return [
            (request, tool)
            for request in self.requests
            for tool in request.lost
            if tool in request.called
        ]

    def replaced(self) -> list[dict[str, Any]]:
        """Return the tools that requests lost, the most frequent first: the number of requests
        that lost it, whether the release still has it, and the tools found instead with counts.
        """
        lost_requests: Counter[str] = Counter()
        replacements: dict[str, Counter[str]] = {}
        for request in self.requests:
            for tool in request.lost:
                lost_requests[tool] += request.count
                counts = replacements.setdefault(tool, Counter())
                counts.update(dict.fromkeys(request.won, request.count))
        tools = set(self.tools)
        return [
            {
                "tool": tool,
                "requests": count,
                "in_release": tool in tools,
                "instead": dict(replacements[tool].most_common()),
            }
            for tool, count in sorted(lost_requests.items(), key=lambda pair: (-pair[1], pair[0]))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as JSON values. A request made n times counts n times."""
        calls = [
            (request, tool)
            for request in self.requests
            for tool in request.called.intersection(request.logged)
        ]
        return {
            "release": self.release,
            "requests": _count(self.requests),
            "different": len(self.requests),
            "same_first": _count(
                request for request in self.requests if request.logged[:1] == request.replayed[:1]
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
    """Search the requests of a log in a board's current release.

    Args:
        usage: the log, as `read_usage` returns it.
        k: the maximum number of tools compared for a request; a request that had found fewer is
            compared at that number.
        options: options of `Board.find_many`.
    """
    board = board.at_current_release()
    called: dict[str, set[str]] = {}
    for use in usage.uses:
        called.setdefault(use.query, set()).add(use.tool)
    queries = [query for query in usage.requests if query.strip()]
    requests: list[ReplayedRequest] = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        for query, result in zip(batch, board.find_many(batch, k, **options), strict=True):
            logged_request = usage.requests[query]
            logged = logged_request.tools[:k]
            replayed = tuple(hit.tool.id for hit in result)[: len(logged) or k]
            requests.append(
                ReplayedRequest(
                    query=query,
                    count=logged_request.count,
                    logged=logged,
                    replayed=replayed,
                    called=frozenset(called.get(query, ())),
                    nothing_fits=result.nothing_fits,
                )
            )
    release, names = board.tool_names()
    return Replay(release, tuple(requests), tuple(sorted(tool for tool, _, _ in names)))


def _count(requests: Iterable[ReplayedRequest]) -> int:
    return sum(request.count for request in requests)
