"""The evidence of dependencies in the lake: only agents whose tools changed are inferred again.

edges/evidence-<digest>    the evidence of all agents, named by the digest of their tools; an agent
                           without any has one row without a source"""

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
    import polars as pl

    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"]).sort("agent", "id")
    path = f"edges/evidence-{digest(INFERENCE_VERSION, tools.rows())}"
    if find_rows(lake, path) is None:
        _update(lake, snapshots, path, tools)
    rows = read_rows(lake, path, ["agent", *COLUMNS]).filter(pl.col("source").is_not_null())
    for part in _by_agents(rows.sort("agent", maintain_order=True), FINDINGS_AT_ONCE):
        yield [Evidence(**row) for row in part.drop("agent").iter_rows(named=True)]


def _update(lake: Lake, snapshots: Mapping[str, str], path: str, tools: "pl.DataFrame") -> None:
    """Write the evidence of all agents, taking that of unchanged agents from the last build."""
    import polars as pl

    agents = _agent_digests(tools)
    base, by = latest_rows(lake, POINTER), ["agent", "agent_digest"]
    stored = readable(lake, base, ["key", *by, *COLUMNS, "digest"]) if base else None
    unchanged = agents.clear() if stored is None else agents.join(stored, on=by, how="semi")
    changed = agents.join(unchanged, on="agent", how="anti")
    ids = tools.join(changed, on="agent", how="semi").get_column("id")
    rows = snapshot_rows(lake, snapshots, "tools", ids=ids).sort("agent", "id")
    calls = [partial(_evidence_of_rows, part) for part in _by_agents(rows, TOOLS_AT_ONCE)]
    found = [_frame(changed, part) for part in workers.each(calls)]
    frames = [frame.select("key", *by, *COLUMNS, "digest") for frame in found]
    if stored is not None:
        kept = stored.join(unchanged, on=by, how="semi")
        frames.append(kept.select("key", *by, *COLUMNS, "digest"))
    everything = pl.concat(frames) if frames else _frame(changed, {})
    point_to(lake, POINTER, write_frame(lake, path, "key", everything, base, ["digest"]).path)


def _agent_digests(tools: "pl.DataFrame") -> "pl.DataFrame":
    """The columns `agent` and `agent_digest`, over the ids and digests of its tools."""
    import polars as pl

    rows = [
        (agent, digest([row[::2] for row in own]))
        for agent, own in groupby(tools.iter_rows(), itemgetter(1))
    ]
    return pl.DataFrame(rows, {"agent": pl.String, "agent_digest": pl.String}, orient="row")


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


def _frame(agents: "pl.DataFrame", evidence: Mapping[str, list[Evidence]]) -> "pl.DataFrame":
    """The rows of the evidence of some agents. `agents`: their digests."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for agent, findings in evidence.items():
        if not findings:
            rows.append({"key": agent, "agent": agent})
        for one in findings:
            values = {name: getattr(one, name) for name in COLUMNS}
            key = edge_key(one.source, one.target, one.type, one.parameter)
            rows.append({"key": key, "agent": agent, **values})
    names = ("key", "agent", *COLUMNS)
    schema = dict.fromkeys(names, pl.String) | {"share": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema).join(agents, on="agent", how="left")
    digests = [digest([*row]) for row in frame.iter_rows()]
    return frame.with_columns(pl.Series("digest", digests, pl.String))
