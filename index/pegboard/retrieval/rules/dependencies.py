"""Expands a ranking by the dependencies between tools.

Lumer et al., "Graph RAG-Tool Fusion", 2025, algorithm 1, lines 11 to 21: the first tool of the
ranking, then its dependencies depth first, then the second tool and its dependencies, and so on,
without duplicates; finally cut to the number of tools requested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pegboard.graph.tool_graph import DEPENDENCY_LIMIT, ORIGINS
from pegboard.ranking import ScoredTool
from pegboard.records import Edge, EdgeOrigin
from pegboard.retrieval.context import Context
from pegboard.retrieval.parts import Part
from pegboard.retrieval.requests import Candidates, Ranking

LAST_STEP = 0.01
"""Distance between the last tool and its dependencies as a share of its score, if no tool follows.
"""


@dataclass(frozen=True, slots=True)
class Dependencies(Part):
    """A refinement: the first tools of a ranking, each followed by its dependencies, then the rest
    of the ranking.

    A dependency that the search also found is placed where it is needed, if that is higher. Scores
    stay in order: those of dependencies lie at equal distances between the scores of the tool that
    needs them and of the next tool. Only tools that pass the caller's filter are added; the
    dependencies of a tool that does not pass are not followed. `context.log.added` has the reason
    for each added tool.

    Attributes:
        initial: the number of first tools that are expanded. On ToolLinkOS 1, 2, 3 and 5 have
            mAP@10 .899, .904, .905 and .905.
        limit: the maximum number of dependencies of one tool, d_limit. On ToolLinkOS 3, 5, 7 and 10
            have mAP@10 .686, .856, .901 and .905; more do not change it.
        origins: the origins of the edges that are followed.
        rest: whether the rest of the ranking follows. Algorithm 1 ends with the expanded tools.
    """

    part: ClassVar[str] = "dependencies"
    may_be_zero: ClassVar[tuple[str, ...]] = ("initial", "limit")
    initial: int = 3
    limit: int = DEPENDENCY_LIMIT
    origins: tuple[EdgeOrigin, ...] = ORIGINS
    rest: bool = True

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the expanded ranking, cut to the request's k."""
        ranking = candidates.ranking
        initial = [row.tool for row in ranking[: self.initial]]
        walks, refused = await self._walks(initial, {row.tool for row in ranking}, context)
        placed = _placed(walks)
        expanded = _scored(ranking if self.rest else ranking[: self.initial], walks, placed)[
            : context.request.k
        ]
        searched = {row.tool for row in ranking}
        brought = [row.tool for row in expanded if row.tool in placed]
        for tool in brought:
            context.log.added.setdefault(tool, _why(placed[tool]))
        new = sum(tool not in searched for tool in brought)
        context.trace.note = (
            f"{new} of {len(expanded)} tools added as dependencies, {len(brought) - new} moved up, "
            f"for the first {len(initial)}"
            + (f"; {refused} do not pass the filter or are not in the release" if refused else "")
        )
        return expanded

    async def _walks(
        self, initial: Sequence[str], passing: set[str], context: Context
    ) -> tuple[dict[str, list[Edge]], int]:
        """Return the dependencies of each of the first tools that pass the filter, and the number
        of tools reached that do not.

        A check may be a query to a store, so all tools that one traversal reaches are checked
        together.
        """
        checked = set(passing)
        refused: set[str] = set()
        dependencies = context.loaded.graph.dependencies

        def passes(target: str) -> bool:
            return target not in refused

        while True:
            walks = {tool: dependencies(tool, self.limit, self.origins, passes) for tool in initial}
            unchecked = {edge.target for walk in walks.values() for edge in walk} - checked
            if not unchecked:
                return walks, len(refused)
            refused |= unchecked - await context.passing(sorted(unchecked))
            checked |= unchecked


def _placed(walks: Mapping[str, Sequence[Edge]]) -> dict[str, Edge]:
    """Return the tools that are placed after a tool that needs them, each with the edge that
    requires it. They include first tools that an earlier tool needs.
    """
    placed: dict[str, Edge] = {}
    walked: set[str] = set()
    for tool, walk in walks.items():
        walked.add(tool)
        for edge in walk:
            if edge.target not in walked:
                placed.setdefault(edge.target, edge)
    return placed


def _why(edge: Edge) -> dict[str, Any]:
    return {
        "of": edge.source,
        "type": edge.type,
        "parameter": edge.parameter,
        "reason": edge.reason,
        "origin": edge.origin,
        "confidence": edge.confidence,
    }


def _scored(
    ranking: Ranking, walks: Mapping[str, Sequence[Edge]], placed: Mapping[str, Edge]
) -> list[ScoredTool]:
    """Return the expanded ranking: ranked tools keep their scores, and dependencies get scores
    between their neighbours'.
    """
    score_of = {row.tool: row.score for row in ranking}
    order: dict[str, None] = {}
    for tool, walk in walks.items():
        order.setdefault(tool)
        order.update(dict.fromkeys(edge.target for edge in walk if edge.target in placed))
    order.update(dict.fromkeys(score_of))
    scored: list[ScoredTool] = []
    waiting: list[str] = []
    for tool in order:
        if tool in placed:
            waiting.append(tool)
            continue
        scored += _between(waiting, scored, score_of[tool])
        scored.append(ScoredTool(tool, score_of[tool]))
        waiting = []
    return scored + _between(waiting, scored, None)


def _between(
    tools: Sequence[str], above: Sequence[ScoredTool], below: float | None
) -> list[ScoredTool]:
    if not tools:
        return []
    top = above[-1].score
    step = (abs(top) * LAST_STEP if below is None else top - below) / (len(tools) + 1)
    return [ScoredTool(tool, top - step * place) for place, tool in enumerate(tools, start=1)]
