"""Dependencies that no catalog declares, inferred from names, schemas and descriptions.

Parameters are matched with what other tools provide (`matching`), descriptions are searched for
other tools' names (`mentions`), and tools as a whole for logins, checks and states (`states`).
Every edge says which evidence it has, and how often such edges are right.

No encoder is asked. Where words do not match, the tool nearest to a parameter by meaning was right
for one parameter in five (ToolLinkOS, all-MiniLM-L6-v2, whatever the least cosine): it is mostly a
sibling that asks for the same."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pegboard.records import Edge, Tool
from tasks.dependencies.evidence import Evidence, Kind
from tasks.dependencies.matching import Matching
from tasks.dependencies.mentions import mention_edges
from tasks.dependencies.provided import Known, known_of
from tasks.dependencies.states import state_edges

INFERENCE_VERSION = 2
LEAST = 0.3
"""Confidence below which an edge is not even worth being judged."""
PER_TOOL = 8
"""Inferred dependencies of one tool; a request gets some ten tools, and few need more than these.
"""

_REASONS: dict[Kind, str] = {
    "here": "{target} tells the {what}, which {parameter} may refer to.",
    "here-far": "{target} tells the {what}, which {parameter} may refer to.",
    "mentioned": "The description of {parameter} names {target}.",
    "mentioned-before": "The description of {source} says that {target} comes before.",
    "session": "A login with {target} gives the {what}.",
    "login": "{source} belongs to {what}, and {target} logs in there.",
    "check": "{target} checks whether the {what} is valid.",
    "state-before": "{target} tells the {what} that {source} changes.",
    "state-switch": "{target} switches the {what} that {source} tells.",
    "state-needed": "{source} works with {what}, which may be off; {target} tells.",
    "connection": "{source} may reach out over the {what}, which may be off; {target} tells.",
}
_PROVIDES = "{target} provides the {what} that {parameter} asks for."


def infer_edges(tools: Sequence[Tool]) -> list[Edge]:
    """The inferred edges of these tools, those above `LEAST`, sorted by source, target, type and
    parameter.

    Of two tools that need each other by the same evidence the better one is kept, and of a pair of
    tools one edge for each parameter or one for the tool as a whole.
    """
    known = [known_of(tool) for tool in sorted(tools, key=_place)]
    found = _one_way(
        _strongest((*Matching(known).edges(), *mention_edges(known), *state_edges(known)))
    )
    by_source: dict[int, list[Evidence]] = defaultdict(list)
    for one in found:
        by_source[one.source].append(one)
    kept = [
        one for several in by_source.values() for one in sorted(several, key=_strength)[:PER_TOOL]
    ]
    edges = [_edge(one, known) for one in kept]
    return sorted(
        edges, key=lambda edge: (edge.source, edge.target, edge.type, edge.parameter or "")
    )


def _place(tool: Tool) -> tuple[str, str, str]:
    return f"{tool.catalog}/", f"{tool.agent}/", tool.id


def _strength(one: Evidence) -> tuple[float, int, str, str]:
    return -one.confidence, one.target, one.parameter or "", one.kind


def _strongest(found: Iterable[Evidence]) -> list[Evidence]:
    """The strongest finding for each parameter of a pair of tools, and for a pair as a whole only
    where there is no other.
    """
    best: dict[tuple[int, int, str | None], Evidence] = {}
    said: dict[tuple[int, str | None], set[int]] = defaultdict(set)
    for one in sorted(found, key=_strength):
        if one.kind == "mentioned":
            said[one.source, one.parameter].add(one.target)
        if one.confidence >= LEAST:
            best.setdefault((one.source, one.target, one.parameter), one)
    # Where a description says which tool provides a parameter, there is nothing to guess.
    best = {
        key: one
        for key, one in best.items()
        if one.target in said.get((one.source, one.parameter), {one.target})
    }
    by_parameter = {(one.source, one.target) for one in best.values() if one.parameter is not None}
    return [
        one
        for one in best.values()
        if one.parameter is not None or (one.source, one.target) not in by_parameter
    ]


def _one_way(found: Sequence[Evidence]) -> list[Evidence]:
    strengths: dict[tuple[int, int, Kind], float] = {}
    for one in found:
        key = (one.source, one.target, one.kind)
        strengths[key] = max(one.confidence, strengths.get(key, 0.0))

    def wins(one: Evidence) -> bool:
        ours, theirs = (
            strengths[one.source, one.target, one.kind],
            strengths.get((one.target, one.source, one.kind), 0.0),
        )
        return ours > theirs or (ours == theirs and one.source < one.target)

    return [one for one in found if wins(one)]


def _edge(one: Evidence, known: Sequence[Known]) -> Edge:
    source, target = known[one.source].tool, known[one.target].tool
    words = {
        "source": source.name,
        "target": target.name,
        "what": one.what,
        "parameter": one.parameter or "",
    }
    reason = _REASONS.get(one.kind, _PROVIDES).format_map(words)
    return Edge(
        source.id,
        target.id,
        one.type,
        one.parameter,
        reason,
        "inferred",
        one.confidence,
        f"{one.kind}: {one.what}",
    )
