"""Rows that are computed from tools, such as documents: only those of tools that changed are
computed again.

The inputs of a tool's rows are stored beside them: the digest of the tool and its agent's kind, its
agent's name, and the digest of its enrichment. Where these are equal, so are the rows, as long as
the recipe is the same; each recipe has a pointer of its own."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from tasks.enrichment.enrichment_sets import enrichment_digests
from tasks.lake.files import Lake
from tasks.lake.row_sets import RowSet, latest_rows, point_to, readable, write_rows
from tasks.lake.snapshot_rows import snapshot_rows

if TYPE_CHECKING:
    import polars as pl

BATCH = 20_000
"""Tools whose rows are computed at once, as Python objects: about 10 kB each. Each batch reads the
tools' files, so smaller ones take time."""


def row_inputs(lake: Lake, snapshots: Mapping[str, str], enrichments: str | None) -> "pl.DataFrame":
    """Return the inputs of each tool's rows: `tool`, `tool_digest`, `agent_name`, `written`."""
    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"])
    names = snapshot_rows(lake, snapshots, "agents", ["id", "name"]).rename(
        {"id": "agent", "name": "agent_name"}
    )
    written = enrichment_digests(lake, enrichments).rename({"digest": "written"})
    inputs = tools.join(names, on="agent", how="left").join(written, on="id", how="left")
    return inputs.rename({"id": "tool", "digest": "tool_digest"}).select(
        "tool", "tool_digest", "agent_name", "written"
    )


def update_rows(
    lake: Lake,
    path: str,
    pointer: str,
    *,
    key: str,
    tool: str,
    inputs: "pl.DataFrame",
    make: "Callable[[Collection[str]], pl.DataFrame]",
) -> RowSet:
    """Store the rows of all tools as an update of the set that a pointer names, and move it.

    Args:
        path: the name of the new set.
        key, tool: the columns of the rows with their key and with the id of their tool.
        inputs: all tools, in the column `tool`, and columns of text; where those are equal, so are
            a tool's rows.
        make: returns the rows of some tools, at least one for each, which no other tool decides;
            called for `BATCH` tools at a time.
    """
    import polars as pl

    inputs = inputs.rename({"tool": tool})
    by = inputs.columns
    base = latest_rows(lake, pointer)
    stored = None if base is None else readable(lake, base, list(dict.fromkeys((key, *by))))
    changed, stale = inputs, None
    if stored is not None:
        changed = inputs.join(stored, on=by, how="anti", nulls_equal=True)
        stale = stored.join(inputs, on=by, how="anti", nulls_equal=True).get_column(key)
    rows = pl.concat([make(part.get_column(tool).to_list()) for part in _batches(changed)])
    added = [name for name in by if name == tool or name not in rows.columns]
    rows = rows.join(changed.select(added), on=tool, how="left")
    if base is None or stale is None:
        row_set = write_rows(lake, path, key, rows)
    else:
        row_set = write_rows(lake, path, key, rows, base, stale.to_list())
    point_to(lake, pointer, row_set.path)
    return row_set


def _batches(rows: "pl.DataFrame") -> "list[pl.DataFrame]":
    """At least one, which is empty without rows."""
    return [*rows.iter_slices(BATCH)] or [rows]
