"""Reranks by the tools that were just called: tools that use their results, or usually follow them,
move up.

The evidence for a tool is the sum of two values in 0..1: the confidence of the edge by which it
depends on one of the last `RECENT` tools, divided by the logarithm of the number of tools that do;
and the share of the clients of a request log that called it after the last tool
(`[examples] sequences`). The evidence raises the tool's score in units of the distance between the
first and the `SPREAD`th score, which is comparable across strategies. A tool that no search found
starts at the lowest score. Probabilities remain those of the request.

`WEIGHT` is the best of .5, 1 and 1.5 on UltraTool; `python -m benchmarks called` measures its
effect."""

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
"""Weight of the evidence in units of the score distance: with 1, evidence of 1 raises the
`SPREAD`th tool to the first rank."""
SPREAD = 20
"""Rank whose score distance to the first tool is the unit of the evidence."""
RECENT = 3
"""Number of last calls whose results a tool may use."""


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
    """Return the ranking with the tools raised for which the called tools are evidence; tools that
    the ranking lacks are added if they pass the caller's filter. Records the evidence in the
    context.
    """
    if not ranking:
        return []
    sequences = context.loaded.release.manifest.get("sequences", {})
    evidence = evidence_of(context.called, context.loaded.graph, sequences)
    ranked = {row.tool for row in ranking}
    added = await context.passing(sorted(evidence.keys() - ranked))
    evidence = {tool: value for tool, value in evidence.items() if tool in ranked or tool in added}
    context.log.evidence.update(evidence)
    context.trace.note = f"{len(evidence)} tools raised, {len(added)} of them added"
    return raised(ranking, evidence)


def raised(ranking: Ranking, evidence: Mapping[str, float]) -> list[ScoredTool]:
    """Return a non-empty ranking with the tools raised that have evidence, and those added that it
    lacks.
    """
    unit = ranking[0].score - ranking[:SPREAD][-1].score
    missing = sorted(evidence.keys() - {row.tool for row in ranking})
    rows = [*ranking, *(ScoredTool(tool, ranking[-1].score) for tool in missing)]
    lifts = {tool: WEIGHT * unit * value for tool, value in evidence.items()}
    lifted_rows = [replace(row, score=row.score + lifts.get(row.tool, 0.0)) for row in rows]
    return sorted(lifted_rows, key=lambda row: -row.score)


def evidence_of(
    called: Sequence[str], graph: ToolGraph, sequences: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Return the evidence for each tool as the next call, 0 to 2.

    Args:
        called: ids of called tools, the most recent last.
        sequences: the share of clients, by the preceding tool and the next one.
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
