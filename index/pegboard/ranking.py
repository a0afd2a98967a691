"""Rankings of tools and their fusion."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Ranked", "best_per_tool", "reciprocal_rank_fusion"]

RRF_CONSTANT = 60
"""Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", 2009."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A tool at its place in one ranking: its id, its score (higher is better), and the part of it that matched best."""

    tool: str
    score: float
    part: str


def best_per_tool(rows: Iterable[Ranked], n: int) -> list[Ranked]:
    """The best row of each tool, the best `n` tools first; equal scores are ordered by id, so that a ranking is repeatable."""
    best: dict[str, Ranked] = {}
    for row in rows:
        there = best.get(row.tool)
        if there is None or (-row.score, row.part) < (-there.score, there.part):
            best[row.tool] = row
    return sorted(best.values(), key=lambda row: (-row.score, row.tool))[:n]


def reciprocal_rank_fusion(rankings: Mapping[str, Sequence[Ranked]]) -> list[tuple[str, float]]:
    """The tools of all rankings with the sum of 1 / (60 + rank), best first; ranks count from 1."""
    scores: dict[str, float] = {}
    for ranking in rankings.values():
        for rank, row in enumerate(ranking, start=1):
            scores[row.tool] = scores.get(row.tool, 0.0) + 1 / (RRF_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
