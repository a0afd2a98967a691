"""Tools whose descriptions repeat those of other agents' tools, perhaps with some words more, or
that have the same name, description and parameters, however short they are.

documents/shingles-<digest>   each tool's shingles: all that stand in a row in its description; and
                              one value for its name, description and parameters

The shingles of tools that did not change are read; all are counted each time."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.records import Tool
from pegboard.search.text import singular_words
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, read_rows

if TYPE_CHECKING:
    import polars as pl

NEAR_COPY = "near-copy"
SHINGLES_VERSION = 2
"""Change when the same tools give other shingles, so that stored ones are not reused."""
SHINGLE = 3
"""Words in a row by which descriptions are compared."""
MIN_SHINGLES = 3
"""A description of fewer is too short to tell a copy."""
COPIED = 0.9
"""Of the shingles of the original: a copy may say more."""
AT_ONCE = 20_000
"""Tools that are compared with all others at once."""
MAX_SHARED = 20
"""Tools of the release that have a shingle: one of more is boilerplate."""


def stored_shingles(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return `shingle_rows` of all tools of snapshots (catalog -> digest)."""
    path = f"documents/shingles-{digest(SHINGLES_VERSION, dict(snapshots))}"
    if not find_rows(lake, path):
        update_rows(
            lake,
            path,
            f"documents/latest-shingles-{SHINGLES_VERSION}",
            snapshots,
            key="tool",
            tool="tool",
            inputs=row_inputs(lake, snapshots, None).select("tool", "tool_digest"),
            make=_tool_shingles,
        )
    return read_rows(lake, path, ["tool", "agent", "content", "shingles"])


def _tool_shingles(tools: "pl.DataFrame") -> "pl.DataFrame":
    return shingle_rows(map(tool_of, tools.iter_rows(named=True)))


def shingle_rows(tools: Iterable[Tool]) -> "pl.DataFrame":
    """Return for each tool its agent, its content as one value, and its different shingles.

    The content is null for a tool that has neither description nor parameters.
    """
    import polars as pl

    rows = [(tool.id, tool.agent, _content(tool), _shingles(tool.description)) for tool in tools]
    schema = {
        "tool": pl.String,
        "agent": pl.String,
        "content": pl.String,
        "shingles": pl.List(pl.UInt64),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def near_copies(
    rows: "pl.DataFrame", fresh: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fresh tools that repeat the descriptions, or all, of other agents' tools.

    Takes time in proportion to the words: what stands in many descriptions is not compared.

    Args:
        rows: of `shingle_rows`, of all tools.
    """
    import polars as pl

    twins = _twins(rows, fresh)
    for tool, other in twins.items():
        yield tool, {"flag": NEAR_COPY, "of": other, "similarity": 1.0}
    tools = rows.sort("tool").with_row_index("number")
    # Numbers in place of ids: a million tools have some ten million shingles.
    numbered = tools.select("number", pl.col("agent").rank("dense"), "shingles")
    every = numbered.explode("shingles").drop_nulls("shingles")
    counts = every.group_by("shingles").len()
    several = every.join(counts.filter(pl.col("len") <= MAX_SHARED), on="shingles", how="semi")
    sizes = several.group_by("number").agg(pl.len().alias("whole"))
    sizes = sizes.filter(pl.col("whole") >= MIN_SHINGLES)
    # A shingle that one tool alone has counts as its own, and is shared with none.
    rare = several.join(counts.filter(pl.col("len") > 1), on="shingles", how="semi")
    rare = rare.join(sizes, on="number")
    ids = tools.get_column("tool")
    asked = pl.Series("tool", sorted({*fresh} - twins.keys()), pl.String).to_frame()
    for part in tools.join(asked, on="tool", how="semi").iter_slices(AT_ONCE):
        for number, other, whole, count in _shared(rare, part.select("number")).rows():
            similarity = round(count / whole, 3)
            yield ids[number], {"flag": NEAR_COPY, "of": ids[other], "similarity": similarity}


def _shared(rare: "pl.DataFrame", fresh: "pl.DataFrame") -> "pl.DataFrame":
    """Return of these tools those that have most shingles of one of another agent, with that one,
    how many shingles it has, and how many of them both have.
    """
    import polars as pl

    return (
        rare.join(fresh, on="number", how="semi")
        .join(rare, on="shingles", suffix="_other")
        .filter(pl.col("agent") != pl.col("agent_other"))
        .group_by("number", "number_other", "whole_other")
        .len()
        .sort(["number", "len", "number_other"], descending=[False, True, False])
        .unique("number", keep="first", maintain_order=True)
        .filter(pl.col("len") >= COPIED * pl.col("whole_other"))
        .sort("number")
    )


def _twins(rows: "pl.DataFrame", fresh: Collection[str]) -> dict[str, str]:
    """Return the fresh tools with the content of another agent's tool, and that tool."""
    import polars as pl

    every = rows.select("tool", "agent", "content").drop_nulls("content")
    several = every.filter(pl.len().over("content").is_between(2, MAX_SHARED))
    pairs = (
        several.filter(pl.col("tool").is_in(sorted(fresh)))
        .join(several, on="content", suffix="_other")
        .filter(pl.col("agent") != pl.col("agent_other"))
        .sort("tool", "tool_other")
        .unique("tool", keep="first", maintain_order=True)
    )
    return dict(pairs.select("tool", "tool_other").iter_rows())


def _content(tool: Tool) -> str | None:
    words, properties = singular_words(tool.description), tool.input_schema.get("properties")
    names = sorted(properties) if isinstance(properties, Mapping) else []
    return digest(tool.name, words, names) if words or names else None


def _shingles(text: str) -> list[int]:
    words = singular_words(text)
    several = {" ".join(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}
    digests = (hashlib.blake2b(words.encode(), digest_size=8).digest() for words in several)
    return sorted(map(int.from_bytes, digests))
