"""Scored tools, and how a ranking by cosine and one by BM25 become one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pegboard.errors import QueryError

Mode = Literal["hybrid", "vector", "text"]
MODES: tuple[Mode, ...] = get_args(Mode)
FUSION_DEPTH = 100
"""Minimum number of candidates from cosine and from BM25; 4 * k if that is larger."""
VECTOR_SHARE = 0.8
"""Default weight of the cosine in a convex combination: alpha in Graph RAG-Tool Fusion (section
5.3), and good on all collections of Bruch, Gai and Ingber.

Recall@5 with the embedded encoder, by vectors / reciprocal rank fusion / convex combination:
MetaTool .736 / .713 / .739, Seal-Tools .637 / .793 / .849.
"""
FUSED_DIGITS = 5
"""Decimal digits of a fused score."""


@dataclass(frozen=True, slots=True)
class ScoredTool:
    """A tool in one ranking.

    Attributes:
        tool: the tool's id.
        score: higher is better; comparable only within one ranking.
        part: the part of the tool that matched; empty in a fused ranking.
    """

    tool: str
    score: float
    part: str = ""


def best_per_tool(rows: Iterable[ScoredTool], n: int) -> list[ScoredTool]:
    """Return the best row of each of the `n` best tools, best first; ties are ordered by id."""
    best: dict[str, ScoredTool] = {}
    for row in rows:
        best_so_far = best.get(row.tool)
        if best_so_far is None or (-row.score, row.part) < (-best_so_far.score, best_so_far.part):
            best[row.tool] = row
    return sorted(best.values(), key=lambda row: (-row.score, row.tool))[:n]


def check_mode(mode: str) -> None:
    """Raise QueryError unless the mode is valid."""
    if mode not in MODES:
        raise QueryError(f"Unknown mode '{mode}'. Expected one of: {', '.join(MODES)}.")


def hybrid_depth(k: int) -> int:
    """Return the number of candidates to take from cosine and from BM25 for the best k tools."""
    return max(FUSION_DEPTH, 4 * k)


def convex_combination(
    vector: Sequence[ScoredTool], text: Sequence[ScoredTool], alpha: float = VECTOR_SHARE
) -> list[ScoredTool]:
    """Return both rankings fused as alpha * cosine + (1 - alpha) * BM25, best first; scores lie in
    0..1.

    Each score is scaled from its smallest possible value (-1 for a cosine, 0 for BM25) to the best
    of its ranking. A tool that is only in the text ranking gets the cosine of the last tool of the
    vector ranking; a tool that is only in the vector ranking gets a BM25 of 0. Bruch, Gai and
    Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023 (TM2C2).
    """
    best_cosine = max((row.score for row in vector), default=0.0) + 1
    best_bm25 = max((row.score for row in text), default=0.0)
    last_cosine = vector[-1].score + 1 if vector else 0.0
    scores = {
        row.tool: (1 - alpha) * row.score / best_bm25 + alpha * last_cosine / best_cosine
        for row in text
    }
    bm25 = {row.tool: row.score for row in text}
    for row in vector:
        scaled_bm25 = bm25.get(row.tool, 0.0) / best_bm25 if best_bm25 else 0.0
        scores[row.tool] = alpha * (row.score + 1) / best_cosine + (1 - alpha) * scaled_bm25
    rounded = [ScoredTool(tool, round(score, FUSED_DIGITS)) for tool, score in scores.items()]
    return sorted(rounded, key=lambda row: (-row.score, row.tool))
