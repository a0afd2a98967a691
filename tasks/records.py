"""The rows of the `tools` and `agents` tables: what catalogs say, what is suspicious in it, and
what was written beside it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.canonical import canonical_json, digest
from pegboard.records import Enrichment
from pegboard.store.contract import CHECKSUM, CONTRACT, column_names
from tasks.enrichment.bought import read_described, read_written
from tasks.lake.derived import derive, sources_of
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, write_frame
from tasks.lake.snapshot_rows import snapshot_rows, tool_of
from tasks.safety.untrusted import flags_of

if TYPE_CHECKING:
    import polars as pl

RECORDS_VERSION = 1
"""Changes when the same snapshots and writings give other rows, as when other text becomes
suspicious.
"""


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of a release's `tools` and `agents` as row sets of the lake; how many tools
    something was written about, and how many are flagged."""

    tools_path: str
    agents_path: str
    enriched: int
    flagged: int


def compose_records(uri: str, snapshots: Mapping[str, str], writings: str | None = None) -> Records:
    """Compose the rows from the snapshots (catalog -> digest), or find them made before.

    Args:
        writings: the folder of the lake with what was written about tools and agents; None if
            nothing was.
    """
    lake = Lake(uri)
    recipe = [RECORDS_VERSION, CONTRACT]
    folder = f"records/{digest(*recipe, dict(snapshots), writings)}"
    tools_path, agents_path = f"{folder}/tools", f"{folder}/agents"
    if not find_rows(lake, tools_path):
        derive(
            lake,
            tools_path,
            f"records/latest-tools-{digest(recipe)}",
            key="id",
            tool="id",
            sources=sources_of(lake, snapshots, writings).drop("agent_name"),
            make=lambda ids: _tool_rows(lake, snapshots, writings, ids),
        )
    if not find_rows(lake, agents_path):
        described = read_described(lake, writings) if writings else {}
        rows, pointer = (
            _agent_rows(lake, snapshots, described),
            f"records/latest-agents-{digest(recipe)}",
        )
        base = latest_rows(lake, pointer)
        point_to(
            lake,
            pointer,
            write_frame(lake, agents_path, "id", rows, base, ["digest", "source"]).path,
        )
    rows = read_rows(lake, tools_path, ["flags", "written"])
    flagged = int((rows.get_column("flags").list.len() > 0).sum())
    return Records(tools_path, agents_path, rows.get_column("written").count(), flagged)


def _tool_rows(
    lake: Lake, snapshots: Mapping[str, str], writings: str | None, ids: Collection[str]
) -> "pl.DataFrame":
    """The rows of some tools."""
    import polars as pl

    said = snapshot_rows(lake, snapshots, "tools", ids=ids).rename({"digest": "tool_digest"})
    flags = [list(flags_of(tool_of(row))) for row in said.iter_rows(named=True)]
    written = read_written(lake, writings, ids) if writings else {}
    rows = said.with_columns(pl.Series("flags", flags, pl.List(pl.String)))
    rows = rows.join(_enrichments(written), on="id", how="left")
    return _with_digests(rows, ["tool_digest", "flags", "enrichment"]).select(
        name for name in column_names("tools") if name != CHECKSUM
    )


def _agent_rows(
    lake: Lake, snapshots: Mapping[str, str], described: Mapping[str, str]
) -> "pl.DataFrame":
    written = {identity: Enrichment(description=text) for identity, text in described.items()}
    rows = snapshot_rows(lake, snapshots, "agents").join(_enrichments(written), on="id", how="left")
    return _with_digests(rows, ["digest", "enrichment"]).select(
        name for name in column_names("agents") if name != CHECKSUM
    )


def _enrichments(written: Mapping[str, Enrichment]) -> "pl.DataFrame":
    import polars as pl

    said = {
        identity: canonical_json(one.to_dict())
        for identity, one in written.items()
        if one != Enrichment()
    }
    columns = {"id": list(said), "enrichment": list(said.values())}
    return pl.DataFrame(columns, schema={"id": pl.String, "enrichment": pl.String})


def _with_digests(rows: "pl.DataFrame", columns: Sequence[str]) -> "pl.DataFrame":
    """The rows with a digest over those columns, which stand for the whole row."""
    import polars as pl

    return rows.with_columns(
        pl.Series("digest", [digest(*row) for row in rows.select(columns).iter_rows()], pl.String)
    )
