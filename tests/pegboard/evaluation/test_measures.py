"""Measures: names, values worked out by hand, and agreement with their definitions on rankings
drawn at random.
"""

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import (
    KINDS,
    Measure,
    parse_measure,
    per_query,
)

TOOLS = [f"tool_{number}" for number in range(30)]
RANKING = [("a", 0.9), ("x", 0.8), ("b", 0.5), ("y", 0.4), ("c", 0.1)]


def value(measure, needed, ranking):
    (values,) = per_query([parse_measure(measure)], [needed], [ranking]).values()
    return float(values[0])


def defined(kind, needed, found, k):
    """A measure of the first k found tools, all of them without a k, as textbooks define it."""
    cut = found[:k]
    right = [tool in needed for tool in cut]
    ranks = [rank for rank, hit in enumerate(right, start=1) if hit]
    recall, precision = sum(right) / len(needed), sum(right) / (k or len(cut) or 1)
    ideal = range(1, 1 + min(len(needed), k or len(needed)))
    return {
        "Recall": recall,
        "Precision": precision,
        "F1": 2 * recall * precision / (recall + precision) if ranks else 0.0,
        "nDCG": sum(1 / np.log2(1 + rank) for rank in ranks)
        / sum(1 / np.log2(1 + rank) for rank in ideal),
        "mAP": sum(at / rank for at, rank in enumerate(ranks, start=1)) / len(needed),
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "Hit": float(bool(ranks)),
        "Complete": float(len(ranks) == len(needed)),
    }[kind]


@pytest.fixture(scope="module")
def drawn():
    """Queries with one to eight needed tools, and rankings of none to thirty tools, half of them
    with the needed tools in front.
    """
    dice = np.random.default_rng(7)
    needed, rankings = [], []
    for length in [0, 0, 1, 2, 3, 4, 7, 30, *dice.integers(0, 31, 32)]:
        order = dice.permutation(TOOLS)[:length].tolist()
        needed.append(set(dice.choice(TOOLS, int(dice.integers(1, 9)), replace=False).tolist()))
        if dice.random() < 0.5:
            order.sort(key=lambda tool, own=needed[-1]: tool not in own)
        rankings.append([(tool, 1.0 - rank / 100) for rank, tool in enumerate(order)])
    return needed, rankings


@pytest.mark.parametrize("k", [1, 3, 5, 10, 40, None])
@pytest.mark.parametrize("kind", KINDS)
def test_every_measure_agrees_with_its_definition(drawn, kind, k):
    """Without a k, precision and F1 are of what was found."""
    needed, rankings = drawn

    (values,) = per_query([Measure(kind, k)], needed, rankings).values()

    expected = [
        defined(kind, own, [tool for tool, _ in ranking], k)
        for own, ranking in zip(needed, rankings, strict=True)
    ]
    np.testing.assert_allclose(values, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("Precision@10", 3 / 10),  # of ten, although five were found
        ("Precision", 3 / 5),
        ("mAP@10", (1 + 2 / 3 + 3 / 5) / 3),
        ("mAP@2", 1 / 3),  # divided by the three needed, not by the two that could be found
        ("nDCG@2", 1 / (1 + 1 / np.log2(3))),
    ],
)
def test_values_are_those_worked_out_by_hand(measure, expected):
    assert value(measure, {"a", "b", "c"}, RANKING) == pytest.approx(expected)


def test_the_order_of_a_ranking_counts_and_not_its_scores():
    """Equal scores, and scores that a refinement left out of order, are ranked as they stand."""
    assert value("MRR@5", {"b"}, RANKING) == pytest.approx(1 / 3)
    assert value("MRR@2", {"b"}, RANKING) == 0.0
    assert value("MRR@5", {"b"}, [("a", 0.5), ("b", 0.5)]) == pytest.approx(0.5)
    assert value("MRR@5", {"a"}, [("a", 0.1), ("b", 0.9)]) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_ranking_counts_as_zero_and_stays_in_the_mean(kind):
    values = per_query([Measure(kind, 5), Measure(kind)], [{"a"}, {"a"}], [[], [("a", 1.0)]])

    assert [column[0] for column in values.values()] == [0.0, 0.0]
    assert all(column[1] > 0 for column in values.values())
    assert per_query([Measure(kind)], [], [])[Measure(kind)].shape == (0,)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("recall@5", "Recall@5"),
        ("MAP@10", "mAP@10"),
        (Measure("Recall", 5), "Recall@5"),
    ],
)
def test_a_measure_has_one_name_however_it_was_written(given, name):
    measure = parse_measure(given)

    assert str(measure) == name
    assert parse_measure(name) == measure


@pytest.mark.parametrize(
    "wrong",
    ["", "Recal@5", "Recall@0", "Recall@-1", "F1>=0.5", "@5"],
)
def test_an_unknown_measure_names_those_there_are(wrong):
    names = ", ".join(["Recall", "Complete", "Hit", "Precision", "F1", "nDCG", "mAP", "MRR"])
    with pytest.raises(ConfigurationError, match=rf"There is no measure .*{names}"):
        parse_measure(wrong)


def test_a_query_that_needs_no_tool_cannot_be_measured():
    with pytest.raises(ConfigurationError, match=r"Queries \[1\] need no tool"):
        per_query([Measure("Recall", 5)], [{"a"}, set()], [[], []])
