"""Fusions: one ranking out of those of a step's queries, or of a request's steps.

    first, second = [ScoredTool("a", 0.9), ScoredTool("b", 0.8)], [ScoredTool("c", 0.4)]
    RoundRobin().fuse([first, second], [1.0, 1.0])    # a, c, b

Every fusion gives the union of its rankings, each tool once, and orders equal scores by id. A
ranking of weight 0 is left out. The score of a fused ranking orders that ranking; whether it says
more is said with each fusion."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import ClassVar, Literal

from pegboard.ranking import ScoredTool
from pegboard.retrieval.parts import Part
from pegboard.retrieval.requests import Ranking


def by_range(scores: Sequence[float]) -> list[float]:
    """Scores moved to 0..1: the lowest becomes 0, the highest 1. All equal, or a single one: 1;
    none: none.

    The last of a ranking counts nothing, so a long ranking is judged more finely than a short one.
    """
    if not scores:
        return []
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) for score in scores] if high > low else [1.0] * len(scores)


def softmax(scores: Sequence[float]) -> list[float]:
    """The share of each in the sum of exp(score)."""
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
    """A tool scores the weighted mean of its normalised scores; a ranking that does not hold it
    gives the least of that ranking.

    Attributes:
        normalise: what is done to the scores of each ranking first, since those of different origin
            cannot be added: `minmax` (CombSUM of Fox and Shaw, 1994), or `none` for scores that
            are comparable as they are.
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
            least = min(scores)
            own = {row.tool: score for row, score in zip(ranking, scores, strict=True)}
            for tool in sums:
                sums[tool] += weight / total * own.get(tool, least)
        return _ordered(sums)


@dataclass(frozen=True, slots=True)
class RoundRobin(Part):
    """The first tool of every ranking, then the second of every ranking, and so on; a tool counts
    once, and the ranking's turn goes to its next (Toolshed, fig. 24, where an LLM
    is told to do this).

    In a round, rankings of higher weight come first, equal ones in their order. It gives every step
    of a request its tool before any step has its second, which is what a request for several things
    needs."""

    part: ClassVar[str] = "round-robin"

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings in the order of their turns; the score is 1 / place."""
        turns = sorted(_weighed(rankings, weights), key=lambda pair: -pair[1])
        waiting = [iter(ranking) for ranking, _ in turns]
        order: dict[str, float] = {}
        while waiting:
            going_on: list[Iterator[ScoredTool]] = []
            for ranking in waiting:
                fresh = next((row.tool for row in ranking if row.tool not in order), None)
                if fresh is not None:
                    order[fresh] = 1 / (len(order) + 1)
                    going_on.append(ranking)
            waiting = going_on
        return [ScoredTool(tool, score) for tool, score in order.items()]


@dataclass(frozen=True, slots=True)
class BestScore(Part):
    """A tool scores its best weight * score over the rankings that hold it (CombMAX of Fox and
    Shaw, 1994).

    For rankings whose scores can be compared: of the same index and mode, or after `Weighted`. A
    step for which nothing fits well takes no place from the others, where `RoundRobin` gives it its
    turn.

    Attributes:
        normalise: `none`, or `softmax`, for the ranker's scores: each becomes its share of
            exp(score) in its ranking, 0 to 1, so that a step whose words say little is heard, too.
            Recall at 5 with both: Seal-Tools .88 and .93, eight real catalogs .792 and .793.
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
            for row, own in zip(ranking, scores, strict=True):
                score = weight * own
                best[row.tool] = max(score, best.get(row.tool, score))
        return _ordered(best)


def _weighed(rankings: Sequence[Ranking], weights: Sequence[float]) -> list[tuple[Ranking, float]]:
    """The rankings that count, with their weights. Raises ValueError if there is not one weight for
    each ranking, or one is below 0.
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
