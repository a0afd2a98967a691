"""The rows of the table `edges`: which tool of the release needs which other.

A catalog's declarations count most: where it declares what a tool depends on, nothing is inferred
for that tool. On ToolLinkOS, what was inferred beside it cost half a point of mAP@10. Where an LLM
judged an inferred edge (`tasks/dependencies`), its verdict counts: agreed, the edge is `judged`;
disagreed, it is left out. `[overrides]` come after both. Only rows that differ are written.

What was found for each agent is kept, as it depends on nothing but the agent's tools:

    edges/evidence-<digest>      the findings, named by the digest of all tools
    edges/agents-<digest>.json   the digest of each agent's tools
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.graph.declared import declared_edges
from pegboard.graph.tool_graph import DIRECT
from pegboard.records import Dependency, Edge, Enrichment, Tool
from pegboard.store.contract import CHECKSUM, column_names, edge_digest, edge_key
from tasks import workers
from tasks.dependencies.infer import (
    INFERENCE_VERSION,
    Evidence,
    dependency_type,
    edges_from,
    evidence_of,
)
from tasks.enrichment.enrichment_sets import read_tool_enrichments, read_verdicts
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, readable, write_frame
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import DependencyOverride
from tasks.settings.release import GraphSettings

if TYPE_CHECKING:
    import polars as pl

EDGES_VERSION = 300 + INFERENCE_VERSION
"""Part of the digest of edges: raise it whenever the same tools give other edges."""
JUDGED_CONFIDENCE = 0.9
"""The least confidence of an edge that a reader of both descriptions agreed with. Not measured."""
POINTER = "edges/latest"
EVIDENCE_POINTER = f"edges/latest-evidence-{INFERENCE_VERSION}"
FINDINGS_AT_ONCE = 20_000
"""Findings that are Python objects at once."""
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
    verdicts = read_verdicts(lake, enrichments) if enrichments and settings.infer else {}
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
        found = [
            edge
            for edge in judged_edges(inferred, tools)
            if edge.confidence >= settings.min_confidence and edge.source not in sources
        ]
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


def judged_edges(inferred: Iterable[Edge], tools: Iterable[Tool]) -> list[Edge]:
    """Apply an LLM's verdicts, which are in the `dependencies` of a tool's enrichment.

    Agreed, an edge is `judged`, with the LLM's reason; disagreed, it is left out. An edge without a
    verdict stays as it is, and a verdict on an edge that is no longer inferred has no effect.
    """
    verdicts = {
        (tool.id, str(verdict.get("tool")), str(verdict.get("parameter") or "")): verdict
        for tool in tools
        if tool.enrichment is not None
        for verdict in tool.enrichment.dependencies
    }
    judged = (
        _judged(edge, verdicts.get((edge.source, edge.target, edge.parameter or "")))
        for edge in inferred
    )
    return [edge for edge in judged if edge is not None]


def _judged(edge: Edge, verdict: Mapping[str, Any] | None) -> Edge | None:
    if verdict is None:
        return edge
    if not verdict.get("needed"):
        return None
    return replace(
        edge,
        type=dependency_type(edge.parameter, bool(verdict.get("direct"))),
        reason=str(verdict.get("reason") or edge.reason),
        origin="judged",
        confidence=max(edge.confidence, JUDGED_CONFIDENCE),
    )


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


# --- Evidence that is kept between builds ---

_COLUMNS = tuple(field.name for field in fields(Evidence))


def evidence_between(lake: Lake, snapshots: Mapping[str, str]) -> Iterator[list[Evidence]]:
    """Yield the result of `evidence_of` for each agent of snapshots (catalog -> digest), some
    agents at a time.
    """
    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"]).sort("agent", "id")
    path = f"edges/evidence-{digest(INFERENCE_VERSION, tools.rows())}"
    if find_rows(lake, path) is None:
        _update_evidence(lake, snapshots, path, tools)
    rows = read_rows(lake, path, ["agent", *_COLUMNS]).sort("agent", maintain_order=True)
    for part in _by_agents(rows, FINDINGS_AT_ONCE):
        yield [Evidence(**row) for row in part.drop("agent").iter_rows(named=True)]


def _update_evidence(
    lake: Lake, snapshots: Mapping[str, str], path: str, tools: "pl.DataFrame"
) -> None:
    """Write the evidence of all agents, taking that of unchanged agents from the last build."""
    import polars as pl

    agents, base = _agent_digests(tools), latest_rows(lake, EVIDENCE_POINTER)
    earlier = lake.read_json(_agents_path(base.path)) if base else None
    stored = readable(lake, base, ["key", "agent", *_COLUMNS, "digest"]) if base else None
    frames = [_evidence_frame({})]
    unchanged = set[str]()
    if stored is not None and earlier is not None:
        unchanged = {agent for agent, own in agents.items() if earlier.get(agent) == own}
        frames.append(stored.filter(pl.col("agent").is_in(sorted(unchanged))))
    changed = sorted(agents.keys() - unchanged)
    ids = tools.filter(pl.col("agent").is_in(changed)).get_column("id")
    rows = snapshot_rows(lake, snapshots, "tools", ids=ids).sort("agent", "id")
    calls = [partial(_evidence_of_rows, part) for part in _by_agents(rows, TOOLS_AT_ONCE)]
    frames += [_evidence_frame(part) for part in workers.each(calls)]
    everything = pl.concat(frame.select(frames[0].columns) for frame in frames)
    lake.write_json(_agents_path(path), agents)
    point_to(
        lake,
        EVIDENCE_POINTER,
        write_frame(lake, path, "key", everything, base, ["digest"]).path,
    )


def _agents_path(path: str) -> str:
    return f"{path.replace('evidence-', 'agents-')}.json"


def _agent_digests(tools: "pl.DataFrame") -> dict[str, str]:
    """The digest of each agent's tools, over their ids and digests."""
    by_agent = groupby(tools.iter_rows(), itemgetter(1))
    return {agent: digest([row[::2] for row in own]) for agent, own in by_agent}


def _by_agents(rows: "pl.DataFrame", size: int) -> "Iterator[pl.DataFrame]":
    """Yield rows that are sorted by agent, `size` or more of several agents together."""
    start = end = 0
    for _, count in rows.group_by("agent", maintain_order=True).len().iter_rows():
        end += count
        if end - start >= size or end == rows.height:
            yield rows[start:end]
            start = end


def _evidence_of_rows(tools: "pl.DataFrame") -> dict[str, list[Evidence]]:
    """Return the evidence of each agent; the rows of its tools are one after the other."""
    by_agent = groupby(tools.iter_rows(named=True), itemgetter("agent"))
    return {agent: evidence_of([tool_of(row) for row in own]) for agent, own in by_agent}


def _evidence_frame(evidence: Mapping[str, list[Evidence]]) -> "pl.DataFrame":
    """The rows of the evidence of some agents."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for agent, findings in evidence.items():
        for one in findings:
            values = {name: getattr(one, name) for name in _COLUMNS}
            key = edge_key(one.source, one.target, one.type, one.parameter)
            rows.append(
                {"key": key, "agent": agent, **values, "digest": digest([*values.values()])}
            )
    names = ("key", "agent", *_COLUMNS, "digest")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))
