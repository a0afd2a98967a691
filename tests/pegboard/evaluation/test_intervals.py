"""How sure a mean is: bootstrap intervals, paired comparisons, and the correction for several of
them.
"""

import numpy as np
import pytest
from scipy import stats

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import Interval, compare, holm, interval


def drawn(count, mean, seed=3):
    """Values of a measure that is 0 or 1, as recall is where a query needs one tool."""
    return (np.random.default_rng(seed).random(count) < mean).astype(float)


def test_about_95_of_100_intervals_hold_the_true_mean():
    held = [
        one.low <= 0.7 <= one.high
        for one in (interval(drawn(120, 0.7, seed)) for seed in range(60))
    ]

    assert 0.87 <= sum(held) / len(held) <= 1.0


def test_an_interval_is_as_wide_as_the_normal_approximation_says():
    values = np.random.default_rng(0).random(400)
    found = interval(values)

    wide = 1.96 * values.std() / np.sqrt(len(values))
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(wide, rel=0.1)


def test_a_higher_confidence_is_wider():
    values = drawn(200, 0.6)
    narrow, usual = interval(values, 0.8), interval(values)

    assert usual.low < narrow.low < narrow.value < narrow.high < usual.high


def test_equal_values_give_equal_intervals_each_time():
    values = drawn(150, 0.4)

    assert interval(values) == interval(list(values)) == interval(values.copy())
    assert compare(values, drawn(150, 0.5, 9)) == compare(values, drawn(150, 0.5, 9))


@pytest.mark.parametrize("values", [[1.0], [0.25] * 8, [0.0, 0.0]])
def test_values_that_are_all_alike_leave_nothing_to_doubt(values):
    assert interval(values) == Interval(values[0], values[0], values[0], len(values))


def test_an_interval_is_written_one_way_everywhere():
    found = Interval(0.5, 0.25, 0.75, 8)

    assert str(found) == "0.500 [0.250, 0.750]"
    assert found.to_dict() == {"value": 0.5, "low": 0.25, "high": 0.75, "n": 8}


def test_a_system_that_is_better_is_found_to_be_better():
    theirs = drawn(200, 0.5)
    ours = np.maximum(theirs, drawn(200, 0.2, 5))  # never worse, better on about a tenth

    found = compare(ours, theirs)

    assert found.value == pytest.approx((ours - theirs).mean())
    assert 0 < found.low < found.value < found.high
    assert found.p == pytest.approx(2e-4)
    back = compare(theirs, ours)
    assert (back.value, back.p) == (-found.value, found.p)


def test_two_systems_of_one_kind_are_not_told_apart():
    ps = [compare(drawn(100, 0.5, seed), drawn(100, 0.5, 1000 + seed)).p for seed in range(12)]

    assert sum(p < 0.05 for p in ps) <= 2
    assert 0.2 < np.mean(ps) < 0.8


def test_pairs_say_more_than_two_means_beside_each_other():
    """Queries differ far more than the two systems do; only their pairs show that one is always a
    little better.
    """
    hard = np.random.default_rng(1).random(80)
    found = compare(hard + 0.02, hard)

    assert found.low == pytest.approx(0.02) == found.high
    assert found.p == pytest.approx(2e-4)
    assert stats.ttest_ind(hard + 0.02, hard).pvalue > 0.5


def test_few_differing_queries_have_the_exact_p():
    """Of four queries that differ, all for the better: two of the sixteen ways to swap them are as
    extreme.
    """
    ours, theirs = np.array([1.0, 1, 1, 1, 0, 1]), np.array([0.0, 0, 0, 0, 0, 1])

    assert compare(ours, theirs).p == pytest.approx(2 / 16)


def test_systems_that_answer_alike_do_not_differ():
    values = drawn(50, 0.5)
    found = compare(values, values)

    assert (found.value, found.low, found.high, found.p, found.n) == (0.0, 0.0, 0.0, 1.0, 50)


def test_one_differing_query_proves_nothing():
    found = compare([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])

    assert (found.value, found.p) == (pytest.approx(1 / 3), 1.0)


def test_holm_corrects_for_the_number_of_comparisons_and_keeps_the_order():
    corrected = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5})

    assert corrected == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.5})
    assert list(corrected) == ["a", "b", "c", "d"]
    assert holm({}) == {}
    assert holm({"only": 0.03}) == {"only": 0.03}
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_nothing_to_measure_and_no_pairs_are_told():
    with pytest.raises(ConfigurationError, match="no queries to measure"):
        interval([])
    with pytest.raises(ConfigurationError, match="3 and 2 values cannot be compared in pairs"):
        compare([1, 0, 1], [1, 0])
    with pytest.raises(ConfigurationError, match="cannot be compared"):
        compare([], [])
