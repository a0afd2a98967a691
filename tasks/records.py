"""The rows of the `tools` and `agents` tables: what catalogs say, what is suspicious in it, and what was written beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from pegboard.canonical import canonical_json, digest
from pegboard.contract import CURRENT
from pegboard.records import Enrichment
from tasks.configuration import load_configuration
from tasks.enrichment.bought import read_writings
from tasks.enrichment.untrusted import flags_of
from tasks.lake import Lake
from tasks.snapshot import load_snapshot

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Records", "compose_records", "records"]

RECORDS_VERSION = 1
"""Changes when the same snapshots and writings give other rows, as when other text becomes suspicious."""


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of a release's `tools` and `agents` as files of the lake; how many tools something was written about, and how
    many are flagged."""

    tools_path: str
    agents_path: str
    enriched: int
    flagged: int


@task(name="records", task_run_name="records", cache_policy=NO_CACHE)
def records(config: str, snapshots: dict[str, str], writings: str | None = None) -> Records:
    """The Prefect skin of `compose_records`."""
    return compose_records(load_configuration(config).uri, snapshots, writings)


def compose_records(uri: str, snapshots: Mapping[str, str], writings: str | None = None) -> Records:
    """Compose the rows from the snapshots (catalog -> digest), or find them made before.

    Args:
        writings: the folder of the lake with what was written about tools and agents; None if nothing was.
    """
    import polars as pl

    lake = Lake(uri)
    folder = f"records/{digest(RECORDS_VERSION, CURRENT.version, dict(snapshots), writings)}"
    tools_path, agents_path = f"{folder}/tools.parquet", f"{folder}/agents.parquet"
    if not lake.exists(agents_path):
        tools, agents = read_writings(lake, writings) if writings else ({}, {})
        described = {identity: Enrichment(description=text) for identity, text in agents.items()}
        lake.write(tools_path, _tool_rows(lake, snapshots, tools))
        lake.write(agents_path, _agent_rows(lake, snapshots, described))
    rows = lake.read(tools_path, ["flags", "enrichment"])
    flagged = rows.filter(pl.col("flags").list.len() > 0).height
    return Records(tools_path, agents_path, rows.get_column("enrichment").count(), flagged)


def _tool_rows(lake: Lake, snapshots: Mapping[str, str], written: Mapping[str, Enrichment]) -> "pl.DataFrame":
    import polars as pl

    tools = [tool for catalog in sorted(snapshots) for tool in load_snapshot(lake, catalog, snapshots[catalog]).tools]
    flags = pl.DataFrame(
        {"id": [tool.id for tool in tools], "flags": [list(flags_of(tool)) for tool in tools]},
        schema={"id": pl.String, "flags": pl.List(pl.String)},
    )
    rows = _said(lake, snapshots, "tools").rename({"digest": "tool_digest"}).join(flags, on="id", how="left")
    rows = rows.join(_enrichments(written), on="id", how="left")
    return _with_digests(rows, ["tool_digest", "flags", "enrichment"]).select(
        column.name for column in CURRENT.tool_columns
    )


def _agent_rows(lake: Lake, snapshots: Mapping[str, str], written: Mapping[str, Enrichment]) -> "pl.DataFrame":
    rows = _said(lake, snapshots, "agents").join(_enrichments(written), on="id", how="left")
    return _with_digests(rows, ["digest", "enrichment"]).select(column.name for column in CURRENT.agent_columns)


def _said(lake: Lake, snapshots: Mapping[str, str], kind: str) -> "pl.DataFrame":
    """What all catalogs say of their tools or agents."""
    import polars as pl

    folders = [f"snapshots/{catalog}/{identity}" for catalog, identity in sorted(snapshots.items())]
    return pl.concat([lake.read(f"{folder}/{kind}.parquet") for folder in folders])


def _enrichments(written: Mapping[str, Enrichment]) -> "pl.DataFrame":
    import polars as pl

    said = {identity: canonical_json(one.to_dict()) for identity, one in written.items() if one != Enrichment()}
    columns = {"id": list(said), "enrichment": list(said.values())}
    return pl.DataFrame(columns, schema={"id": pl.String, "enrichment": pl.String})


def _with_digests(rows: "pl.DataFrame", columns: Sequence[str]) -> "pl.DataFrame":
    """The rows with a digest over those columns, which stand for the whole row."""
    import polars as pl

    return rows.with_columns(pl.Series("digest", [digest(*row) for row in rows.select(columns).iter_rows()], pl.String))
