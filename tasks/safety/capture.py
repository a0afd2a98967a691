"""Tools that may capture the requests of others: stuffed with examples, or copies of other tools.

- `stuffing`: most of a tool's examples are nearer to many other tools than to the tool's own
  description. Such examples attract requests that the tool does not answer.
- `near-copy`: a description repeats that of another agent's tool, perhaps with additional words; or
  name, description and parameters are equal, however short.
- `clone`: most of the new or changed tools of a catalog are near-copies of each other, such as
  tools that repeat the wording of requests to fill all first places.

Each is a reason to review a tool, like the flags of `untrusted.py`, and is listed in the manifest
of a release under `suspicious`. They depend on the other tools, so they are not a column of
`tools`.

documents/shingles-<digest>   each tool's shingles, which are the hashed word trigrams of its
                              description; one hash of its name, description and parameters; and
                              its words

Shingles of unchanged tools are read from the lake; all shingles are counted in every build."""

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
"""Smallest number of examples of a tool that is tested for stuffing."""
MAX_EXAMPLES = 10
"""Largest number of examples of a tool that are tested: as many as an index takes."""
BATCH = 1_000
"""Number of tools whose examples are in memory at once."""
MIN_TOOLS = 20
"""Smallest number of other tools with which examples are compared."""
MAX_TOOLS = 1_000
"""Largest number of tools with which examples are compared, a sample spread over the release."""
NEARER = 0.3
"""Smallest mean share of other tools that are nearer to an example than its own tool, for stuffing.
Of MetaTool's 199 plugins, whose names and descriptions say little about their ten requests, 4 %
have more; ten requests that fit everything have .30 to .77 among 400 tools of Seal-Tools."""

NEAR_COPY = "near-copy"
SHINGLES_VERSION = 3
"""Raise this when the same tools get other shingles, so that stored ones are not reused."""
SHINGLE = 3
"""Number of consecutive words in a shingle."""
MIN_SHINGLES = 3
"""Smallest number of shingles of a description that is compared."""
COPIED = 0.9
"""Smallest share of the original's shingles in a copy, which may have more shingles."""
AT_ONCE = 20_000
"""Number of tools that are compared with all others at once."""
MAX_SHARED = 20
"""Largest number of tools that share a shingle; a shingle of more tools is boilerplate."""

CLONE = "clone"
CLONED = 0.7
"""Smallest Jaccard similarity of the words of two clones, whose names must not differ in the same
words as their descriptions."""
COMMON = 0.8
"""Smallest share of boilerplate among a tool's shingles that makes the tool a clone."""
RELATED = 0.3
"""Smallest share of another tool's shingles in a tool, before their words are compared."""
MIN_CLONES = 50
"""Smallest number of new and changed clones of a catalog; fewer are a family of operations."""
CLONES = 0.5
"""Smallest share of clones among the new and changed tools of a catalog. Stripe's API has the
largest share of 14 catalogs: 21 %, and 35 % within a hundred consecutive operations."""


def stuffed(
    lake: Lake,
    encoder: Encoder,
    rows: "pl.DataFrame",
    sample: Sequence[Tool],
    agents: Mapping[str, Agent],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools in `rows` whose examples are nearer to many tools of a sample than to their
    own tool, with what shows it.

    Args:
        agents: all agents by id.
    """
    if len(sample) < MIN_TOOLS:
        return
    sample_texts = [head_text(tool, agents[tool.agent]) for tool in sample]
    sample_vectors = vectors_of(lake, encoder, sample_texts)
    sample_agents = [tool.agent for tool in sample]
    for chunk in rows.iter_slices(BATCH):
        tools = [tool_of(row) for row in chunk.iter_rows(named=True)]
        texts = [
            [head_text(tool, agents[tool.agent]), *tool.examples[:MAX_EXAMPLES]] for tool in tools
        ]
        vectors = iter(vectors_of(lake, encoder, [text for row in texts for text in row]))
        for tool, (_, *examples) in zip(tools, texts, strict=True):
            tool_vector, *example_vectors = islice(vectors, 1 + len(examples))
            other_vectors = sample_vectors[[agent != tool.agent for agent in sample_agents]]
            if len(other_vectors) < MIN_TOOLS:
                continue
            shares = [_nearer(vector, tool_vector, other_vectors) for vector in example_vectors]
            mean_share = sum(shares) / len(shares)
            if mean_share >= NEARER:
                worst = sorted(zip(shares, examples, strict=True), reverse=True)[:3]
                worst_examples = [text for _, text in worst]
                yield (
                    tool.id,
                    {"flag": STUFFING, "nearer": round(mean_share, 3), "examples": worst_examples},
                )


def _nearer(
    example: "NDArray[np.float32]", tool: "NDArray[np.float32]", others: "NDArray[np.float32]"
) -> float:
    """Return the share of the other tools that are nearer to an example than its own tool."""
    return float((others @ example > tool @ example).mean())


def stored_shingles(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return `shingle_rows` of all tools of snapshots (catalog -> digest)."""
    columns = ("tool", "agent", "content", "shingles", "words", "names")
    return tool_rows(lake, "shingles", SHINGLES_VERSION, snapshots, columns, make=_tool_shingles)


def _tool_shingles(tools: "pl.DataFrame") -> "pl.DataFrame":
    return shingle_rows(map(tool_of, tools.iter_rows(named=True)))


def shingle_rows(tools: Iterable[Tool]) -> "pl.DataFrame":
    """Return for each tool its agent, a hash of its content, its distinct shingles, and the words
    of its description (`words`) and its name (`names`), without numbers.

    The content is null for a tool that has neither description nor parameters.
    """
    import polars as pl

    rows = [
        (
            tool.id,
            tool.agent,
            _content(tool),
            _shingles(tool.description),
            _word_digests(tool.description),
            _word_digests(tool.name),
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
    """Yield the fresh tools that repeat the description of another agent's tool, or all of it.

    Time is linear in the number of words: shingles of many descriptions are not compared.

    Args:
        rows: the result of `shingle_rows` for all tools.
        fresh: ids of the tools that may be flagged.
    """
    import polars as pl

    twins = _twins(rows, fresh)
    for tool, other in twins.items():
        yield tool, {"flag": NEAR_COPY, "of": other, "similarity": 1.0}
    tools = rows.sort("tool").with_row_index("number")
    # Numbers in place of ids: a million tools have some ten million shingles.
    numbered = tools.select("number", pl.col("agent").rank("dense"), "shingles")
    shingles = numbered.explode("shingles").drop_nulls("shingles")
    counts = shingles.group_by("shingles").len()
    specific = shingles.join(counts.filter(pl.col("len") <= MAX_SHARED), on="shingles", how="semi")
    sizes = specific.group_by("number").agg(pl.len().alias("size"))
    sizes = sizes.filter(pl.col("size") >= MIN_SHINGLES)
    # A shingle of a single tool counts in its size, and cannot be shared.
    shared = specific.join(counts.filter(pl.col("len") > 1), on="shingles", how="semi")
    shared = shared.join(sizes, on="number")
    ids = tools.get_column("tool")
    candidates = pl.Series("tool", sorted({*fresh} - twins.keys()), pl.String).to_frame()
    for chunk in tools.join(candidates, on="tool", how="semi").iter_slices(AT_ONCE):
        for number, original, size, count in _copied(shared, chunk.select("number")).rows():
            similarity = round(count / size, 3)
            yield ids[number], {"flag": NEAR_COPY, "of": ids[original], "similarity": similarity}


def _copied(shared: "pl.DataFrame", candidates: "pl.DataFrame") -> "pl.DataFrame":
    """Return the candidates that have most shingles of another agent's tool: the number of each,
    the number of that tool, how many shingles that tool has, and how many of them both have.
    """
    import polars as pl

    return (
        shared.join(candidates, on="number", how="semi")
        .join(shared, on="shingles", suffix="_other")
        .filter(pl.col("agent") != pl.col("agent_other"))
        .group_by("number", "number_other", "size_other")
        .len()
        .sort(["number", "len", "number_other"], descending=[False, True, False])
        .unique("number", keep="first", maintain_order=True)
        .filter(pl.col("len") >= COPIED * pl.col("size_other"))
        .sort("number")
    )


def clones(rows: "pl.DataFrame", fresh: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fresh tools that are near-copies of others of their catalog, if they are most of
    the fresh tools of that catalog.

    Args:
        rows: the result of `shingle_rows` for all tools.
        fresh: ids of the tools that may be flagged.
    """
    import polars as pl

    catalog = pl.col("agent").str.split("/").list.first()
    for _, catalog_rows in rows.group_by(catalog, maintain_order=True):
        tools = catalog_rows.with_row_index("number")
        candidates = tools.filter(pl.col("tool").is_in(sorted(fresh)))
        if len(candidates) < MIN_CLONES:
            continue
        numbers = _clones(tools, candidates)
        cloned = candidates.join(numbers, on="number", how="semi").get_column("tool")
        if len(cloned) >= max(MIN_CLONES, CLONES * len(candidates)):
            for tool in cloned:
                yield tool, {"flag": CLONE, "clones": len(cloned)}


def _clones(tools: "pl.DataFrame", candidates: "pl.DataFrame") -> "pl.DataFrame":
    """Return the numbers of the tools that consist of boilerplate, and of the candidates whose
    words are nearly those of another tool, unless their names differ in one of the same words.
    """
    import polars as pl

    shingles = tools.select("number", "shingles").explode("shingles").drop_nulls("shingles")
    shingles = shingles.with_columns(pl.len().over("shingles").alias("count"))
    common = pl.col("count") > MAX_SHARED
    sizes = shingles.group_by("number").agg(common.mean().alias("common"), pl.len().alias("size"))
    sizes = sizes.filter(pl.col("size") >= MIN_SHINGLES)
    shared = shingles.filter(pl.col("count").is_between(2, MAX_SHARED)).join(sizes, on="number")
    words = tools.select("number", "words", "names")
    numbers = [sizes.filter(pl.col("common") >= COMMON).select("number")]
    for chunk in candidates.select("number").iter_slices(AT_ONCE // MAX_SHARED):
        related = (
            shared.join(chunk, on="number", how="semi")
            .join(shared, on="shingles", suffix="_other")
            .filter(pl.col("number") != pl.col("number_other"))
            .group_by("number", "number_other", "size_other")
            .len()
            .filter(pl.col("len") >= RELATED * pl.col("size_other"))
            .join(words, on="number")
            .join(words, left_on="number_other", right_on="number", suffix="_other")
        )
        numbers.append(related.filter(_are_clones()).select("number"))
    return pl.concat(numbers).unique()


def _are_clones() -> "pl.Expr":
    import polars as pl

    words = pl.col("words").list
    other_words = pl.col("words_other")
    equal = words.set_intersection(other_words).list.len()
    total = words.set_union(other_words).list.len()
    different = words.set_symmetric_difference(other_words).list
    different_names = pl.col("names").list.set_symmetric_difference(pl.col("names_other"))
    named = different.set_intersection(different_names).list.len()
    return (equal >= CLONED * total) & (named == 0)


def _twins(rows: "pl.DataFrame", fresh: Collection[str]) -> dict[str, str]:
    """Return the fresh tools whose content equals that of another agent's tool, and that tool."""
    import polars as pl

    contents = rows.select("tool", "agent", "content").drop_nulls("content")
    shared = contents.filter(pl.len().over("content").is_between(2, MAX_SHARED))
    pairs = (
        shared.filter(pl.col("tool").is_in(sorted(fresh)))
        .join(shared, on="content", suffix="_other")
        .filter(pl.col("agent") != pl.col("agent_other"))
        .sort("tool", "tool_other")
        .unique("tool", keep="first", maintain_order=True)
    )
    return dict(pairs.select("tool", "tool_other").iter_rows())


def _content(tool: Tool) -> str | None:
    words = singular_words(tool.description)
    properties = tool.input_schema.get("properties")
    names = sorted(properties) if isinstance(properties, Mapping) else []
    return digest(tool.name, words, names) if words or names else None


def _shingles(text: str) -> list[int]:
    words = singular_words(text)
    starts = range(len(words) - SHINGLE + 1)
    return _digests(" ".join(words[start : start + SHINGLE]) for start in starts)


def _word_digests(text: str) -> list[int]:
    """Return the digests of the words of a text, without numbers."""
    return _digests(word for word in singular_words(text) if not word.isdigit())


def _digests(texts: Iterable[str]) -> list[int]:
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in set(texts))
    return sorted(map(int.from_bytes, digests))
