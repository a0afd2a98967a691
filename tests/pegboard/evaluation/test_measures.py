"""Measures: their names, and values worked out by hand."""

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import KINDS, Measure, parse_measure, per_query

RANKING = [("a", 0.9), ("x", 0.8), ("b", 0.5), ("y", 0.4), ("c", 0.1)]


def value(measure, needed, ranking):
    (values,) = per_query([parse_measure(measure)], [needed], [ranking]).values()
    return float(values[0])


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("Recall@1", 1 / 3),
        ("Recall", 1),
        ("Complete@4", 0),
        ("Complete@5", 1),
        ("Complete", 1),
        ("Hit@1", 1),
        ("Hit", 1),
        ("Precision@3", 2 / 3),
        ("Precision@10", 3 / 10),  # of ten, although five were found
        ("Precision", 3 / 5),
        ("F1@3", 2 / 3),
        ("F1", 3 / 4),
        ("MRR@1", 1),
        ("MRR", 1),
        ("mAP", (1 + 2 / 3 + 3 / 5) / 3),
        ("mAP@10", (1 + 2 / 3 + 3 / 5) / 3),
        ("mAP@2", 1 / 3),  # divided by the three needed, not by the two that could be found
        ("nDCG@2", 1 / (1 + 1 / np.log2(3))),
        ("nDCG", (1 + 1 / np.log2(4) + 1 / np.log2(6)) / (1 + 1 / np.log2(3) + 1 / np.log2(4))),
    ],
)
def test_values_are_those_worked_out_by_hand(measure, expected):
    assert value(measure, {"a", "b", "c"}, RANKING) == pytest.approx(expected)


def test_the_order_of_a_ranking_counts_and_not_its_scores():
    """Equal scores, and scores that a refinement left out of order, are ranked as they stand."""
    assert value("MRR@5", {"b"}, RANKING) == pytest.approx(1 / 3)
    assert value("MRR@2", {"b"}, RANKING) == value("Hit@2", {"b"}, RANKING) == 0.0
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
