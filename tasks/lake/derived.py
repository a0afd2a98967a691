"""Rows that follow from tools: documents and records. Only those of tools that changed are made;
the others stay as they are.

What a tool's rows follow from stands beside them: the digest of the tool and its agent's kind, its
agent's name, and the digest of what was written about it. Where these are equal, so are the rows,
as long as the recipe is the same; a recipe has a pointer of its own."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from tasks.enrichment.bought import written_digests
from tasks.lake.files import Lake
from tasks.lake.row_sets import RowSet, latest_rows, point_to, readable, write_rows
from tasks.lake.snapshot_rows import snapshot_rows

if TYPE_CHECKING:
    import polars as pl


def sources_of(lake: Lake, snapshots: Mapping[str, str], writings: str | None) -> "pl.DataFrame":
    """What the rows of each tool (`tool`) of snapshots (catalog -> digest) follow from:
    `tool_digest`, `agent_name`, `written`.
    """
    tools = snapshot_rows(lake, snapshots, "tools", ["id", "agent", "digest"])
    names = snapshot_rows(lake, snapshots, "agents", ["id", "name"]).rename(
        {"id": "agent", "name": "agent_name"}
    )
    written = written_digests(lake, writings).rename({"digest": "written"})
    found = tools.join(names, on="agent", how="left").join(written, on="id", how="left")
    return found.rename({"id": "tool", "digest": "tool_digest"}).select(
        "tool", "tool_digest", "agent_name", "written"
    )


def derive(
    lake: Lake,
    path: str,
    pointer: str,
    *,
    key: str,
    tool: str,
    sources: "pl.DataFrame",
    make: "Callable[[Collection[str]], pl.DataFrame]",
) -> RowSet:
    """Store the rows of all tools of `sources` as a set made from the one that the pointer names,
    and move the pointer to it.

    Args:
        path: the set's name.
        key, tool: the columns of the rows with their key and with the id of the tool to which they
            belong.
        sources: all tools, in the column `tool`, and columns of text; where those are equal, so are
            a tool's rows.
        make: gives the rows of some tools; every tool has at least one.
    """
    made_from = sources.rename({"tool": tool})
    by = made_from.columns
    base = latest_rows(lake, pointer)
    stored = None if base is None else readable(lake, base, list(dict.fromkeys((key, *by))))
    changed, stale = made_from, None
    if stored is not None:
        changed = made_from.join(stored, on=by, how="anti", nulls_equal=True)
        stale = stored.join(made_from, on=by, how="anti", nulls_equal=True).get_column(key)
    rows = make(changed.get_column(tool).to_list())
    beside = [name for name in by if name == tool or name not in rows.columns]
    rows = rows.join(changed.select(beside), on=tool, how="left")
    if base is None or stale is None:
        done = write_rows(lake, path, key, rows)
    else:
        done = write_rows(lake, path, key, rows, base, stale.to_list())
    point_to(lake, pointer, done.path)
    return done
