"""Which sentences of each tool are boilerplate of its catalog: an input of its documents.

documents/sentences-<digest>   tool, catalog, sentences (keys), and the digest of the tool

Only tools that changed are read again; all sentences are counted each time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from catalogs.shared.tool_row import tool_of
from pegboard.boilerplate import most_tools, sentence_keys
from pegboard.canonical import digest
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, read_rows

if TYPE_CHECKING:
    import polars as pl

SENTENCES_VERSION = 1
"""Change when the same tools give other sentences, so that stored ones are not reused."""


def boilerplate_of_tools(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return the tools that have boilerplate: `tool`, and `boilerplate`, the sorted keys of these
    sentences with blanks between them.

    Args:
        snapshots: catalog -> digest.
    """
    import polars as pl

    tools = _sentences(lake, snapshots)
    sizes = tools.group_by("catalog").len().rows()
    limits = pl.DataFrame(
        [(catalog, most_tools(size)) for catalog, size in sizes],
        schema={"catalog": pl.String, "most": pl.Float64},
        orient="row",
    )
    sentences = tools.explode("sentences").drop_nulls("sentences")
    counts = sentences.group_by("catalog", "sentences").len().join(limits, on="catalog")
    shared = counts.filter(pl.col("len") > pl.col("most"))
    return (
        sentences.join(shared, on=["catalog", "sentences"], how="semi")
        .group_by("tool")
        .agg(pl.col("sentences").sort().str.join(" ").alias("boilerplate"))
    )


def _sentences(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    path = f"documents/sentences-{digest(SENTENCES_VERSION, dict(snapshots))}"
    if not find_rows(lake, path):
        update_rows(
            lake,
            path,
            f"documents/latest-sentences-{SENTENCES_VERSION}",
            snapshots,
            key="tool",
            tool="tool",
            inputs=row_inputs(lake, snapshots, None).select("tool", "tool_digest"),
            make=_tool_sentences,
        )
    return read_rows(lake, path, ["tool", "catalog", "sentences"])


def _tool_sentences(tools: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    rows = [
        (tool.id, tool.catalog, sorted(sentence_keys(tool)))
        for tool in map(tool_of, tools.iter_rows(named=True))
    ]
    schema = {"tool": pl.String, "catalog": pl.String, "sentences": pl.List(pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")
