"""The tools of a release as a list by agent, and its dependencies."""

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pegboard.search.loaded import LoadedRelease
from tasks.report.excerpts import excerpt
from tasks.report.vectors import SAMPLE, agent_of, choose_evenly, read_tools

if TYPE_CHECKING:
    import polars as pl

NAME = 100
DESCRIPTION = 160
MAX_NEEDED = 50
"""Tools that others depend on, those with most dependents first."""
MAX_DEPENDENTS = 12
REASON = 160


def tools_data(loaded: LoadedRelease, shown: int = SAMPLE) -> dict[str, Any]:
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


def dependencies_data(loaded: LoadedRelease) -> dict[str, Any]:
    """Return the tools that others depend on, with their dependents."""
    import polars as pl

    edges = pl.DataFrame(pl.from_arrow(loaded.edge_rows()))
    needed = edges.group_by("target").agg(pl.col("source").n_unique().alias("total"))
    ranked = needed.sort(["total", "target"], descending=[True, False])
    own = edges.join(ranked.head(MAX_NEEDED), on="target", how="semi")
    rows = [
        {"id": target, "total": total, "shown": _dependents(own.filter(pl.col("target") == target))}
        for target, total in ranked.head(MAX_NEEDED).iter_rows()
    ]
    origins = edges.group_by("origin").len().sort("origin")
    return {
        "edges": edges.height,
        "origins": dict(origins.iter_rows()),
        "total": needed.height,
        "shown": rows,
    }


def _dependents(edges: "pl.DataFrame") -> list[dict[str, Any]]:
    """The first edges of the first tools that depend on one."""
    first = edges.unique("source", keep="first", maintain_order=True).head(MAX_DEPENDENTS)
    columns = ("source", "type", "parameter", "reason", "origin", "confidence")
    return [
        {**row, "id": row.pop("source"), "reason": excerpt(row["reason"], REASON)}
        for row in first.select(columns).iter_rows(named=True)
    ]
