"""Snapshots in the lake: the agents and the tools of a catalog as row sets, each made from the
snapshot before.

snapshots/<catalog>/<digest>/agents.json    columns of `CATALOG_AGENT`, and the agent's digest
snapshots/<catalog>/<digest>/tools.json     columns of `CATALOG_TOOL`, and a digest of the tool and
                                            its agent's kind
snapshots/<catalog>/layers/<digest>.parquet

A snapshot is kept while its source fails, so it may be older than a column of these lists. It is
read with the column's empty value (`Column.empty`), and has the column once its source is listed
again.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from catalogs.shared.tool_row import row_frame, tool_of, tool_row
from pegboard.records import Agent, Tool
from pegboard.store.contract import CATALOG_AGENT, CATALOG_TOOL
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, read_rows, write_frame

if TYPE_CHECKING:
    import polars as pl


def store_snapshot(
    lake: Lake,
    catalog: str,
    identity: str,
    agents: "pl.DataFrame",
    tools: "pl.DataFrame",
    before: str | None,
) -> None:
    """Store a snapshot under its digest, as the difference to another one of the catalog if there
    is one.
    """
    for kind, frame in (("agents", agents), ("tools", tools)):
        path = _path(catalog, identity, kind)
        if find_rows(lake, path):
            continue
        base = find_rows(lake, _path(catalog, before, kind)) if before else None
        # Where an agent was listed is not in its digest, but in its row.
        by = ["digest", "source"] if kind == "agents" else ["digest"]
        write_frame(lake, path, "id", frame, base, by)


def has_snapshot(lake: Lake, catalog: str, identity: str) -> bool:
    """Return whether a snapshot is stored, with all its files."""
    return all(find_rows(lake, _path(catalog, identity, kind)) for kind in ("agents", "tools"))


def snapshot_rows(
    lake: Lake,
    snapshots: Mapping[str, str],
    kind: Literal["agents", "tools"],
    columns: Sequence[str] | None = None,
    ids: Collection[str] | None = None,
) -> "pl.DataFrame":
    """Return the rows of the tools or agents of snapshots (catalog -> digest), catalog by catalog,
    each ordered by id.

    Args:
        columns: by default those of `CATALOG_TOOL` or `CATALOG_AGENT`, and the digest.
        ids: only those.
    """
    import polars as pl

    declared = CATALOG_TOOL if kind == "tools" else CATALOG_AGENT
    names = columns or [*(column.name for column in declared), "digest"]
    defaults = {
        column.name: pl.lit(
            column.empty, pl.List(pl.String) if column.kind == "texts" else pl.String
        )
        for column in declared
    }
    return pl.concat(
        read_rows(lake, _path(catalog, identity, kind), names, ids, defaults)
        for catalog, identity in sorted(snapshots.items())
    )


def agents_of(
    lake: Lake, snapshots: Mapping[str, str], ids: Collection[str] | None = None
) -> tuple[Agent, ...]:
    """Return the agents of snapshots (catalog -> digest)."""
    rows = snapshot_rows(lake, snapshots, "agents", ids=ids).drop("digest")
    return tuple(Agent(**row) for row in rows.iter_rows(named=True))


def tools_of(
    lake: Lake, snapshots: Mapping[str, str], ids: Collection[str] | None = None
) -> tuple[Tool, ...]:
    """Return the tools of snapshots (catalog -> digest)."""
    return tuple(
        tool_of(row)
        for row in snapshot_rows(lake, snapshots, "tools", ids=ids).iter_rows(named=True)
    )


def agent_frame(agents: Sequence[Agent]) -> "pl.DataFrame":
    """Return the agents as rows."""
    import polars as pl

    rows = [{**asdict(agent), "digest": agent.digest} for agent in agents]
    names = (*(column.name for column in CATALOG_AGENT), "digest")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def tool_frame(agents: Iterable[Agent], tools: Iterable[Tool]) -> "pl.DataFrame":
    """Return tools, whose agents are among these, as rows."""
    kinds = {agent.id: agent.kind for agent in agents}
    return row_frame([json.dumps(tool_row(tool, kinds[tool.agent])).encode() for tool in tools])


def _path(catalog: str, identity: str, kind: str) -> str:
    return f"snapshots/{catalog}/{identity}/{kind}"
