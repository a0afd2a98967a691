"""Bootstrap intervals, paired comparisons, and the correction for several of them."""

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import Interval, compare, holm, interval


def drawn(count, mean, seed=3):
    """Values of a measure that is 0 or 1, as recall is where a query needs one tool."""
    return (np.random.default_rng(seed).random(count) < mean).astype(float)


def test_an_interval_is_as_wide_as_the_normal_approximation_and_wider_for_more_confidence():
    values = np.random.default_rng(0).random(400)

    mean = interval(values)
    narrow = interval(values, 0.8)

    assert mean.value == pytest.approx(values.mean())
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert (mean.high - mean.low) / 2 == pytest.approx(half, rel=0.1)
    assert mean.low < narrow.low < narrow.value < narrow.high < mean.high
    assert mean == interval(list(values)) == interval(values.copy())


@pytest.mark.parametrize("values", [[1.0], [0.25] * 8, [0.0, 0.0]])
def test_equal_values_have_an_interval_without_width(values):
    mean = interval(values)

    assert mean == Interval(values[0], values[0], values[0], len(values))
    assert str(mean) == f"{values[0]:.3f} [{values[0]:.3f}, {values[0]:.3f}]"


def test_a_better_system_is_found_to_be_better():
    theirs = drawn(200, 0.5)
    ours = np.maximum(theirs, drawn(200, 0.2, 5))  # never worse, better on about a tenth

    gap = compare(ours, theirs)
    back = compare(theirs, ours)

    assert gap.value == pytest.approx((ours - theirs).mean())
    assert 0 < gap.low < gap.value < gap.high
    assert gap.p == pytest.approx(2e-4)
    assert (back.value, back.p) == (-gap.value, gap.p)
    assert gap == compare(ours, theirs)


@pytest.mark.parametrize(
    ("ours", "theirs", "value", "p"),
    [
        # Four queries differ, all for the better: 2 of the 16 ways to swap them are as extreme.
        ([1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1], 4 / 6, 2 / 16),
        ([1, 0, 1], [1, 0, 1], 0, 1),
        ([1, 1, 0], [1, 0, 0], 1 / 3, 1),
    ],
)
def test_few_differing_queries_have_the_exact_p(ours, theirs, value, p):
    gap = compare(ours, theirs)

    assert (gap.value, gap.p, gap.n) == (pytest.approx(value), pytest.approx(p), len(ours))


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5}, {"a": 0.04, "b": 0.09, "c": 0.09, "d": 0.5}),
        ({"only": 0.03}, {"only": 0.03}),
        ({"a": 0.6, "b": 0.7}, {"a": 1.0, "b": 1.0}),
        ({}, {}),
    ],
)
def test_holm_corrects_for_the_number_of_comparisons_and_keeps_the_order(p_values, corrected):
    assert holm(p_values) == pytest.approx(corrected)
    assert list(holm(p_values)) == list(p_values)


def test_no_values_and_unequal_numbers_of_values_are_refused():
    with pytest.raises(ConfigurationError, match="no queries to measure"):
        interval([])
    with pytest.raises(ConfigurationError, match="3 and 2 values cannot be compared in pairs"):
        compare([1, 0, 1], [1, 0])
