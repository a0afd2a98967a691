import pytest

from pegboard.ranking import ScoredTool, best_per_tool, convex_combination


def ranked(**scores):
    return [ScoredTool(tool, score, "document") for tool, score in scores.items()]


@pytest.mark.parametrize(
    ("vector", "text", "order"),
    [
        ({"a": 0.5, "b": 0.4, "c": -0.5}, {"a": 7.0, "words": 7.0}, "a b words c"),
        ({"a": 0.9, "b": 0.2}, {"c": 3.0}, "a c b"),
        ({"a": 0.3, "b": 0.2}, {}, "a b"),
        ({}, {"a": 3.0, "b": 2.0}, "a b"),
        ({"b": 0.3, "a": 0.3}, {}, "a b"),
        ({}, {}, ""),
    ],
    ids=["both before either", "by text only", "no text", "no vectors", "ties by id", "nothing"],
)  # fmt: skip
def test_both_rankings_are_fused(vector, text, order):
    fused = convex_combination(ranked(**vector), ranked(**text))

    assert [row.tool for row in fused] == order.split()
    assert all(0 <= row.score <= 1 for row in fused)


def test_a_tool_is_ranked_by_its_best_row():
    rows = [*ranked(a=0.1, b=0.2), ScoredTool("a", 0.3, "question")]

    assert best_per_tool(rows, 2) == [ScoredTool("a", 0.3, "question"), *ranked(b=0.2)]
