"""The inferred edges that an LLM judges, and what becomes of an edge by its verdict."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.graph.declared import declared_edges
from pegboard.records import DependencyType, Edge, Tool
from tasks.dependencies.infer import infer_edges

AGREED = 0.9
"""The confidence of an edge for which there is evidence and with which a reader of both
descriptions agreed. It is not measured.
"""


def candidates_of(tools: Sequence[Tool]) -> Mapping[str, Sequence[Edge]]:
    """The inferred edges of each tool (by id) that has any, in the order of `infer_edges`, but for
    tools of which a catalog speaks.
    """
    spoken_for = {edge.source for edge in declared_edges(tools)[0]}
    candidates: dict[str, list[Edge]] = defaultdict(list)
    for edge in infer_edges(tools):
        if edge.source not in spoken_for:
            candidates[edge.source].append(edge)
    return dict(candidates)


def judged_edges(inferred: Iterable[Edge], tools: Iterable[Tool]) -> list[Edge]:
    """The inferred edges after what an LLM said of them: agreed, an edge is `judged`, with its
    reason; disagreed, it is left out.

    A verdict is in the `dependencies` of a tool's enrichment. An edge that was not judged stays as
    it is, and a verdict on an edge that is not inferred any more says nothing.
    """
    verdicts = {
        (tool.id, str(one.get("tool")), str(one.get("parameter") or "")): one
        for tool in tools
        if tool.enrichment is not None
        for one in tool.enrichment.dependencies
    }
    judged = [
        _judged(edge, verdicts.get((edge.source, edge.target, edge.parameter or "")))
        for edge in inferred
    ]
    return [edge for edge in judged if edge is not None]


def _judged(edge: Edge, verdict: Mapping[str, Any] | None) -> Edge | None:
    if verdict is None:
        return edge
    if not verdict.get("needed"):
        return None
    type_: DependencyType
    if edge.parameter is None:
        type_ = (
            "tool-directly-depends-on" if verdict.get("direct") else "tool-indirectly-depends-on"
        )
    else:
        type_ = (
            "parameter-directly-depends-on"
            if verdict.get("direct")
            else "parameter-indirectly-depends-on"
        )
    reason = str(verdict.get("reason") or edge.reason)
    return replace(
        edge, type=type_, reason=reason, origin="judged", confidence=max(edge.confidence, AGREED)
    )
