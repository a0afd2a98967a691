"""Dependencies that no catalog declares, inferred from names, schemas and descriptions.

Parameters are matched with what other tools provide (`parameters`), descriptions are searched for
other tools' names (here), and tools as a whole for logins, checks and states (`states`). Every edge
says which evidence it has, and how often such edges are right.

No encoder is used. Where words do not match, the tool nearest to a parameter by meaning was right
for one parameter in five (ToolLinkOS, all-MiniLM-L6-v2, whatever the least cosine): it is mostly a
sibling with the same parameter."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from pegboard.records import Edge, Tool
from tasks.dependencies.evidence import Evidence, Kind, dependency_type
from tasks.dependencies.language import words_of
from tasks.dependencies.parameters import ParameterMatcher, SharedParameters
from tasks.dependencies.profiles import ToolProfile, profile_of
from tasks.dependencies.states import state_evidence

INFERENCE_VERSION = 5
MAX_EDGES = 8
"""Inferred dependencies of one tool; a request gets some ten tools, and few need more."""
MAX_DESCRIPTION = 4_000
"""Characters of a description that are searched for names of tools."""

_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-]?[A-Za-z0-9]+)+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|。")
_BEFORE = re.compile(
    r"(?i)\b(?:first|(?:before|after) (?:us|call)ing|prior|obtained (?:by|from|using|via)"
    r"|returned (?:by|from)|output of|results? of)\b|先|从"
)
_INSTEAD = re.compile(
    r"(?i)\b(?:instead|rather than|unlike|see also|similar to|alternative|prefer|differs?"
    r"|deprecated|don't|do not|not)\b"
)


def infer_edges(tools: Iterable[Tool]) -> list[Edge]:
    """Infer the edges of these tools, sorted by source, target, type and parameter."""
    tools = sorted(tools, key=attrgetter("agent", "id"))
    evidence = [
        finding for _, own in groupby(tools, attrgetter("agent")) for finding in evidence_of([*own])
    ]
    return edges_from(evidence, {tool.id: tool.name for tool in tools})


def evidence_of(tools: Sequence[Tool]) -> list[Evidence]:
    """Find the strongest evidence for each parameter of a pair of an agent's tools.

    Args:
        tools: all of the agent, in the order of their ids.
    """
    profiles = [profile_of(tool) for tool in tools]
    shared = SharedParameters(profiles)
    parameters = ParameterMatcher(profiles, shared).evidence()
    return _strongest((*parameters, *_mentions(profiles, shared), *state_evidence(profiles)))


def edges_from(evidence: Sequence[Evidence], names: Mapping[str, str]) -> list[Edge]:
    """Return the edges of the evidence of all tools, sorted by source, target, type and parameter.

    Of two tools that need each other by the same evidence the better one is kept, and of a pair of
    tools one edge for each parameter or one for the tool as a whole.

    Args:
        names: the names of the tools by id.
    """
    by_source: dict[str, list[Evidence]] = defaultdict(list)
    for finding in _one_way(evidence):
        by_source[finding.source].append(finding)
    edges = [
        _edge(finding, names)
        for findings in by_source.values()
        for finding in sorted(findings, key=_strength)[:MAX_EDGES]
    ]
    return sorted(
        edges, key=lambda edge: (edge.source, edge.target, edge.type, edge.parameter or "")
    )


def _mentions(profiles: Sequence[ToolProfile], shared: SharedParameters) -> Iterator[Evidence]:
    """Yield where descriptions of tools or parameters name a tool that has to be called before.

    A name has to be an identifier of two words or more, because `search` is also a word.
    """
    tools = [profile.tool for profile in profiles]
    siblings = {tool.name: tool.id for tool in tools if len(words_of(tool.name)) > 1}
    for profile in profiles:
        tool = profile.tool
        for parameter in profile.parameters:
            if parameter in shared or not parameter.takes_values:
                continue
            type_ = dependency_type(parameter.name, parameter.required)
            for target, sentence in _named_tools(parameter.description, siblings, tool.id):
                if parameter.required or _BEFORE.search(sentence):
                    what = parameter.name
                    yield Evidence(tool.id, target, type_, what, "mentioned", what)
        for target, sentence in _named_tools(tool.description, siblings, tool.id):
            if _BEFORE.search(sentence):
                type_ = dependency_type(None, True)
                yield Evidence(tool.id, target, type_, None, "mentioned-before", tool.name)


def _named_tools(
    description: str, siblings: Mapping[str, str], own: str
) -> Iterator[tuple[str, str]]:
    """Yield each named tool with its sentence, but for those offered in place of this one."""
    text = description[:MAX_DESCRIPTION]
    if siblings.keys().isdisjoint(_NAME.findall(text)):
        return
    for sentence in _SENTENCE.split(text):
        if _INSTEAD.search(sentence):
            continue
        for name in _NAME.findall(sentence):
            target = siblings.get(name)
            if target is not None and target != own:
                yield target, sentence


def _strength(finding: Evidence) -> tuple[float, str, str, str]:
    return -finding.confidence, finding.target, finding.parameter or "", finding.kind


def _strongest(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the strongest finding for each parameter of a pair of tools.

    One for the pair as a whole is returned only where there is no other.
    """
    best: dict[tuple[str, str, str | None], Evidence] = {}
    mentioned: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for finding in sorted(evidence, key=_strength):
        if finding.kind == "mentioned":
            mentioned[finding.source, finding.parameter].add(finding.target)
        best.setdefault((finding.source, finding.target, finding.parameter), finding)
    # Where a description says which tool provides a parameter, there is nothing to guess.
    certain = [
        finding
        for finding in best.values()
        if finding.target in mentioned.get((finding.source, finding.parameter), {finding.target})
    ]
    pairs = {(item.source, item.target) for item in certain if item.parameter is not None}
    return [
        finding
        for finding in certain
        if finding.parameter is not None or (finding.source, finding.target) not in pairs
    ]


def _one_way(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence without the weaker direction of tools that need each other alike."""
    strengths: dict[tuple[str, str, Kind], float] = {}
    for finding in evidence:
        key = (finding.source, finding.target, finding.kind)
        strengths[key] = max(finding.confidence, strengths.get(key, 0.0))

    def wins(finding: Evidence) -> bool:
        source, target, kind = finding.source, finding.target, finding.kind
        own, reverse = strengths[source, target, kind], strengths.get((target, source, kind), 0.0)
        return own > reverse or (own == reverse and source < target)

    return [finding for finding in evidence if wins(finding)]


def _edge(finding: Evidence, names: Mapping[str, str]) -> Edge:
    return Edge(
        finding.source,
        finding.target,
        finding.type,
        finding.parameter,
        finding.reason(names[finding.source], names[finding.target]),
        "inferred",
        finding.confidence,
        f"{finding.kind}: {finding.what}",
    )
