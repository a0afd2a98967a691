"""Rankings of tools and their fusion."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pegboard.errors import QueryError

Mode = Literal["hybrid", "vector", "text"]
MODES: tuple[Mode, ...] = get_args(Mode)
FUSION_DEPTH = 100
"""Minimum candidates from cosine and from BM25; four times k if that is more."""
VECTOR_SHARE = 0.8
"""The weight of the cosine in a convex combination: alpha of Graph RAG-Tool Fusion (section 5.3),
and what Bruch, Gai and Ingber find good on all their collections.

Here, with the embedded encoder, recall at 5 by vectors / reciprocal rank fusion / this: MetaTool
.736 / .713 / .739, Seal-Tools .637 / .793 / .849.
"""
FUSED_DIGITS = 5


@dataclass(frozen=True, slots=True)
class ScoredTool:
    """A tool in one ranking.

    Attributes:
        tool: its id.
        score: higher is better, comparable within the ranking only.
        part: the part of the tool that a search matched; empty in a fused ranking.
    """

    tool: str
    score: float
    part: str = ""


def best_per_tool(rows: Iterable[ScoredTool], n: int) -> list[ScoredTool]:
    """Return the best row of each tool, the best `n` tools first; ties are ordered by id."""
    best: dict[str, ScoredTool] = {}
    for row in rows:
        earlier = best.get(row.tool)
        if earlier is None or (-row.score, row.part) < (-earlier.score, earlier.part):
            best[row.tool] = row
    return sorted(best.values(), key=lambda row: (-row.score, row.tool))[:n]


def check_mode(mode: str) -> None:
    """Raise QueryError unless the mode is valid."""
    if mode not in MODES:
        raise QueryError(f"Unknown mode '{mode}'. Expected one of: {', '.join(MODES)}.")


def hybrid_depth(k: int) -> int:
    """Return how many tools cosine and BM25 each contribute to the first k."""
    return max(FUSION_DEPTH, 4 * k)


def convex_combination(
    vector: Sequence[ScoredTool], text: Sequence[ScoredTool], alpha: float = VECTOR_SHARE
) -> list[ScoredTool]:
    """Return both rankings fused as alpha * cosine + (1 - alpha) * BM25, best first; scores lie in
    0..1.

    Each score is scaled by its smallest possible value (-1 for a cosine, 0 for BM25) and the best
    of its ranking. A tool that only the text found gets the cosine of the last that the vectors
    found; one that only the vectors found has no BM25. Bruch, Gai and Ingber, "An Analysis of
    Fusion Functions for Hybrid Retrieval", 2023 (TM2C2).
    """
    best_cosine = max((row.score for row in vector), default=0.0) + 1
    best_bm25 = max((row.score for row in text), default=0.0)
    last = vector[-1].score + 1 if vector else 0.0
    scores = {
        row.tool: (1 - alpha) * row.score / best_bm25 + alpha * last / best_cosine for row in text
    }
    bm25 = {row.tool: row.score for row in text}
    for row in vector:
        words = bm25.get(row.tool, 0.0) / best_bm25 if best_bm25 else 0.0
        scores[row.tool] = alpha * (row.score + 1) / best_cosine + (1 - alpha) * words
    rounded = [ScoredTool(tool, round(score, FUSED_DIGITS)) for tool, score in scores.items()]
    return sorted(rounded, key=lambda row: (-row.score, row.tool))
