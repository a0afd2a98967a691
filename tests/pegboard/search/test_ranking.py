from pegboard.search.ranking import Ranked, best_per_tool, convex_combination


def ranked(**scores: float) -> list[Ranked]:
    return [Ranked(tool, score, "document") for tool, score in scores.items()]


def test_a_tool_that_both_find_comes_before_one_that_either_finds():
    fused = convex_combination(ranked(both=0.5, near=0.4, last=-0.5), ranked(both=7.0, words=7.0))

    assert [tool for tool, _ in fused] == ["both", "near", "words", "last"]
    assert fused[0] == ("both", 1.0)


def test_a_tool_that_only_the_text_finds_is_not_lost():
    fused = dict(convex_combination(ranked(a=0.9, b=0.2), ranked(c=3.0)))

    assert fused["c"] > fused["b"]
    assert fused["a"] > fused["c"]


def test_an_empty_ranking_leaves_the_order_of_the_other():
    assert [tool for tool, _ in convex_combination(ranked(a=0.3, b=0.2), [])] == ["a", "b"]
    assert [tool for tool, _ in convex_combination([], ranked(a=3.0, b=2.0))] == ["a", "b"]
    assert convex_combination([], []) == []


def test_equal_scores_are_ordered_by_id():
    assert [tool for tool, _ in convex_combination(ranked(b=0.3, a=0.3), [])] == ["a", "b"]


def test_a_tool_counts_by_its_best_row():
    rows = [
        Ranked("a", 0.1, "description"),
        Ranked("b", 0.2, "description"),
        Ranked("a", 0.3, "question"),
    ]

    assert best_per_tool(rows, 2) == [Ranked("a", 0.3, "question"), Ranked("b", 0.2, "description")]
