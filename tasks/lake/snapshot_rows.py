"""Snapshots in the lake: the agents and the tools of a catalog as row sets, each made from the
snapshot before.

snapshots/<catalog>/<digest>/agents.json    columns of `CATALOG_AGENT`, and the agent's digest
snapshots/<catalog>/<digest>/tools.json     columns of `CATALOG_TOOL`, and a digest of the tool and
                                            its agent's kind
snapshots/<catalog>/layers/<digest>.parquet
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from catalogs.shared.listing import Listing
from catalogs.shared.tool_row import row_digest, tool_of, tool_row
from pegboard.records import Agent, Tool
from pegboard.store.contract import CATALOG_AGENT, CATALOG_TOOL
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, read_rows, write_frame

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE = 10_000
"""Tools that are Python objects at once."""


def load_snapshot(lake: Lake, catalog: str, identity: str) -> Listing:
    """Return the agents and tools of a stored snapshot."""
    snapshots = {catalog: identity}
    return Listing(agents=agents_of(lake, snapshots), tools=tools_of(lake, snapshots))


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
        ids: only those.
    """
    import polars as pl

    return pl.concat(
        read_rows(lake, _path(catalog, identity, kind), columns, ids)
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


def tool_frame(listing: Listing) -> "pl.DataFrame":
    """Return the tools of a listing, whose agents are in it, as rows."""
    import polars as pl

    schema = {
        column.name: pl.List(pl.String) if column.kind == "texts" else pl.String()
        for column in CATALOG_TOOL
    }
    schema["digest"] = pl.String()
    kinds = {agent.id: agent.kind for agent in listing.agents}
    tool_rows: Iterator[Mapping[str, Any]] = iter(listing.rows or map(tool_row, listing.tools))
    frames = [pl.DataFrame(schema=schema)]
    while some := list(islice(tool_rows, ROWS_AT_ONCE)):
        rows = [
            {
                **row,
                "kind": (kind := kinds[row["agent"]]),
                "digest": row_digest(row["digest"], kind),
            }
            for row in some
        ]
        frames.append(pl.DataFrame(rows, schema=schema))
    return pl.concat(frames)


def _path(catalog: str, identity: str, kind: str) -> str:
    return f"snapshots/{catalog}/{identity}/{kind}"
