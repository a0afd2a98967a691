import random

import pytest

from pegboard.ranking import ScoredTool
from pegboard.retrieval.fusion import BestScore, ReciprocalRank, RoundRobin, Weighted

FUSIONS = [
    ReciprocalRank(),
    ReciprocalRank(0),
    RoundRobin(),
    BestScore(),
    Weighted("minmax"),
    Weighted("none"),
]


def ranking(**scores: float) -> list[ScoredTool]:
    return [ScoredTool(tool, score) for tool, score in scores.items()]


def order(fused: list[ScoredTool]) -> list[str]:
    return [row.tool for row in fused]


def test_reciprocal_rank_adds_the_reciprocals_of_the_ranks():
    fused = ReciprocalRank(60).fuse([ranking(a=9, b=8), ranking(b=0.2, c=0.1)], [1.0, 2.0])

    assert order(fused) == ["b", "c", "a"]
    assert [row.score for row in fused] == pytest.approx([1 / 62 + 2 / 61, 2 / 62, 1 / 61])


def test_weighted_is_the_mean_of_what_the_scores_become():
    fused = Weighted("minmax").fuse([ranking(a=30, b=20, c=10), ranking(c=0.9, a=0.4)], [3.0, 1.0])

    assert fused == [ScoredTool("a", 0.75), ScoredTool("b", 0.375), ScoredTool("c", 0.25)]


def test_round_robin_gives_every_ranking_its_turn():
    fused = RoundRobin().fuse(
        [ranking(a=1, b=1, c=1), ranking(x=9, y=8), ranking(a=3, x=2, z=1)], [1, 1, 1]
    )

    assert order(fused) == ["a", "x", "z", "b", "y", "c"]
    assert [row.score for row in fused] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6])


def test_best_score_takes_a_tool_at_its_best():
    fused = BestScore().fuse([ranking(a=0.9, b=0.5), ranking(b=0.8, c=0.7)], [1.0, 1.0])

    assert fused == ranking(a=0.9, b=0.8, c=0.7)
    assert order(BestScore().fuse([ranking(a=0.9), ranking(b=0.6)], [0.5, 1.0])) == ["b", "a"]
    assert BestScore().fuse([ranking(a=-0.5)], [1.0]) == ranking(a=-0.5)


@pytest.mark.parametrize("fusion", FUSIONS, ids=str)
def test_every_fusion_gives_the_union_in_falling_order_each_tool_once(fusion):
    dice = random.Random(7)
    for _ in range(50):
        rankings = []
        for _ in range(dice.randint(0, 4)):
            tools = dice.sample("abcdefghij", dice.randint(0, 10))
            scores = sorted((dice.choice([0, 0.5, -1, dice.random()]) for _ in tools), reverse=True)
            rankings.append(
                [ScoredTool(tool, score) for tool, score in zip(tools, scores, strict=True)]
            )

        fused = fusion.fuse(rankings, [dice.choice([0.5, 1.0, 2.0]) for _ in rankings])

        assert sorted(order(fused)) == sorted({one.tool for each in rankings for one in each})
        assert [row.score for row in fused] == sorted((one.score for one in fused), reverse=True)


@pytest.mark.parametrize(
    "fusion", [one for one in FUSIONS if not isinstance(one, RoundRobin)], ids=str
)
def test_equal_scores_are_ordered_by_id(fusion):
    assert order(fusion.fuse([ranking(b=0.5), ranking(a=0.5)], [1.0, 1.0])) == ["a", "b"]
