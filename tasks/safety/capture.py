"""Tools that would take the requests of others: stuffed with examples, or copies of other tools.

- `stuffing`: most of a tool's examples are nearer to many other tools than to what the tool itself
  says that it does. Such examples draw requests that it does not answer.
- `near-copy`: a description repeats that of a tool of another agent (`copies.py`).

Both are reasons to look at a tool, as the flags of `untrusted.py` are, and stand in the manifest of
a release under `suspicious`. They depend on the other tools, so they are no column of `tools`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.encoders import Encoder
from pegboard.records import Agent, Tool
from tasks.embed import encoder_for
from tasks.enrichment.neighbours import head_text
from tasks.enrichment.vectors import vectors_of
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows, tools_of
from tasks.plan import Plan
from tasks.safety.copies import NEAR_COPY, near_copies, stored_shingles
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

Suspicious = dict[str, list[dict[str, Any]]]


def find_suspicious(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
    encoder: Encoder | None = None,
) -> Suspicious:
    """Return the suspicious tools of a release by id, each with its flags and what shows them.

    Of a copy and its original, only what is new or changed since the live release is flagged; both
    are where nothing is live.

    Args:
        snapshots: catalog -> digest.
        encoder: replaces that of the default index.
    """
    import polars as pl

    lake = Lake(configuration.uri)
    found: Suspicious = defaultdict(list)
    examples = snapshot_rows(lake, snapshots, "tools", ["id", "examples"])
    if (examples.get_column("examples").list.len() >= MIN_EXAMPLES).any():
        encoder = encoder or encoder_for(configuration.index(configuration.default))
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
