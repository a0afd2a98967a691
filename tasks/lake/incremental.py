"""Rows that are computed from tools, such as documents: only those of tools that changed are
computed again.

The inputs of a tool's rows are stored beside them: the digest of the tool and its agent's kind, its
agent's name, and the digest of its enrichment. Where these are equal, so are the rows, as long as
the recipe is the same; each recipe has a pointer of its own."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from tasks.enrichment.enrichment_sets import enrichment_digests
from tasks.lake.files import Lake
from tasks.lake.row_sets import (
    RowSet,
    find_rows,
    has_columns,
    latest_rows,
    point_to,
    read_rows,
    readable,
    write_rows,
)
from tasks.lake.snapshot_rows import snapshot_rows
from tasks.runtime import progress, workers

if TYPE_CHECKING:
    import polars as pl

BATCH = 10_000
"""Tools whose rows are computed at once. A tool takes about 10 kB as Python objects."""
SPREAD = 2_000
"""Tools in one call of a worker, which are about 3 MB."""
NAME = re.compile(r"(?:^\w+/(?=[a-z]+-))|[-/][0-9a-f]{64}.*")
"""The parts of a path around the name that the progress display shows, such as `sentences` of
`documents/sentences-<digest>`.
"""


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


def tool_rows(
    lake: Lake,
    name: str,
    version: int,
    snapshots: Mapping[str, str],
    columns: Sequence[str],
    make: "Callable[[pl.DataFrame], pl.DataFrame]",
) -> "pl.DataFrame":
    """Return rows, one for each tool by `tool`, that nothing but the tool decides; only those of
    tools that changed are made.

    Args:
        name: of the rows in the lake's documents.
        version: changes when the same tools give other rows.
        snapshots: catalog -> digest, of the tools.
        make: as in `update_rows`.
    """
    path = f"documents/{name}-{digest(version, dict(snapshots))}"
    if not find_rows(lake, path, columns):
        pointer = f"documents/latest-{name}-{version}"
        inputs = row_inputs(lake, snapshots, None).select("tool", "tool_digest")
        update_rows(
            lake, path, pointer, snapshots, key="tool", tool="tool", inputs=inputs, make=make
        )
    return read_rows(lake, path, columns)


def update_rows(
    lake: Lake,
    path: str,
    pointer: str,
    snapshots: Mapping[str, str],
    *,
    key: str,
    tool: str,
    inputs: "pl.DataFrame",
    make: "Callable[[pl.DataFrame], pl.DataFrame]",
) -> RowSet:
    """Store the rows of all tools as an update of the set that a pointer names, and move it.

    If that set is damaged or has other columns, the rows of all tools are made again.

    Args:
        path: the name of the new set.
        snapshots: catalog -> digest, of the tools.
        key, tool: the columns of the rows with their key and with the id of their tool.
        inputs: all tools, in the column `tool`, and columns of text; where those are equal, so are
            a tool's rows.
        make: returns the rows of some tools, at least one for each, which no other tool decides. It
            is called with their rows of the snapshot, which also have the columns of `inputs`,
            `BATCH` tools at a time or, on workers, `SPREAD`.
    """
    import polars as pl

    inputs = inputs.rename({"tool": tool})
    by = inputs.columns
    base = latest_rows(lake, pointer)
    stored = None if base is None else readable(lake, base, list(dict.fromkeys((key, *by))))

    def made_of(changed: "pl.DataFrame") -> "pl.DataFrame":
        ids = changed.get_column(tool)
        tools = snapshot_rows(lake, snapshots, "tools", ids=ids).join(
            changed.rename({tool: "id"}), on="id", how="left"
        )
        return pl.concat(
            part.join(changed.select(tool, pl.exclude(part.columns)), on=tool, how="left")
            for part in _made(path, tools, make)
        )

    row_set = None
    if base is not None and stored is not None:
        rows = made_of(inputs.join(stored, on=by, how="anti", nulls_equal=True))
        stale_keys = stored.join(inputs, on=by, how="anti", nulls_equal=True).get_column(key)
        if has_columns(lake, base, rows):
            row_set = write_rows(lake, path, key, rows, base, stale_keys.to_list())
    if row_set is None:
        row_set = write_rows(lake, path, key, made_of(inputs))
    point_to(lake, pointer, row_set.path)
    return row_set


def _made(
    path: str, tools: "pl.DataFrame", make: "Callable[[pl.DataFrame], pl.DataFrame]"
) -> "Iterator[pl.DataFrame]":
    """Yield the rows of tools batch by batch; with no tools those of none."""
    step = next(part for part in NAME.split(path) if part)
    size = SPREAD if workers.available() else BATCH
    if tools.height <= size:
        yield make(tools)
        return
    progress.start(step, tools.height)
    calls = (partial(make, part) for part in tools.iter_slices(size))
    for done, rows in enumerate(workers.each(calls)):
        progress.advance(step, min(size, tools.height - done * size))
        yield rows
