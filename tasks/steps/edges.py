"""The rows of the table `edges`: which tool of the release needs which other.

A catalog's declarations count most: where it declares what a tool depends on, nothing is inferred
for that tool. On ToolLinkOS, what was inferred beside it cost half a point of mAP@10. `[overrides]`
come after both. Only rows that differ are written.

Inferred edges are kept between builds, since those of an agent depend on nothing but its tools:

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
"""Part of the digest of edges: raise it whenever the same tools give other edges."""
POINTER = "edges/latest"
INFERRED_POINTER = f"edges/latest-inferred-{INFERENCE_VERSION}"
TOOLS_AT_ONCE = 2_000
"""Tools, of several agents, in one call of a worker."""
DECIMALS = 4
"""Decimals of a confidence, which every language writes alike."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The rows of a release's `edges` as a row set of the lake, and their counts by origin.

    `unresolved` says of which declared dependencies no edge came, and why.
    """

    path: str
    rows: int
    origins: Mapping[str, int]
    unresolved: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The counts, and what is unresolved, as JSON values."""
        return {
            "count": self.rows,
            "origins": dict(self.origins),
            "unresolved": list(self.unresolved),
        }


def compose_edges(configuration: Configuration, snapshots: Mapping[str, str]) -> Edges:
    """Make the edges between the tools of the snapshots (catalog -> digest), or find them."""
    import polars as pl

    lake, settings = Lake(configuration.uri), configuration.graph
    overrides = {
        tool: override.dependencies
        for tool, override in sorted(configuration.overrides.items())
        if override.dependencies
    }
    path = _path(lake, settings, snapshots, overrides)
    if (known := _known(lake, path)) is not None:
        return known
    declared, reasons = declared_edges(_tools(lake, snapshots))
    frames: list[pl.DataFrame] = []
    inferred: list[Edge] = []
    if settings.infer:
        declaring, source = {edge.source for edge in declared}, pl.col("source")
        sure = pl.col("confidence") >= settings.min_confidence
        rows = inferred_rows(lake, snapshots).filter(sure & ~source.is_in(declaring))
        revised = source.is_in([*overrides])
        frames.append(rows.filter(~revised))
        inferred = _edges_of(rows.filter(revised))
    if overrides:
        ids = snapshot_rows(lake, snapshots, "tools", ["id"]).get_column("id")
        chosen, declared, inferred = _overridden(
            overrides, frozenset(ids), declared, inferred, reasons
        )
        declared = [*chosen, *declared]
    rows = pl.concat([_frame(_rows([*declared, *inferred], declared)), *frames])
    lake.write_json(f"{path}-unresolved.json", {"unresolved": reasons})
    done = store_latest(lake, path, POINTER, "key", rows, ["digest"])
    return Edges(path, done.rows, _origins(rows), tuple(reasons))


def _overridden(
    overrides: Mapping[str, Sequence[DependencyOverride]],
    ids: Collection[str],
    declared: Sequence[Edge],
    inferred: Sequence[Edge],
    problems: list[str],
) -> tuple[list[Edge], list[Edge], list[Edge]]:
    """Apply `[overrides]`; returns the edges that they set, and the others that they leave."""
    edges: list[Edge] = []
    replaced: set[tuple[str, str, str | None]] = set()
    forbidden: set[tuple[str, str]] = set()
    for source, several in overrides.items():
        for one in several if source in ids else ():
            sibling = f"{source.rpartition('/')[0]}/{one.tool}"
            target = one.tool if one.tool in ids else sibling
            if target not in ids or target == source:
                problems.append(
                    f"{source}: its override names the tool '{one.tool}', which is not on the "
                    f"board, or itself; give another tool's id, or its name at the same agent"
                )
            elif one.forbid and one.parameter is None:
                forbidden.add((source, target))
            else:
                replaced.add((source, target, one.parameter))
                if not one.forbid:
                    type_ = one.type or dependency_type(one.parameter, True)
                    edges.append(Edge(source, target, type_, one.parameter, one.reason))

    def stays(edge: Edge) -> bool:
        pair = edge.source, edge.target
        return pair not in forbidden and (*pair, edge.parameter) not in replaced

    return edges, [*filter(stays, declared)], [*filter(stays, inferred)]


def _tools(lake: Lake, snapshots: Mapping[str, str]) -> list[Tool]:
    """The tools with dependencies, and those that dependencies may mean; without what they take
    and return.
    """
    import polars as pl

    columns = ["id", "catalog", "agent", "name", "dependencies"]
    rows = snapshot_rows(lake, snapshots, "tools", columns)
    asking = pl.col("dependencies") != "[]"
    texts = rows.filter(asking).get_column("dependencies")
    named = list({str(one["tool"]).strip() for text in texts for one in json.loads(text)})
    rows = rows.filter(asking | pl.col("id").is_in(named) | pl.col("name").is_in(named))
    return [
        Tool(*row, dependencies=tuple(Dependency(**one) for one in json.loads(dependencies)))
        for *row, dependencies in rows.iter_rows()
    ]


def _rows(edges: Iterable[Edge], declared: Iterable[Edge]) -> Iterator[dict[str, Any]]:
    """Yield the rows without checksums, in the catalog's order: the important ones come first."""
    said = {_key(edge): place for place, edge in enumerate(declared)}
    by_source: dict[str, list[Edge]] = {}
    for edge in edges:
        by_source.setdefault(edge.source, []).append(edge)
    for several in by_source.values():
        several.sort(
            key=lambda edge: (
                said.get(_key(edge), len(said)),
                edge.type not in DIRECT,
                -edge.confidence,
                _key(edge),
            )
        )
        for place, edge in enumerate(several):
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
    edges = {tool: [one.model_dump() for one in several] for tool, several in overrides.items()}
    inputs = (settings.infer, settings.min_confidence, tools, edges)
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


# --- Inferred edges, kept between builds ---


def inferred_rows(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return the inferred edges of snapshots (catalog -> digest) as rows of `edges`; only agents
    whose tools changed since the last build are looked at.
    """
    import polars as pl

    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"]).sort("agent", "id")
    path = f"edges/inferred-{digest(INFERENCE_VERSION, tools.rows())}"
    rows = _frame(())
    if find_rows(lake, path, rows.columns) is not None:
        return read_rows(lake, path, rows.columns)
    by_agent = groupby(tools.iter_rows(), itemgetter(1))
    agents = {agent: digest([row[::2] for row in own]) for agent, own in by_agent}
    base = latest_rows(lake, INFERRED_POINTER)
    earlier = lake.read_json(_agents_path(base.path)) if base else None
    stored = readable(lake, base, rows.columns) if base else None
    frames, unchanged = [rows], set[str]()
    if stored is not None and earlier is not None:
        unchanged = {agent for agent, own in agents.items() if earlier.get(agent) == own}
        agent = pl.col("source").str.replace("/[^/]*$", "")
        frames.append(stored.filter(agent.is_in(unchanged)))
    changed = tools.filter(~pl.col("agent").is_in(unchanged))
    texts = snapshot_rows(lake, snapshots, "tools", ids=changed.get_column("id"))
    parts = _by_agents(texts.sort("agent", "id"), TOOLS_AT_ONCE)
    calls = [partial(_infer_edges_of_rows, part) for part in parts]
    frames += [_frame(_rows(edges, ())) for edges in workers.each(calls)]
    rows = pl.concat(frames)
    lake.write_json(_agents_path(path), agents)
    store_latest(lake, path, INFERRED_POINTER, "key", rows, ["digest"])
    return rows


def _agents_path(path: str) -> str:
    return f"{path.replace('inferred-', 'agents-')}.json"


def _by_agents(rows: "pl.DataFrame", size: int) -> "Iterator[pl.DataFrame]":
    """Yield rows that are sorted by agent, `size` or more of several agents together."""
    start = end = 0
    for _, count in rows.group_by("agent", maintain_order=True).len().iter_rows():
        end += count
        if end - start >= size or end == rows.height:
            yield rows[start:end]
            start = end


def _infer_edges_of_rows(tools: "pl.DataFrame") -> list[Edge]:
    """Infer the edges of some agents; the rows of an agent's tools are one after the other."""
    by_agent = groupby(tools.iter_rows(named=True), itemgetter("agent"))
    return [edge for _, own in by_agent for edge in infer_agent_edges([*map(tool_of, own)])]


def _edges_of(rows: "pl.DataFrame") -> list[Edge]:
    columns = [field.name for field in fields(Edge)]
    return [Edge(**row) for row in rows.select(columns).iter_rows(named=True)]
