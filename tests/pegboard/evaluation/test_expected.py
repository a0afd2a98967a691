"""What an agent is expected to reach with k tools found, and which k is chosen."""

import json
import math

import numpy as np
import pytest

from pegboard.evaluation.expected import ExpectedAccuracy


def hits(count, queries=100):
    """1 for the first queries, 0 for the others."""
    return np.array([1.0] * count + [0.0] * (queries - count))


SCORES = {1: hits(100), 10: hits(80), 20: hits(40)}
RETRIEVAL = {1: hits(50), 10: hits(95), 20: hits(100)}


def test_the_expectation_is_the_product_with_an_interval_over_the_queries():
    by_k = ExpectedAccuracy.of(SCORES, RETRIEVAL, margin=0.02).by_k

    assert [by_k[k].value for k in (1, 10, 20)] == pytest.approx([0.5, 0.8 * 0.95, 0.4])
    assert all(one.low <= one.value <= one.high for one in by_k.values())
    width = 2 * 1.96 * math.sqrt(0.4 * 0.6 / 100)
    assert by_k[20].high - by_k[20].low == pytest.approx(width, rel=0.1)


def test_the_smallest_k_that_is_shown_to_be_within_the_margin_of_the_best_is_chosen():
    # Of 100 queries k = 4 misses one that k = 8 finds: that shows a margin of .03, and not of .02.
    always = {k: hits(100) for k in (2, 4, 8)}
    recall = {2: hits(80), 4: hits(94), 8: hits(95)}
    chosen = ExpectedAccuracy.of(always, recall, margin=0.04)
    strict = ExpectedAccuracy.of(always, recall, margin=0.02)
    equal = ExpectedAccuracy.of(always, dict.fromkeys(always, hits(70)), margin=0)

    assert (chosen.k, chosen.best) == (4, 8)
    assert chosen.gap.value == pytest.approx(-0.01)
    assert -0.04 <= chosen.gap.low < -0.02
    assert json.loads(json.dumps(chosen.to_dict()))["k"] == 4
    assert (strict.k, equal.k, equal.best) == (8, 2, 2)
    assert ExpectedAccuracy.of(SCORES, RETRIEVAL, 0.02).k == 10  # worse with more tools
