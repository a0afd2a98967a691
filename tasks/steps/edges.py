"""Compose the rows of the table `edges`: which tool of the release depends on which other.

Declarations of a catalog take precedence: if it declares dependencies of a tool, none are inferred
for that tool. On ToolLinkOS, additional inferred edges cost half a point of mAP@10. `[overrides]`
are applied after both. Only rows that differ are written.

Inferred edges are stored between builds, since those of an agent depend on its tools only:

    edges/inferred-<digest>      rows of `edges`, named by the digest of all tools
    edges/agents-<digest>.json   the digest of each agent's tools
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.graph.declared import declared_edges
from pegboard.graph.tool_graph import DIRECT
from pegboard.records import Dependency, Edge, Tool
from pegboard.store.contract import CHECKSUM, column_names, edge_digest, edge_key
from tasks.dependencies.infer import INFERENCE_VERSION, dependency_type, infer_agent_edges
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, read_rows, readable, store_latest
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.runtime import workers
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import DependencyOverride
from tasks.settings.release import GraphSettings

if TYPE_CHECKING:
    import polars as pl

EDGES_VERSION = 300 + INFERENCE_VERSION
"""Raise this when the same tools give other edges; it is part of the digest of edges."""
POINTER = "edges/latest"
INFERRED_POINTER = f"edges/latest-inferred-{INFERENCE_VERSION}"
TOOLS_AT_ONCE = 2_000
"""Number of tools, of several agents, in one call of a worker."""
DECIMALS = 4
"""Number of decimals of a confidence, so that all languages write it alike."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The rows of a release's `edges` as a row set of the lake.

    Attributes:
        origins: number of edges by origin, `declared` or `inferred`.
        unresolved: a sentence for each declared dependency that is not an edge, with the reason.
    """

    path: str
    rows: int
    origins: Mapping[str, int]
    unresolved: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the unresolved dependencies as JSON values."""
        return {
            "count": self.rows,
            "origins": dict(self.origins),
            "unresolved": list(self.unresolved),
        }


def compose_edges(configuration: Configuration, snapshots: Mapping[str, str]) -> Edges:
    """Compose the edges between the tools of snapshots (catalog -> digest), or find them composed
    before.
    """
    import polars as pl

    lake = Lake(configuration.uri)
    settings = configuration.graph
    overrides = {
        tool: override.dependencies
        for tool, override in sorted(configuration.overrides.items())
        if override.dependencies
    }
    path = _path(lake, settings, snapshots, overrides)
    if (stored_edges := _known(lake, path)) is not None:
        return stored_edges
    declared, unresolved = declared_edges(_tools(lake, snapshots))
    frames: list[pl.DataFrame] = []
    inferred: list[Edge] = []
    if settings.infer:
        source = pl.col("source")
        declaring_tools = {edge.source for edge in declared}
        is_confident = pl.col("confidence") >= settings.min_confidence
        rows = inferred_rows(lake, snapshots)
        rows = rows.filter(is_confident & ~source.is_in(declaring_tools))
        is_overridden = source.is_in([*overrides])
        frames.append(rows.filter(~is_overridden))
        inferred = _edges_of(rows.filter(is_overridden))
    if overrides:
        ids = snapshot_rows(lake, snapshots, "tools", ["id"]).get_column("id")
        override_edges, declared, inferred = _overridden(
            overrides, frozenset(ids), declared, inferred, unresolved
        )
        declared = [*override_edges, *declared]
    rows = pl.concat([_frame(_rows([*declared, *inferred], declared)), *frames])
    lake.write_json(f"{path}-unresolved.json", {"unresolved": unresolved})
    row_set = store_latest(lake, path, POINTER, "key", rows, ["digest"])
    return Edges(path, row_set.rows, _origins(rows), tuple(unresolved))


def _overridden(
    overrides: Mapping[str, Sequence[DependencyOverride]],
    ids: Collection[str],
    declared: Sequence[Edge],
    inferred: Sequence[Edge],
    problems: list[str],
) -> tuple[list[Edge], list[Edge], list[Edge]]:
    """Apply `[overrides]`. Return the edges that they set, and the declared and inferred edges that
    they leave. Overrides of unknown tools are added to `problems`.
    """
    edges: list[Edge] = []
    replaced: set[tuple[str, str, str | None]] = set()
    forbidden: set[tuple[str, str]] = set()
    for source, dependencies in overrides.items():
        if source not in ids:
            continue
        for dependency in dependencies:
            sibling = f"{source.rpartition('/')[0]}/{dependency.tool}"
            target = dependency.tool if dependency.tool in ids else sibling
            if target not in ids or target == source:
                problems.append(
                    f"{source}: its override names the tool '{dependency.tool}', which is not on "
                    f"the board, or itself; give another tool's id, or its name at the same agent"
                )
            elif dependency.forbid and dependency.parameter is None:
                forbidden.add((source, target))
            else:
                replaced.add((source, target, dependency.parameter))
                if not dependency.forbid:
                    edges.append(_override_edge(source, target, dependency))

    def remains(edge: Edge) -> bool:
        pair = edge.source, edge.target
        return pair not in forbidden and (*pair, edge.parameter) not in replaced

    return edges, [*filter(remains, declared)], [*filter(remains, inferred)]


def _override_edge(source: str, target: str, dependency: DependencyOverride) -> Edge:
    edge_type = dependency.type or dependency_type(dependency.parameter, True)
    return Edge(source, target, edge_type, dependency.parameter, dependency.reason)


def _tools(lake: Lake, snapshots: Mapping[str, str]) -> list[Tool]:
    """Return the tools with dependencies, and the tools that dependencies may name, without their
    schemas.
    """
    import polars as pl

    columns = ["id", "catalog", "agent", "name", "dependencies"]
    rows = snapshot_rows(lake, snapshots, "tools", columns)
    has_dependencies = pl.col("dependencies") != "[]"
    texts = rows.filter(has_dependencies).get_column("dependencies")
    names = list({str(entry["tool"]).strip() for text in texts for entry in json.loads(text)})
    is_named = pl.col("id").is_in(names) | pl.col("name").is_in(names)
    return [
        Tool(*row, dependencies=tuple(Dependency(**entry) for entry in json.loads(dependencies)))
        for *row, dependencies in rows.filter(has_dependencies | is_named).iter_rows()
    ]


def _rows(edges: Iterable[Edge], declared: Iterable[Edge]) -> Iterator[dict[str, Any]]:
    """Yield the rows without checksums. The edges of a tool are sorted by importance: declared ones
    first in the catalog's order, then direct ones, then by confidence.
    """
    declared_order = {_key(edge): position for position, edge in enumerate(declared)}
    by_source: dict[str, list[Edge]] = {}
    for edge in edges:
        by_source.setdefault(edge.source, []).append(edge)
    for tool_edges in by_source.values():
        tool_edges.sort(
            key=lambda edge: (
                declared_order.get(_key(edge), len(declared_order)),
                edge.type not in DIRECT,
                -edge.confidence,
                _key(edge),
            )
        )
        for place, edge in enumerate(tool_edges):
            confidence = round(float(edge.confidence), DECIMALS)
            row = {
                **asdict(edge),
                "parameter": edge.parameter or None,
                "confidence": confidence,
                "place": place,
            }
            yield {"key": _key(edge), **row, "digest": edge_digest(row)}


def _key(edge: Edge) -> str:
    return edge_key(edge.source, edge.target, edge.type, edge.parameter)


def _path(
    lake: Lake,
    settings: GraphSettings,
    snapshots: Mapping[str, str],
    overrides: Mapping[str, Sequence[DependencyOverride]],
) -> str:
    tools = snapshot_rows(lake, snapshots, "tools", ["id", "digest"]).sort("id").rows()
    override_values = {
        tool: [dependency.model_dump() for dependency in dependencies]
        for tool, dependencies in overrides.items()
    }
    inputs = (settings.infer, settings.min_confidence, tools, override_values)
    return f"edges/{digest(EDGES_VERSION, *inputs)}"


def _known(lake: Lake, path: str) -> Edges | None:
    done = find_rows(lake, path, _frame(()).columns)
    record: Any = lake.read_json(f"{path}-unresolved.json") if done else None
    if done is None or record is None:
        return None
    return Edges(
        path,
        done.rows,
        _origins(read_rows(lake, path, ["origin"])),
        tuple(record["unresolved"]),
    )


def _origins(rows: "pl.DataFrame") -> dict[str, int]:
    return dict(sorted(Counter(rows.get_column("origin").to_list()).items()))


def _frame(rows: Iterable[Mapping[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    columns = [name for name in column_names("edges") if name != CHECKSUM]
    return pl.DataFrame(
        list(rows),
        schema=dict.fromkeys(columns, pl.String) | {"confidence": pl.Float64, "place": pl.Int32},
    )


# --- Inferred edges, which are stored between builds ---


def inferred_rows(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return the inferred edges of snapshots (catalog -> digest) as rows of `edges`. They are
    inferred again only for agents whose tools changed since the last build.
    """
    import polars as pl

    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"]).sort("agent", "id")
    path = f"edges/inferred-{digest(INFERENCE_VERSION, tools.rows())}"
    rows = _frame(())
    if find_rows(lake, path, rows.columns) is not None:
        return read_rows(lake, path, rows.columns)
    by_agent = groupby(tools.iter_rows(), itemgetter(1))
    agents = {
        agent: digest([[tool, tool_digest] for tool, _, tool_digest in agent_tools])
        for agent, agent_tools in by_agent
    }
    base = latest_rows(lake, INFERRED_POINTER)
    base_agents = lake.read_json(_agents_path(base.path)) if base else None
    base_rows = readable(lake, base, rows.columns) if base else None
    frames = [rows]
    unchanged = set[str]()
    if base_rows is not None and base_agents is not None:
        unchanged = {
            agent
            for agent, agent_digest in agents.items()
            if base_agents.get(agent) == agent_digest
        }
        source_agent = pl.col("source").str.replace("/[^/]*$", "")
        frames.append(base_rows.filter(source_agent.is_in(unchanged)))
    changed = tools.filter(~pl.col("agent").is_in(unchanged))
    changed_rows = snapshot_rows(lake, snapshots, "tools", ids=changed.get_column("id"))
    chunks = _by_agents(changed_rows.sort("agent", "id"), TOOLS_AT_ONCE)
    calls = [partial(_infer_edges_of_rows, chunk) for chunk in chunks]
    frames += [_frame(_rows(edges, ())) for edges in workers.each(calls)]
    rows = pl.concat(frames)
    lake.write_json(_agents_path(path), agents)
    store_latest(lake, path, INFERRED_POINTER, "key", rows, ["digest"])
    return rows


def _agents_path(path: str) -> str:
    return f"{path.replace('inferred-', 'agents-')}.json"


def _by_agents(rows: "pl.DataFrame", size: int) -> "Iterator[pl.DataFrame]":
    """Yield chunks of rows, which are sorted by agent. A chunk has all rows of its agents, and at
    least `size` rows unless it is the last.
    """
    start = end = 0
    for _, count in rows.group_by("agent", maintain_order=True).len().iter_rows():
        end += count
        if end - start >= size or end == rows.height:
            yield rows[start:end]
            start = end


def _infer_edges_of_rows(tools: "pl.DataFrame") -> list[Edge]:
    """Infer the edges of some agents, whose tools are sorted by agent."""
    by_agent = groupby(tools.iter_rows(named=True), itemgetter("agent"))
    return [edge for _, rows in by_agent for edge in infer_agent_edges([*map(tool_of, rows)])]


def _edges_of(rows: "pl.DataFrame") -> list[Edge]:
    columns = [field.name for field in fields(Edge)]
    return [Edge(**row) for row in rows.select(columns).iter_rows(named=True)]
