"""The rows of the table `edges`: which tool of the release needs which other.

Catalogs declare some dependencies; others are inferred (`tasks/dependencies`), after a change only
where it can matter (`tasks/dependencies/stored.py`). Only rows that differ are written.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.graph.declared import declared_edges
from pegboard.graph.tool_graph import DIRECT
from pegboard.records import Dependency, Edge, Enrichment, Tool
from pegboard.store.contract import CHECKSUM, column_names, edge_digest, edge_key
from tasks.dependencies.edges import EDGES_VERSION, merged_edges
from tasks.dependencies.evidence import dependency_type
from tasks.dependencies.infer import edges_from
from tasks.dependencies.stored import evidence_between
from tasks.enrichment.enrichment_sets import read_tool_enrichments
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, write_frame
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import DependencyOverride
from tasks.settings.release import GraphSettings

if TYPE_CHECKING:
    import polars as pl

POINTER = "edges/latest"
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


def compose_edges(
    configuration: Configuration, snapshots: Mapping[str, str], enrichments: str | None = None
) -> Edges:
    """Make the edges between the tools of the snapshots (catalog -> digest), or find them.

    Args:
        enrichments: the folder of the lake with what was written about the tools, verdicts on edges
            among it; None if nothing was.
    """
    import polars as pl

    lake, settings = Lake(configuration.uri), configuration.graph
    verdicts = _verdicts(lake, enrichments) if enrichments and settings.infer else {}
    overrides = {
        tool: override.dependencies
        for tool, override in sorted(configuration.overrides.items())
        if override.dependencies
    }
    path = _path(lake, settings, snapshots, verdicts, overrides)
    if (known := _known(lake, path)) is not None:
        return known
    written = read_tool_enrichments(lake, enrichments, verdicts) if enrichments and verdicts else {}
    tools = _tools(lake, snapshots, written)
    declared, unresolved = declared_edges(tools)
    reasons = [f"{one.tool}: {one.why}" for one in unresolved]
    sources = {edge.source for edge in declared}
    frames: list[pl.DataFrame] = []
    overridden: list[Edge] = []
    for inferred in _inferred(lake, snapshots) if settings.infer else ():
        undeclared = (edge for edge in inferred if edge.source not in sources)
        found = merged_edges((), undeclared, tools, settings.min_confidence)
        overridden += [edge for edge in found if edge.source in overrides]
        frames.append(_frame(_rows((edge for edge in found if edge.source not in overrides), ())))
    if overrides:
        ids = snapshot_rows(lake, snapshots, "tools", ["id"]).get_column("id")
        chosen, declared, overridden = _overridden(
            overrides, frozenset(ids), declared, overridden, reasons
        )
        declared = [*chosen, *declared]
    rows = pl.concat([_frame(_rows([*declared, *overridden], declared)), *frames])
    lake.write_json(f"{path}-unresolved.json", {"unresolved": reasons})
    done = write_frame(lake, path, "key", rows, latest_rows(lake, POINTER), ["digest"])
    point_to(lake, POINTER, done.path)
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


def _tools(
    lake: Lake, snapshots: Mapping[str, str], written: Mapping[str, Enrichment]
) -> list[Tool]:
    """The tools with dependencies or verdicts, and those that dependencies may mean; without what
    they take and return.
    """
    import polars as pl

    columns = ["id", "catalog", "agent", "name", "dependencies"]
    rows = snapshot_rows(lake, snapshots, "tools", columns)
    asking = (pl.col("dependencies") != "[]") | pl.col("id").is_in([*written])
    texts = rows.filter(asking).get_column("dependencies")
    named = list({str(one["tool"]).strip() for text in texts for one in json.loads(text)})
    rows = rows.filter(asking | pl.col("id").is_in(named) | pl.col("name").is_in(named))
    return [
        Tool(
            *row,
            dependencies=tuple(Dependency(**one) for one in json.loads(dependencies)),
            enrichment=written.get(row[0]),
        )
        for *row, dependencies in rows.iter_rows()
    ]


def _inferred(lake: Lake, snapshots: Mapping[str, str]) -> Iterator[list[Edge]]:
    """Yield the inferred edges in parts."""
    import polars as pl

    names = snapshot_rows(lake, snapshots, "tools", ["id", "name"])
    for evidence in evidence_between(lake, snapshots):
        ids = list({tool for one in evidence for tool in (one.source, one.target)})
        own = names.join(pl.Series("id", ids, pl.String).to_frame(), on="id", how="semi")
        yield edges_from(evidence, dict(own.iter_rows()))


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
    verdicts: Mapping[str, str],
    overrides: Mapping[str, Sequence[DependencyOverride]],
) -> str:
    tools = snapshot_rows(lake, snapshots, "tools", ["id", "digest"]).sort("id").rows()
    edges = {tool: [one.model_dump() for one in several] for tool, several in overrides.items()}
    inputs = (settings.infer, settings.min_confidence, tools, verdicts, edges)
    return f"edges/{digest(EDGES_VERSION, *inputs)}"


def _verdicts(lake: Lake, enrichments: str) -> dict[str, str]:
    """Return the digest of the verdicts on each tool's dependencies, by the tool's id."""
    path = f"{enrichments}/dependencies"
    return dict(read_rows(lake, path, ["id", "digest"]).rows()) if find_rows(lake, path) else {}


def _known(lake: Lake, path: str) -> Edges | None:
    done = find_rows(lake, path)
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
