"""The tools of a release as a list by agent, and its dependencies."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from zlib import crc32

from pegboard.records import Edge
from pegboard.search.loaded import LoadedRelease
from tasks.report.excerpts import excerpt
from tasks.report.vectors import agent_of, read_tools

MAX_TOOLS = 5_000
"""Tools that are listed and drawn on the map: about 2 MB of the page, and at most 8 MB."""
NAME = 100
DESCRIPTION = 160
MAX_NEEDED = 50
"""Tools that others depend on, those with most dependents first."""
MAX_DEPENDENTS = 12
REASON = 160


def tools_data(loaded: LoadedRelease, shown: int = MAX_TOOLS) -> dict[str, Any]:
    """Return the agents with their tools, sorted by id.

    Args:
        shown: the most tools; of more, equally many of each agent.
    """
    ids = sorted(tool for tool, _, _ in loaded.tool_names())
    chosen = [ids[place] for place in sorted(choose_evenly(ids, shown))]
    totals, tools = Counter(map(agent_of, ids)), read_tools(loaded, chosen)
    agents: list[dict[str, Any]] = []
    for identity, group in groupby(chosen, agent_of):
        agent = loaded.agents[identity]
        rows = [
            {
                "id": tool,
                "name": excerpt(tools[tool].name, NAME),
                "description": excerpt(tools[tool].description, DESCRIPTION),
                "flags": list(tools[tool].flags),
            }
            for tool in group
        ]
        agents.append(
            {
                "id": identity,
                "name": excerpt(agent.name, NAME),
                "catalog": agent.catalog,
                "description": excerpt(agent.description, DESCRIPTION),
                "total": totals[identity],
                "shown": rows,
            }
        )
    return {"total": len(ids), "shown": len(chosen), "agents": agents}


def choose_evenly(ids: Sequence[str], count: int) -> list[int]:
    """Return the places of `count` tools, equally many of each agent as far as they go round.

    Equal ids give equal places, in every run.
    """
    if len(ids) <= count:
        return list(range(len(ids)))
    turns: Counter[str] = Counter()
    queue: list[tuple[int, str, int]] = []
    for place in sorted(range(len(ids)), key=lambda at: (crc32(ids[at].encode()), ids[at])):
        owner = agent_of(ids[place])
        turns[owner] += 1
        queue.append((turns[owner], owner, place))
    return [place for _, _, place in sorted(queue)[:count]]


def dependencies_data(loaded: LoadedRelease) -> dict[str, Any]:
    """Return the tools that others depend on, with their dependents."""
    graph = loaded.graph
    needed = graph.needed()
    ranked = sorted(needed, key=lambda tool: (-needed[tool], tool))
    rows = [_needed_tool(tool, needed[tool], graph.edges_to(tool)) for tool in ranked[:MAX_NEEDED]]
    origins = Counter(edge.origin for edge in graph.edges)
    return {
        "edges": len(graph),
        "origins": dict(sorted(origins.items())),
        "total": len(needed),
        "shown": rows,
    }


def _needed_tool(tool: str, dependents: int, edges: Sequence[Edge]) -> dict[str, Any]:
    sources = {edge.source: edge for edge in reversed(edges)}
    rows = [
        {
            "id": source,
            "type": edge.type,
            "parameter": edge.parameter,
            "reason": excerpt(edge.reason, REASON),
            "origin": edge.origin,
            "confidence": edge.confidence,
        }
        for source, edge in sorted(sources.items())[:MAX_DEPENDENTS]
    ]
    return {"id": tool, "total": dependents, "shown": rows}
