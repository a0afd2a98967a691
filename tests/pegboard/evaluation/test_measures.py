"""Measures: names, values worked out by hand, and agreement with ranx, a second library, on
rankings drawn at random.

ranx runs without compiling (numba's own switch): a minute of compilation would be spent on a few
hundred short rankings."""

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import (
    KINDS,
    STANDARD,
    Measure,
    measures_of,
    parse_measure,
    per_query,
)

TOOLS = [f"tool_{number}" for number in range(30)]
THEIRS = {
    "Recall": "recall",
    "Precision": "precision",
    "F1": "f1",
    "nDCG": "ndcg",
    "mAP": "map",
    "MRR": "mrr",
    "Hit": "hit_rate",
}
"""What ranx calls the measures; it has no Complete."""
FOUND = [("a", 0.9), ("x", 0.8), ("b", 0.5), ("y", 0.4), ("c", 0.1)]


def value(measure: str, needed: set[str], found: list[tuple[str, float]]) -> float:
    (values,) = per_query([parse_measure(measure)], [needed], [found]).values()
    return float(values[0])


@pytest.fixture(scope="module")
def ranx():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NUMBA_DISABLE_JIT", "1")
        import ranx

        yield ranx


@pytest.fixture(scope="module")
def drawn():
    """Queries with one to eight needed tools, and rankings of none to thirty tools, half of them of
    what is needed at the front.
    """
    dice = np.random.default_rng(7)
    needed: list[set[str]] = []
    found: list[list[tuple[str, float]]] = []
    for length in [0, 0, 1, 2, 3, 4, 7, 30, *dice.integers(0, 31, 32)]:
        order = dice.permutation(TOOLS)[:length].tolist()
        needed.append(set(dice.choice(TOOLS, int(dice.integers(1, 9)), replace=False).tolist()))
        if dice.random() < 0.5:
            order.sort(key=lambda tool, own=needed[-1]: tool not in own)
        found.append([(tool, 1.0 - rank / 100) for rank, tool in enumerate(order)])
    return needed, found


@pytest.mark.parametrize("k", [1, 3, 5, 10, 40])
def test_every_measure_of_the_first_k_agrees_with_ranx(ranx, drawn, k):
    needed, found = drawn
    qrels = ranx.Qrels({f"q{at:03}": dict.fromkeys(own, 1) for at, own in enumerate(needed)})
    # ranx cannot hold an empty ranking. One tool that is never needed stands in; the mean is over
    # all queries all the same.
    run = ranx.Run(
        {f"q{at:03}": dict(ranking) or {"nothing": 1.0} for at, ranking in enumerate(found)}
    )
    ours = per_query([Measure(kind, k) for kind in THEIRS], needed, found)

    theirs = ranx.evaluate(
        qrels, run, [f"{name}@{k}" for name in THEIRS.values()], return_mean=False
    )

    for kind, name in THEIRS.items():
        np.testing.assert_allclose(
            ours[Measure(kind, k)], theirs[f"{name}@{k}"], atol=1e-6, rtol=0, err_msg=kind
        )


def test_every_measure_of_all_that_was_found_agrees_with_ranx(ranx, drawn):
    """Precision without a k is of what was found, in both libraries, and so is F1."""
    needed, found = drawn
    qrels = ranx.Qrels({f"q{at:03}": dict.fromkeys(own, 1) for at, own in enumerate(needed)})
    run = ranx.Run(
        {f"q{at:03}": dict(ranking) or {"nothing": 1.0} for at, ranking in enumerate(found)}
    )
    ours = per_query([Measure(kind) for kind in THEIRS], needed, found)

    theirs = ranx.evaluate(qrels, run, list(THEIRS.values()), return_mean=False)

    for kind, name in THEIRS.items():
        np.testing.assert_allclose(
            ours[Measure(kind)], theirs[name], atol=1e-6, rtol=0, err_msg=kind
        )


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("Recall@1", 1 / 3),
        ("Recall@3", 2 / 3),
        ("Recall@5", 1.0),
        ("Complete@3", 0.0),
        ("Complete@5", 1.0),
        ("Complete@9", 1.0),
        ("Hit@1", 1.0),
        ("Precision@3", 2 / 3),
        ("Precision@10", 3 / 10),  # of ten, although five were found
        ("Precision", 3 / 5),
        ("F1@3", 2 / 3),
        ("mAP@10", (1 + 2 / 3 + 3 / 5) / 3),
        (
            "mAP@2",
            1 / 3,
        ),  # divided by the three that are needed, not by the two that could be found
        ("MRR@5", 1.0),
        ("nDCG@2", 1 / (1 + 1 / np.log2(3))),
    ],
)
def test_values_are_those_worked_out_by_hand(measure, expected):
    assert value(measure, {"a", "b", "c"}, FOUND) == pytest.approx(expected)


def test_mrr_looks_at_the_first_hit_and_no_further_than_k():
    assert value("MRR@5", {"b"}, FOUND) == pytest.approx(1 / 3)
    assert value("MRR@2", {"b"}, FOUND) == 0.0


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("Recall>=0.5", 2 / 3),  # a, x and b are left
        ("Precision>=0.5", 2 / 3),
        ("F1>=0.5", 2 / 3),
        ("Complete>=0.1", 1.0),
        ("Complete>=0.2", 0.0),
        ("Precision>=0.95", 0.0),  # nothing is left
        ("Recall>=.9", 1 / 3),
    ],
)
def test_measures_at_a_threshold_are_of_what_scores_at_least_so_much(measure, expected):
    assert value(measure, {"a", "b", "c"}, FOUND) == pytest.approx(expected)


def test_thresholds_and_cuts_are_measured_side_by_side():
    wanted = measures_of(["Recall@1", "Recall>=0.5", "Recall>=0.05", "Recall"])

    found = per_query(wanted, [{"a", "b", "c"}], [FOUND])

    assert [float(values[0]) for values in found.values()] == pytest.approx(
        [1 / 3, 2 / 3, 1.0, 1.0]
    )
    assert list(found) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_found_counts_as_zero_and_stays_in_the_mean(kind):
    found = per_query([Measure(kind, 5), Measure(kind)], [{"a"}, {"a"}], [[], [("a", 1.0)]])

    assert [values[0] for values in found.values()] == [0.0, 0.0]
    assert all(values[1] > 0 for values in found.values())
    assert {values.shape for values in found.values()} == {(2,)}


def test_order_counts_and_not_the_scores():
    """Equal scores, and scores that a refinement left out of order, are ranked as they stand."""
    assert value("MRR@5", {"b"}, [("a", 0.5), ("b", 0.5)]) == pytest.approx(0.5)
    assert value("MRR@5", {"a"}, [("a", 0.1), ("b", 0.9)]) == 1.0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("recall@5", "Recall@5"),
        ("R@10", "Recall@10"),
        ("ndcg @ 3", "nDCG@3"),
        ("MAP@10", "mAP@10"),
        ("rr", "MRR"),
        ("F1>=0.50", "F1>=0.5"),
        (" complete@5 ", "Complete@5"),
        ("success@1", "Hit@1"),
        (Measure("Recall", 5), "Recall@5"),
    ],
)
def test_a_measure_is_written_one_way_however_it_was_asked_for(given, name):
    measure = parse_measure(given)

    assert str(measure) == name
    assert parse_measure(name) == measure


@pytest.mark.parametrize(
    "wrong",
    ["", "Recal@5", "Recall@0", "Recall@-1", "MRR>=0.5", "nDCG>=0.1", "Recall@5>=0.5", "@5"],
)
def test_an_unknown_measure_names_those_there_are(wrong):
    with pytest.raises(
        ConfigurationError,
        match=r"There is no measure .*Recall, Complete, Hit, Precision, F1, nDCG, mAP, MRR",
    ):
        parse_measure(wrong)


def test_all_wrong_names_are_told_at_once_and_doubles_count_once():
    with pytest.raises(ConfigurationError) as error:
        measures_of(["Recall@5", "Foo@1", "Bar"])

    assert "'Foo@1'" in str(error.value)
    assert "'Bar'" in str(error.value)
    assert [str(one) for one in measures_of(["r@5", "Recall@5", "mrr"])] == ["Recall@5", "MRR"]
    assert [str(one) for one in measures_of(STANDARD)] == list(STANDARD)


def test_a_query_that_needs_nothing_cannot_be_measured():
    with pytest.raises(ConfigurationError, match=r"Queries \[1\] need no tool"):
        per_query([Measure("Recall", 5)], [{"a"}, set()], [[], []])


def test_no_queries_have_no_values():
    assert per_query([Measure("Recall", 5)], [], [])[Measure("Recall", 5)].shape == (0,)
