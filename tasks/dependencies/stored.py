"""The evidence of dependencies in the lake: only agents whose tools changed are inferred again.

edges/agents-<digest>.json the digest of each agent's tools
edges/evidence-<digest>    the evidence between them; both are named by the digest of all tools"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.store.contract import edge_key
from tasks import workers
from tasks.dependencies.evidence import Evidence
from tasks.dependencies.infer import INFERENCE_VERSION, evidence_of
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, readable, write_frame
from tasks.lake.snapshot_rows import snapshot_rows

if TYPE_CHECKING:
    import polars as pl

POINTER = f"edges/latest-evidence-{INFERENCE_VERSION}"
FINDINGS_AT_ONCE = 20_000
"""Findings that are Python objects at once."""
TOOLS_AT_ONCE = 2_000
"""Tools, of several agents, in one call of a worker."""
COLUMNS = ("source", "target", "type", "parameter", "kind", "what", "share")


def evidence_between(lake: Lake, snapshots: Mapping[str, str]) -> Iterator[list[Evidence]]:
    """Yield the result of `evidence_of` for each agent of snapshots (catalog -> digest), some
    agents at a time.
    """

    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"]).sort("agent", "id")
    path = f"edges/evidence-{digest(INFERENCE_VERSION, tools.rows())}"
    if find_rows(lake, path) is None:
        _update(lake, snapshots, path, tools)
    rows = read_rows(lake, path, ["agent", *COLUMNS]).sort("agent", maintain_order=True)
    for part in _by_agents(rows, FINDINGS_AT_ONCE):
        yield [Evidence(**row) for row in part.drop("agent").iter_rows(named=True)]


def _update(lake: Lake, snapshots: Mapping[str, str], path: str, tools: "pl.DataFrame") -> None:
    """Write the evidence of all agents, taking that of unchanged agents from the last build."""
    import polars as pl

    agents, base = _agent_digests(tools), latest_rows(lake, POINTER)
    earlier = lake.read_json(_agents_path(base.path)) if base else None
    stored = readable(lake, base, ["key", "agent", *COLUMNS, "digest"]) if base else None
    frames = [_frame({})]
    unchanged = set[str]()
    if stored is not None and earlier is not None:
        unchanged = {agent for agent, own in agents.items() if earlier.get(agent) == own}
        frames.append(stored.filter(pl.col("agent").is_in(sorted(unchanged))))
    changed = sorted(agents.keys() - unchanged)
    ids = tools.filter(pl.col("agent").is_in(changed)).get_column("id")
    rows = snapshot_rows(lake, snapshots, "tools", ids=ids).sort("agent", "id")
    calls = [partial(_evidence_of_rows, part) for part in _by_agents(rows, TOOLS_AT_ONCE)]
    frames += [_frame(part) for part in workers.each(calls)]
    everything = pl.concat(frame.select(frames[0].columns) for frame in frames)
    lake.write_json(_agents_path(path), agents)
    point_to(lake, POINTER, write_frame(lake, path, "key", everything, base, ["digest"]).path)


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


def _frame(evidence: Mapping[str, list[Evidence]]) -> "pl.DataFrame":
    """The rows of the evidence of some agents."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for agent, findings in evidence.items():
        for one in findings:
            values = {name: getattr(one, name) for name in COLUMNS}
            key = edge_key(one.source, one.target, one.type, one.parameter)
            rows.append(
                {"key": key, "agent": agent, **values, "digest": digest([*values.values()])}
            )
    names = ("key", "agent", *COLUMNS, "digest")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"share": pl.Float64})
