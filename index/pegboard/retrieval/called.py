"""Tools that were just called, as context of a request: what uses their results, or usually
follows them, moves up.

The evidence for a tool is the sum of two values from 0 to 1: the confidence of the edge by which it
depends on one of the last `RECENT` tools, less where many tools do; and the share of the clients of
a request log that called it after the last tool (`[examples] sequences`). It raises the tool's
score in units of the distance between the first and the `SPREAD`th tool, which any strategy has.
A tool that no search found starts with the score of the last that one found. Probabilities stay
those of the request.

`WEIGHT` is the best of .5, 1 and 1.5 on UltraTool; `python -m benchmarks called` measures what it
brings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log2
from typing import Any

from pegboard.errors import QueryError
from pegboard.graph.tool_graph import ToolGraph
from pegboard.ranking import ScoredTool
from pegboard.retrieval.context import Context
from pegboard.retrieval.requests import Ranking

WEIGHT = 1.0
"""Of the evidence, in units of the distance: with 1, certainty raises the last of the first
`SPREAD` tools to the first place."""
SPREAD = 20
RECENT = 3
"""Calls whose results a tool may use."""


def check_called(called: Any) -> None:
    """Raise QueryError unless these are ids of tools."""
    valid = isinstance(called, list | tuple) and all(
        isinstance(tool, str) and tool.count("/") >= 2 for tool in called
    )
    if not valid:
        raise QueryError(
            f"The called tools are {called!r:.80}; expected a list of ids, such as "
            f"catalog/agent/tool, which `hit.tool.id` gives."
        )


async def lifted(ranking: Ranking, context: Context) -> list[ScoredTool]:
    """Return a ranking in which the tools that the called ones speak for are raised, and added
    where they pass the caller's filter. Their evidence is recorded in the context.
    """
    if not ranking:
        return []
    sequences = context.loaded.release.manifest.get("sequences", {})
    evidence = evidence_of(context.called, context.loaded.graph, sequences)
    found = {row.tool for row in ranking}
    more = await context.passing(sorted(evidence.keys() - found))
    evidence = {tool: value for tool, value in evidence.items() if tool in found or tool in more}
    context.log.evidence.update(evidence)
    context.trace.note = f"{len(evidence)} tools raised, {len(more)} of them added"
    return raised(ranking, evidence)


def raised(ranking: Ranking, evidence: Mapping[str, float]) -> list[ScoredTool]:
    """Return a ranking, which is not empty, in which the tools with evidence are raised, and added
    if it lacks them.
    """
    unit = ranking[0].score - ranking[:SPREAD][-1].score
    more = sorted(evidence.keys() - {row.tool for row in ranking})
    rows = [*ranking, *(ScoredTool(tool, ranking[-1].score) for tool in more)]
    lifts = {tool: WEIGHT * unit * value for tool, value in evidence.items()}
    lifted_rows = [replace(row, score=row.score + lifts.get(row.tool, 0.0)) for row in rows]
    return sorted(lifted_rows, key=lambda row: -row.score)


def evidence_of(
    called: Sequence[str], graph: ToolGraph, sequences: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Return how much speaks for each tool as the next one, from 0 to 2.

    Args:
        called: ids, the last one last.
        sequences: by the tool before and the next one, the share of clients.
    """
    by_edges: dict[str, float] = {}
    for tool in called[-RECENT:]:
        users: dict[str, float] = {}
        for edge in graph.edges_to(tool):
            users[edge.source] = max(edge.confidence, users.get(edge.source, 0.0))
        for user, confidence in users.items():
            value = confidence / log2(1 + len(users))
            by_edges[user] = max(value, by_edges.get(user, 0.0))
    following = sequences.get(called[-1], {})
    return {
        tool: by_edges.get(tool, 0.0) + following.get(tool, 0.0)
        for tool in by_edges.keys() | following.keys()
    }
