"""The tool graph of a release: edges that catalogs declare, inferred ones, and an LLM's verdicts.

A catalog's declarations count most: where it declares what a tool depends on, nothing is inferred
for that tool. On ToolLinkOS, what was inferred beside it cost half a point of mAP@10. Where an LLM
judged an inferred edge, its verdict counts: agreed, the edge is `judged`; disagreed, it is left
out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.graph.declared import declared_edges
from pegboard.records import Edge, Tool
from tasks.dependencies.evidence import dependency_type
from tasks.dependencies.infer import INFERENCE_VERSION, infer_edges

EDGES_VERSION = 300 + INFERENCE_VERSION
"""Part of the digest of edges: raise it whenever the same tools give other edges."""

MIN_CONFIDENCE = 0.5
"""An inferred edge that is wrong more often than right is not worth one of ten places among the
tools that a request gets."""

JUDGED_CONFIDENCE = 0.9
"""The least confidence of an edge that a reader of both descriptions agreed with. Not measured."""


def edges_of(
    tools: Sequence[Tool], *, infer: bool = True, min_confidence: float = MIN_CONFIDENCE
) -> list[Edge]:
    """Return the dependencies between these tools, sorted by source, target, type and parameter.

    Args:
        tools: verdicts on inferred edges are in their `enrichment`.
        infer: also infer those that no catalog declares. Declared ones that name an unknown tool
            are left out (`pegboard.graph.declared` says which).
        min_confidence: 0 to 1; inferred edges below are left out.
    """
    declared, _ = declared_edges(tools)
    return merged_edges(declared, infer_edges(tools) if infer else [], tools, min_confidence)


def merged_edges(
    declared: Sequence[Edge],
    inferred: Iterable[Edge],
    judged: Iterable[Tool],
    min_confidence: float = MIN_CONFIDENCE,
) -> list[Edge]:
    """Return the edges of a release, sorted as `edges_of` does.

    Args:
        judged: the tools whose enrichments have verdicts; others change nothing.
    """
    sources = {edge.source for edge in declared}
    confident = [
        edge
        for edge in judged_edges(inferred, judged)
        if edge.confidence >= min_confidence and edge.source not in sources
    ]
    return sorted((*declared, *confident), key=_key)


def candidates_of(tools: Sequence[Tool]) -> Mapping[str, Sequence[Edge]]:
    """Return the inferred edges of each tool (by id) that an LLM may judge.

    They are in the order of `infer_edges`; tools with declared dependencies have none.
    """
    sources = {edge.source for edge in declared_edges(tools)[0]}
    candidates: dict[str, list[Edge]] = defaultdict(list)
    for edge in infer_edges(tools):
        if edge.source not in sources:
            candidates[edge.source].append(edge)
    return dict(candidates)


def judged_edges(inferred: Iterable[Edge], tools: Iterable[Tool]) -> list[Edge]:
    """Apply an LLM's verdicts, which are in the `dependencies` of a tool's enrichment.

    Agreed, an edge is `judged`, with the LLM's reason; disagreed, it is left out. An edge without a
    verdict stays as it is, and a verdict on an edge that is no longer inferred has no effect.
    """
    verdicts = {
        (tool.id, str(verdict.get("tool")), str(verdict.get("parameter") or "")): verdict
        for tool in tools
        if tool.enrichment is not None
        for verdict in tool.enrichment.dependencies
    }
    judged = (
        _judged(edge, verdicts.get((edge.source, edge.target, edge.parameter or "")))
        for edge in inferred
    )
    return [edge for edge in judged if edge is not None]


def _judged(edge: Edge, verdict: Mapping[str, Any] | None) -> Edge | None:
    if verdict is None:
        return edge
    if not verdict.get("needed"):
        return None
    return replace(
        edge,
        type=dependency_type(edge.parameter, bool(verdict.get("direct"))),
        reason=str(verdict.get("reason") or edge.reason),
        origin="judged",
        confidence=max(edge.confidence, JUDGED_CONFIDENCE),
    )


def _key(edge: Edge) -> tuple[str, str, str, str]:
    return edge.source, edge.target, edge.type, edge.parameter or ""
