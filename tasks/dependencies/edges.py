"""Every edge of the tool graph of a release: what catalogs declare, what is inferred, and what an
LLM said about that.

A catalog's word counts most: where it declares what a tool depends on, nothing is inferred for that
tool. On ToolLinkOS, what was inferred beside it cost half a point of mAP@10. Where an LLM judged an
inferred edge, its verdict counts: agreed, the edge is `judged`; disagreed, it is left out.
"""

from collections.abc import Sequence

from pegboard.graph.declared import declared_edges
from pegboard.records import Edge, Tool
from tasks.dependencies.candidates import judged_edges
from tasks.dependencies.infer import INFERENCE_VERSION, infer_edges

EDGES_VERSION = 300 + INFERENCE_VERSION
"""Part of what edges are known by: another number, and the pipeline makes them anew. Raise it
whenever the same tools give other edges.
"""

MIN_CONFIDENCE = 0.5
"""An inferred edge that is wrong more often than right is not worth a place among the ten tools
that a request gets.
"""


def edges_of(
    tools: Sequence[Tool],
    *,
    infer: bool = True,
    min_confidence: float = MIN_CONFIDENCE,
) -> list[Edge]:
    """The dependencies between these tools, sorted by source, target, type and parameter; equal
    tools give equal edges.

    Args:
        tools: verdicts on inferred edges are in their `enrichment`.
        infer: also those that no catalog declares. Declared ones that name an unknown tool are left
            out (`pegboard.graph.declared` says which).
        min_confidence: 0 to 1; inferred edges below are left out.
    """
    declared, _ = declared_edges(tools)
    spoken_for = {edge.source for edge in declared}
    found = judged_edges(infer_edges(tools), tools) if infer else []
    kept = [
        edge
        for edge in found
        if edge.confidence >= min_confidence and edge.source not in spoken_for
    ]
    return sorted((*declared, *kept), key=_key)


def _key(edge: Edge) -> tuple[str, str, str, str]:
    return edge.source, edge.target, edge.type, edge.parameter or ""
