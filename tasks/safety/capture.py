"""Tools that would take the requests of others: stuffed with examples, or copies of other tools.

- `stuffing`: most of a tool's examples are nearer to many other tools than to what the tool itself
  says that it does. Such examples draw requests that it does not answer.
- `near-copy`: a description repeats that of another agent's tool, perhaps with some words more; or
  name, description and parameters are the same, however short.
- `clone`: most of what is new or changed in a catalog are near-copies of each other, as tools are
  that repeat the wording of requests to fill all first places.

All are reasons to look at a tool, as the flags of `untrusted.py` are, and stand in the manifest of
a release under `suspicious`. They depend on the other tools, so they are no column of `tools`.

documents/shingles-<digest>   each tool's shingles: all that stand in a row in its description; one
                              value for its name, description and parameters; its words

The shingles of tools that did not change are read; all are counted each time."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.records import Agent, Tool
from pegboard.text.words import singular_words
from tasks.enrichment.neighbours import head_text
from tasks.lake.files import Lake
from tasks.lake.incremental import tool_rows
from tasks.lake.vectors import vectors_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

STUFFING = "stuffing"

MIN_EXAMPLES = 3
"""Fewer say nothing of a tool's examples as a whole."""
MAX_EXAMPLES = 10
"""Examples of a tool that are looked at: as many as an index takes."""
BATCH = 1_000
"""Tools whose examples are held in memory at once."""
MIN_TOOLS = 20
"""Tools that examples are compared with; among fewer, a tenth is less than two."""
MAX_TOOLS = 1_000
"""Tools that examples are compared with, spread over the release: a sample shows the same."""
NEARER = 0.3
"""The mean share of other tools that are nearer to an example than its own tool. Of MetaTool's 199
plugins, whose names and descriptions say little of their ten requests, 4 % have more; ten requests
that fit everything have .30 to .77 among 400 tools of Seal-Tools."""

NEAR_COPY = "near-copy"
SHINGLES_VERSION = 3
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

CLONE = "clone"
CLONED = 0.7
"""Jaccard similarity of the words of two descriptions whose other words the names do not have."""
COMMON = 0.8
"""Of a tool's shingles: one that is boilerplate in so much of it is a clone, too."""
RELATED = 0.3
"""Of the shingles of another tool, before words are compared."""
MIN_CLONES = 50
"""New and changed clones of a catalog; fewer are a family of operations."""
CLONES = 0.5
"""The share of clones among what is new or changed in a catalog. Of Stripe's API, which has most of
14 catalogs, 21 % are clones, and 35 % of a hundred operations in a row."""


def stuffed(
    lake: Lake,
    encoder: Encoder,
    rows: "pl.DataFrame",
    sample: Sequence[Tool],
    agents: Mapping[str, Agent],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield those of the tools in `rows` whose examples are nearer to many of a sample."""
    if len(sample) < MIN_TOOLS:
        return
    heads = vectors_of(lake, encoder, [head_text(tool, agents[tool.agent]) for tool in sample])
    owners = [tool.agent for tool in sample]
    for part in rows.iter_slices(BATCH):
        batch = [tool_of(row) for row in part.iter_rows(named=True)]
        texts = [
            (head_text(tool, agents[tool.agent]), *tool.examples[:MAX_EXAMPLES]) for tool in batch
        ]
        vectors = iter(vectors_of(lake, encoder, [text for own in texts for text in own]))
        for tool, own_texts in zip(batch, texts, strict=True):
            own, *examples = islice(vectors, len(own_texts))
            others = heads[[agent != tool.agent for agent in owners]]
            if len(others) < MIN_TOOLS:
                continue
            shares = [_nearer(example, own, others) for example in examples]
            if (nearer := sum(shares) / len(shares)) >= NEARER:
                worst = sorted(zip(shares, own_texts[1:], strict=True), reverse=True)[:3]
                shown = [text for _, text in worst]
                yield tool.id, {"flag": STUFFING, "nearer": round(nearer, 3), "examples": shown}


def _nearer(
    example: "NDArray[np.float32]", own: "NDArray[np.float32]", others: "NDArray[np.float32]"
) -> float:
    """Return the share of the other tools that are nearer to an example than its own."""
    return float((others @ example > own @ example).mean())


def stored_shingles(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return `shingle_rows` of all tools of snapshots (catalog -> digest)."""
    columns = ("tool", "agent", "content", "shingles", "words", "names")
    return tool_rows(lake, "shingles", SHINGLES_VERSION, snapshots, columns, make=_tool_shingles)


def _tool_shingles(tools: "pl.DataFrame") -> "pl.DataFrame":
    return shingle_rows(map(tool_of, tools.iter_rows(named=True)))


def shingle_rows(tools: Iterable[Tool]) -> "pl.DataFrame":
    """Return for each tool its agent, its content as one value, its different shingles, and the
    words, but numbers, of its description (`words`) and its name (`names`).

    The content is null for a tool that has neither description nor parameters.
    """
    import polars as pl

    rows = [
        (
            *(tool.id, tool.agent, _content(tool), _shingles(tool.description)),
            *(
                _digests(word for word in singular_words(text) if not word.isdigit())
                for text in (tool.description, tool.name)
            ),
        )
        for tool in tools
    ]
    schema = {
        "tool": pl.String,
        "agent": pl.String,
        "content": pl.String,
        "shingles": pl.List(pl.UInt64),
        "words": pl.List(pl.UInt64),
        "names": pl.List(pl.UInt64),
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


def clones(rows: "pl.DataFrame", fresh: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fresh tools that are near-copies of others of their catalog, where these are most
    of what is fresh there.

    Args:
        rows: of `shingle_rows`, of all tools.
    """
    import polars as pl

    catalog = pl.col("agent").str.split("/").list.first()
    for _, tools in rows.group_by(catalog, maintain_order=True):
        own = tools.with_row_index("number")
        asked = own.filter(pl.col("tool").is_in(sorted(fresh)))
        if len(asked) < MIN_CLONES:
            continue
        cloned = asked.join(_clones(own, asked), on="number", how="semi").get_column("tool")
        if len(cloned) >= max(MIN_CLONES, CLONES * len(asked)):
            yield from ((tool, {"flag": CLONE, "clones": len(cloned)}) for tool in cloned)


def _clones(tools: "pl.DataFrame", fresh: "pl.DataFrame") -> "pl.DataFrame":
    """Return the numbers of the fresh ones of these tools that consist of boilerplate, or whose
    words are nearly those of another, though their names do not say what differs.
    """
    import polars as pl

    every = tools.select("number", "shingles").explode("shingles").drop_nulls("shingles")
    every = every.with_columns(pl.len().over("shingles").alias("count"))
    common = pl.col("count") > MAX_SHARED
    sizes = every.group_by("number").agg(common.mean().alias("common"), pl.len().alias("whole"))
    sizes = sizes.filter(pl.col("whole") >= MIN_SHINGLES)
    rare = every.filter(pl.col("count").is_between(2, MAX_SHARED)).join(sizes, on="number")
    words = tools.select("number", "words", "names")
    numbers = [sizes.filter(pl.col("common") >= COMMON).select("number")]
    for part in fresh.select("number").iter_slices(AT_ONCE // MAX_SHARED):
        related = (
            rare.join(part, on="number", how="semi")
            .join(rare, on="shingles", suffix="_other")
            .filter(pl.col("number") != pl.col("number_other"))
            .group_by("number", "number_other", "whole_other")
            .len()
            .filter(pl.col("len") >= RELATED * pl.col("whole_other"))
            .join(words, on="number")
            .join(words, left_on="number_other", right_on="number", suffix="_other")
        )
        numbers.append(related.filter(_are_clones()).select("number"))
    return pl.concat(numbers).unique()


def _are_clones() -> "pl.Expr":
    import polars as pl

    words, others = pl.col("words").list, pl.col("words_other")
    same, every = words.set_intersection(others).list.len(), words.set_union(others).list.len()
    different = words.set_symmetric_difference(others).list
    named = pl.col("names").list.set_symmetric_difference(pl.col("names_other"))
    return (same >= CLONED * every) & (different.set_intersection(named).list.len() == 0)


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
    return _digests(" ".join(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1))


def _digests(texts: Iterable[str]) -> list[int]:
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in set(texts))
    return sorted(map(int.from_bytes, digests))
