"""`python -m benchmarks dependencies`: what inferred dependencies are worth, one line
of JSON for each configuration.

ToolLinkOS (Graph RAG-Tool Fusion) with every declared dependency hidden, with the declared ones,
and with none. Its Algorithm 1: the best three tools of a vector search (name, description and
arguments; the embedded encoder), each followed by its dependencies depth first, the first ten kept.
`mAP@10` divides the sum of the precisions at the hits by min(tools needed, 10). `precision` and
`recall` are those of the pairs of tools against the declared pairs, and against what follows from
these (`closure`). `without` leaves evidence of one kind
out. Other catalogs declare nothing: what is counted there is edges for each tool.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from time import process_time
from typing import Any

import numpy as np

from benchmarks.performance.data import encode, lines, listing_of, require_benchmarks
from pegboard.graph.declared import declared_edges
from pegboard.records import Edge, Tool
from pegboard.search.text import identifier_words
from tasks.dependencies.infer import infer_edges

BEST, LIMIT, FINAL = 3, 10, 10
MIN_CONFIDENCE = 0.5
Graph = Mapping[str, Sequence[str]]


def main() -> None:
    """Print a line for each configuration."""
    formatter = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(description=__doc__, formatter_class=formatter).parse_args()
    require_benchmarks()
    tools = listing_of("toollinkos").tools
    declared, _ = declared_edges(tools)
    inferred = infer_edges(tools)
    asked = _Asked(tools)
    for name, edges in (
        ("none", []),
        ("declared", declared),
        ("both", [*declared, *_kept(inferred)]),
    ):
        _say(catalog="toollinkos", edges=name, **asked.measured(edges))
    for least in (MIN_CONFIDENCE, 0.7, 0.8):
        edges = _kept(inferred, least)
        _say(
            catalog="toollinkos",
            edges="inferred",
            least=least,
            **asked.measured(edges),
            **_agreement(edges, declared),
        )
    for kind in sorted({_kind(edge) for edge in inferred}):
        edges = [edge for edge in _kept(inferred) if _kind(edge) != kind]
        _say(catalog="toollinkos", edges="inferred", without=kind, **asked.measured(edges))
    for name in ("toollinkos", "seal-tools", "ultratool", "livemcpbench"):
        _count(name)


class _Asked:
    """The requests of ToolLinkOS, their needed tools, and the results of a vector search."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        rows = lines("toollinkos/instances.jsonl")
        self._needed = [set(row["golden_function_names"]) for row in rows]
        self._main = [row["main_golden_function_name"] for row in rows]
        documents, requests = (
            encode([_document(tool) for tool in tools]),
            encode([row["user_query"] for row in rows]),
        )
        order = np.argsort(-(requests @ documents.T), axis=1, kind="stable")[:, :FINAL]
        self._found = [[tools[at].name for at in row] for row in order]

    def measured(self, edges: Iterable[Edge]) -> dict[str, Any]:
        """mAP@10 behind the search, and behind the right tool in the first place."""
        graph = _graph(edges)
        behind = [
            _precision(_expanded(found, graph), needed)
            for found, needed in zip(self._found, self._needed, strict=True)
        ]
        right = [
            _precision(_expanded([name], graph), needed)
            for name, needed in zip(self._main, self._needed, strict=True)
        ]
        return {
            "mAP@10": round(float(np.mean(behind)), 3),
            "mAP@10 behind the right tool": round(float(np.mean(right)), 3),
        }


def _graph(edges: Iterable[Edge]) -> Graph:
    """The targets of every tool by name: declared ones first, then others by confidence."""
    targets: dict[str, dict[str, None]] = defaultdict(dict)
    for edge in sorted(edges, key=lambda edge: (edge.origin != "declared", -edge.confidence)):
        source, target = (id_.rpartition("/")[2] for id_ in (edge.source, edge.target))
        targets[source][target] = None
    return {source: list(names) for source, names in targets.items()}


def _expanded(found: Sequence[str], graph: Graph) -> list[str]:
    """Algorithm 1; without any dependency the search's own tools."""
    names: dict[str, None] = {}
    for name in found[:BEST] if graph else found:
        names |= dict.fromkeys([name, *_behind(name, graph)])
    return list(names)[:FINAL]


def _behind(name: str, graph: Graph, limit: int = LIMIT) -> list[str]:
    """What a tool depends on, depth first."""
    seen: dict[str, None] = {}

    def visit(at: str) -> None:
        for target in graph.get(at, ()):
            if len(seen) < limit and target not in seen and target != name:
                seen[target] = None
                visit(target)

    visit(name)
    return list(seen)


def _precision(found: Sequence[str], needed: Collection[str]) -> float:
    hits = [name in needed for name in found]
    return sum(sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit) / min(
        len(needed), FINAL
    )


def _agreement(edges: Iterable[Edge], declared: Sequence[Edge]) -> dict[str, float]:
    pairs, known = (
        {(edge.source, edge.target) for edge in edges},
        {(edge.source, edge.target) for edge in declared},
    )
    closure = {
        (source, target)
        for source in {one for one, _ in known}
        for target in _reached(source, known)
    }
    return {
        "precision": round(len(pairs & known) / len(pairs), 3),
        "recall": round(len(pairs & known) / len(known), 3),
        "precision, closure": round(len(pairs & closure) / len(pairs), 3),
    }


def _reached(source: str, pairs: Collection[tuple[str, str]]) -> list[str]:
    graph: dict[str, list[str]] = defaultdict(list)
    for one, target in pairs:
        graph[one].append(target)
    return _behind(source, graph, sys.maxsize)


def _count(name: str) -> None:
    tools = listing_of(name).tools
    started = process_time()
    edges = infer_edges(tools)
    seconds, kept = process_time() - started, _kept(edges)
    kinds = Counter(_kind(edge) for edge in kept)
    sources = len({edge.source for edge in kept}) / len(tools)
    _say(
        catalog=name,
        tools=len(tools),
        edges=len(kept),
        per_tool=round(len(kept) / len(tools), 2),
        tools_with_edges=round(sources, 2),
        cpu_seconds=round(seconds, 1),
        kinds=dict(sorted(kinds.items())),
    )


def _document(tool: Tool) -> str:
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    arguments = " ".join(
        f"{identifier_words(name)}: {one.get('description', '')}."
        for name, one in properties.items()
    )
    return f"{identifier_words(tool.name)}. {tool.description} {arguments}"


def _kept(edges: Iterable[Edge], least: float = MIN_CONFIDENCE) -> list[Edge]:
    return [edge for edge in edges if edge.confidence >= least]


def _kind(edge: Edge) -> str:
    return edge.evidence.partition(":")[0]


def _say(**values: Any) -> None:
    print(json.dumps(values, ensure_ascii=False), flush=True)
