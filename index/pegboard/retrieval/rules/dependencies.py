"""The expansion of a ranking by the dependencies between tools.

Lumer et al., "Graph RAG-Tool Fusion", 2025, algorithm 1, lines 11 to 21: the first tool of the
ranking, then its dependencies depth first, then the second tool and its dependencies, and so on, no
tool twice; cut at last to the number of tools that is wanted."""

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
"""The share of its score by which the dependencies of the last tool stay below it, where nothing
follows them.
"""


@dataclass(frozen=True, slots=True)
class Dependencies(Part):
    """A refinement: the first tools of a ranking, each followed by what it needs, then the rest of
    the ranking.

    A dependency that the search found as well stands where it is needed, if that is further up.
    Scores still fall: those of the dependencies lie between that of the tool that brought them and
    that of the next, in even steps, and are equal where those are. Only what passes the caller's
    filter is added; what only a tool needs that does not pass is not needed. Why a tool was added
    is in `context.added`.

    Attributes:
        initial: the tools that are expanded, from the first. On ToolLinkOS 1, 2, 3 and 5 have
            mAP@10 .899, .904, .905 and .905.
        limit: the most dependencies of one tool, d_limit. There 3, 5, 7 and 10 have .686, .856,
            .901 and .905; more change nothing.
        origins: which edges count.
        rest: whether the rest of the ranking follows. Algorithm 1 ends with the expanded tools.
    """

    part: ClassVar[str] = "dependencies"
    may_be_zero: ClassVar[tuple[str, ...]] = ("initial", "limit")
    initial: int = 3
    limit: int = DEPENDENCY_LIMIT
    origins: tuple[EdgeOrigin, ...] = ORIGINS
    rest: bool = True

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The expanded ranking, cut to what the request wants."""
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
        """What each of the first tools needs, as far as it passes; and how many were seen on the
        way that do not.

        A check may be a query to a store, so all tools that one traversal reaches are checked
        together.
        """
        checked, refused = set(passing), set[str]()
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
    """The tools that stand somewhere because they are needed there, by the edge that says so; the
    first tools that an earlier one needs are among them.
    """
    placed: dict[str, Edge] = {}
    before: set[str] = set()
    for tool, walk in walks.items():
        before.add(tool)
        for edge in walk:
            if edge.target not in before:
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
    """The expanded ranking: tools that stand for themselves keep their scores, those in between get
    scores in between.
    """
    own = {row.tool: row.score for row in ranking}
    order: dict[str, None] = {}
    for tool, walk in walks.items():
        order.setdefault(tool)
        order.update(dict.fromkeys(edge.target for edge in walk if edge.target in placed))
    order.update(dict.fromkeys(own))
    scored: list[ScoredTool] = []
    waiting: list[str] = []
    for tool in order:
        if tool in placed:
            waiting.append(tool)
            continue
        scored += _between(waiting, scored, own[tool])
        scored.append(ScoredTool(tool, own[tool]))
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
