"""Fusions: merge the rankings of a step's queries, or of a request's steps, into one.

    rankings = [[ScoredTool("a", 0.9), ScoredTool("b", 0.8)], [ScoredTool("c", 0.4)]]
    RoundRobin().fuse(rankings, [1.0, 1.0])    # a, c, b

Every fusion returns the union of its rankings, each tool once, and orders equal scores by id.
Rankings of weight 0 are ignored. Fused scores order the fused ranking; each fusion says whether
they mean more."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import ClassVar, Literal

from pegboard.ranking import ScoredTool
from pegboard.retrieval.parts import Part
from pegboard.retrieval.requests import Ranking


def by_range(scores: Sequence[float]) -> list[float]:
    """Scale scores to 0..1 by their minimum and maximum. Equal scores, or a single one, become 1.

    The last tool of a ranking scores 0, so a long ranking is graded more finely than a short one.
    """
    if not scores:
        return []
    low = min(scores)
    high = max(scores)
    if low == high:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def softmax(scores: Sequence[float]) -> list[float]:
    """Return each score's share of the sum of exp(score)."""
    highest = max(scores, default=0.0)
    powers = [exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


@dataclass(frozen=True, slots=True)
class ReciprocalRank(Part):
    """Reciprocal rank fusion: a tool scores the sum of weight / (k + rank) over the rankings that
    hold it, ranks counted from 1.

    Scores do not matter, only ranks, so rankings of any origin can be fused. Cormack, Clarke and
    Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    2009, who found k = 60. It rewards what many rankings hold: right for several wordings of one
    need, wrong for the steps of a request, of which each needs another tool."""

    part: ClassVar[str] = "reciprocal-rank"
    may_be_zero: ClassVar[tuple[str, ...]] = ("k",)
    k: int = 60

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings, best first; scores lie between 0 and the sum of the weights /
        (k + 1).
        """
        sums: dict[str, float] = defaultdict(float)
        for ranking, weight in _weighed(rankings, weights):
            for rank, row in enumerate(ranking, start=1):
                sums[row.tool] += weight / (self.k + rank)
        return _ordered(sums)


@dataclass(frozen=True, slots=True)
class Weighted(Part):
    """A tool scores the weighted mean of its normalised scores; a ranking that lacks the tool
    contributes its lowest score.

    Attributes:
        normalise: the normalisation of each ranking's scores, since scores of different origin
            cannot be added: `minmax` (CombSUM of Fox and Shaw, 1994), or `none` for comparable
            scores.
    """

    normalise: Literal["minmax", "none"] = "minmax"
    part: ClassVar[str] = "weighted"

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings, best first; with `minmax` all scores lie in 0..1."""
        weighed = [(ranking, weight) for ranking, weight in _weighed(rankings, weights) if ranking]
        total = sum(weight for _, weight in weighed)
        sums: dict[str, float] = dict.fromkeys(
            (row.tool for ranking, _ in weighed for row in ranking), 0.0
        )
        for ranking, weight in weighed:
            scores = [row.score for row in ranking]
            if self.normalise == "minmax":
                scores = by_range(scores)
            lowest = min(scores)
            score_of = {row.tool: score for row, score in zip(ranking, scores, strict=True)}
            for tool in sums:
                sums[tool] += weight / total * score_of.get(tool, lowest)
        return _ordered(sums)


@dataclass(frozen=True, slots=True)
class RoundRobin(Part):
    """The first tool of every ranking, then the second of every ranking, and so on; a tool that is
    already present is skipped in favour of the ranking's next (Toolshed, fig. 24, where an LLM is
    told to do this).

    In each round, rankings of higher weight come first; equal weights keep their order. Every step
    of a request gets its first tool before any step gets its second, which suits a request for
    several things."""

    part: ClassVar[str] = "round-robin"

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings in the order of their turns; the score is 1 / place."""
        turns = sorted(_weighed(rankings, weights), key=lambda pair: -pair[1])
        waiting = [iter(ranking) for ranking, _ in turns]
        order: dict[str, float] = {}
        while waiting:
            unfinished: list[Iterator[ScoredTool]] = []
            for ranking in waiting:
                next_tool = next((row.tool for row in ranking if row.tool not in order), None)
                if next_tool is not None:
                    order[next_tool] = 1 / (len(order) + 1)
                    unfinished.append(ranking)
            waiting = unfinished
        return [ScoredTool(tool, score) for tool, score in order.items()]


@dataclass(frozen=True, slots=True)
class BestScore(Part):
    """A tool scores its best weight * score over the rankings that contain it (CombMAX of Fox and
    Shaw, 1994).

    For rankings with comparable scores: of the same index and mode, or after `Weighted`. A step for
    which nothing fits well does not displace the tools of other steps, whereas `RoundRobin` gives
    every step its turn.

    Attributes:
        normalise: `none`, or `softmax` for the ranker's scores: each becomes its share of
            exp(score) in its ranking, 0 to 1, so that a step with uninformative words counts, too.
            Recall at 5 with `none` and `softmax`: Seal-Tools .88 and .93, eight real catalogs .792
            and .793.
    """

    normalise: Literal["none", "softmax"] = "none"
    part: ClassVar[str] = "best-score"

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings, best first; the score is that of the searches, times the
        weight.
        """
        best: dict[str, float] = {}
        for ranking, weight in _weighed(rankings, weights):
            scores = [row.score for row in ranking]
            if self.normalise == "softmax":
                scores = softmax(scores)
            for row, score in zip(ranking, scores, strict=True):
                weighted = weight * score
                best[row.tool] = max(weighted, best.get(row.tool, weighted))
        return _ordered(best)


def _weighed(rankings: Sequence[Ranking], weights: Sequence[float]) -> list[tuple[Ranking, float]]:
    """Return the rankings of non-zero weight with their weights. Raises ValueError unless there is
    one weight of at least 0 for each ranking.
    """
    if len(rankings) != len(weights) or min(weights, default=0) < 0:
        raise ValueError(
            f"{len(rankings)} rankings have the weights {list(weights)}; expected as many, none "
            f"below 0."
        )
    return [
        (ranking, weight) for ranking, weight in zip(rankings, weights, strict=True) if weight > 0
    ]


def _ordered(scores: Mapping[str, float]) -> list[ScoredTool]:
    return [
        ScoredTool(tool, score)
        for tool, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
