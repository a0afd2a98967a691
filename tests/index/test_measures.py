"""Measures of retrieval, against values worked out by hand."""

import pytest

from pegboard.measures import average_precision, ndcg, recall

FOUND = ["a", "x", "b", "y", "c"]


@pytest.mark.parametrize(("k", "expected"), [(1, 1 / 3), (2, 1 / 3), (3, 2 / 3), (5, 1.0), (9, 1.0)])
def test_recall_is_the_share_of_what_is_needed_among_the_first_k(k, expected):
    assert recall(FOUND, {"a", "b", "c"}, k) == pytest.approx(expected)


def test_average_precision_adds_the_precision_at_each_hit():
    assert average_precision(FOUND, {"a", "b", "c"}, 10) == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)
    assert average_precision(FOUND, {"a", "b", "c"}, 2) == pytest.approx(1 / 2)
    assert average_precision(["x", "y"], {"a"}, 10) == 0.0


def test_ndcg_compares_with_the_best_order():
    assert ndcg(["a", "b", "x"], {"a", "b"}, 3) == pytest.approx(1.0)
    assert ndcg(["x", "a"], {"a"}, 2) == pytest.approx(0.6309297535714574)


def test_nothing_needed_and_nothing_found_are_no_division_by_zero():
    assert recall([], set(), 5) == average_precision([], set(), 5) == ndcg([], set(), 5) == 0.0
    assert recall([], {"a"}, 5) == 0.0
