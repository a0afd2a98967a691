"""Tools that would take the requests of others: stuffed with examples, or copies of other tools.

- `stuffing`: most of a tool's examples are nearer to many other tools than to what the tool itself
  says that it does. Such examples draw requests that it does not answer.
- `near-copy`: a description repeats that of another agent's tool, perhaps with some words more; or
  name, description and parameters are the same, however short.

Both are reasons to look at a tool, as the flags of `untrusted.py` are, and stand in the manifest of
a release under `suspicious`. They depend on the other tools, so they are no column of `tools`.

documents/shingles-<digest>   each tool's shingles: all that stand in a row in its description; and
                              one value for its name, description and parameters

The shingles of tools that did not change are read; all are counted each time."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.records import Agent, Tool
from pegboard.search.text import singular_words
from tasks.embed import encoder_for
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, read_rows
from tasks.lake.snapshot_rows import agents_of, snapshot_rows, tools_of
from tasks.plan import Plan
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

STUFFING = "stuffing"

MIN_EXAMPLES = 3
"""Fewer say nothing of a tool's examples as a whole."""
MAX_EXAMPLES = 10
"""Of a tool: an index takes so many."""
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

MAX_WARNINGS = 10

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

Suspicious = dict[str, list[dict[str, Any]]]


def find_suspicious(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
) -> Suspicious:
    """Return the suspicious tools of a release by id, each with its flags and what shows them.

    Of a copy and its original, only what is new or changed since the live release is flagged; both
    are where nothing is live.

    Args:
        snapshots: catalog -> digest.
    """
    import polars as pl

    lake = Lake(configuration.uri)
    found: Suspicious = defaultdict(list)
    examples = snapshot_rows(lake, snapshots, "tools", ["id", "examples"])
    if (examples.get_column("examples").list.len() >= MIN_EXAMPLES).any():
        encoder = encoder_for(configuration.index(configuration.default))
        agents = {agent.id: agent for agent in agents_of(lake, snapshots)}
        ids = examples.get_column("id")
        sample = tools_of(lake, snapshots, ids.gather_every(-(-len(ids) // MAX_TOOLS)))
        own = examples.filter(pl.col("examples").list.len() >= MIN_EXAMPLES).get_column("id")
        rows = snapshot_rows(lake, snapshots, "tools", ids=own)
        for tool, evidence in _stuffed(lake, encoder, rows, sample, agents):
            found[tool].append(evidence)
    fresh = {*plan.new, *plan.changed} if plan.live else set(examples.get_column("id"))
    for tool, evidence in near_copies(stored_shingles(lake, snapshots), fresh):
        found[tool].append(evidence)
    return {tool: found[tool] for tool in sorted(found)}


def warnings_of(suspicious: Suspicious) -> list[str]:
    """Return a sentence for each suspicious tool, the first `MAX_WARNINGS`, and what to do."""
    lines: list[str] = []
    for tool, rows in list(suspicious.items())[:MAX_WARNINGS]:
        reasons = [
            f"it repeats the description of {row['of']}"
            if row["flag"] == NEAR_COPY
            else "its examples are nearer to many other tools than to itself"
            for row in rows
        ]
        lines.append(
            f"{tool} may take the requests of other tools: {' and '.join(reasons)}. Look at it; "
            f'skip it under [overrides], or set trust = "limited" for its catalog.'
        )
    if more := len(suspicious) - len(lines):
        lines.append(f"{more} more tools may take the requests of others; the report has all.")
    return lines


def _stuffed(
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
