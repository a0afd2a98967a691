"""What an agent is expected to reach with k tools found, and which k is chosen."""

import json
import math

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.expected import ExpectedAccuracy


def hits(count, queries=100):
    """1 for the first queries, 0 for the others."""
    return np.array([1.0] * count + [0.0] * (queries - count))


SCORES = {1: hits(100), 10: hits(80), 20: hits(40)}
TOKENS = {1: 100.0, 10: 1000.0, 20: 2000.0}
RETRIEVAL = {1: hits(50), 5: hits(90), 10: hits(95), 20: hits(100), 40: hits(100)}


def test_the_expectation_is_the_product_within_the_measured_sizes_and_none_beyond():
    rows = {row.k: row for row in ExpectedAccuracy(SCORES, RETRIEVAL, TOKENS).rows}
    between, beyond, below = rows[5], rows[40], ExpectedAccuracy({5: hits(9)}, {4: hits(9)})

    assert [rows[k].expected.value for k in (1, 10, 20)] == pytest.approx([0.5, 0.8 * 0.95, 0.4])
    measured = [row.expected for row in rows.values() if row.k < 40]
    assert all(one.low <= one.value <= one.high for one in measured)
    width = 2 * 1.96 * math.sqrt(0.4 * 0.6 / 100)
    assert rows[20].expected.high - rows[20].expected.low == pytest.approx(width, rel=0.1)
    # Between two sizes: the agent on the logarithm of the number, tokens on the number.
    assert between.interpolated
    assert between.agent == pytest.approx(1 - 0.2 * math.log(5) / math.log(10))
    assert between.expected.value == pytest.approx(between.agent * 0.9)
    assert between.tokens == pytest.approx(100 + 900 * 4 / 9)
    assert (beyond.agent, beyond.expected, beyond.tokens, beyond.retrieval) == (None, None, None, 1)
    assert below.chosen(0.02) is None


def test_the_smallest_k_that_is_shown_to_be_within_the_margin_of_the_best_is_chosen():
    # Of 100 queries k = 4 misses one that k = 8 finds: that shows a margin of .03, and not of .02.
    flat = {1: hits(100), 8: hits(100)}
    model = ExpectedAccuracy(flat, {2: hits(80), 4: hits(94), 8: hits(95)})
    chosen = model.chosen(0.04)
    equal = ExpectedAccuracy(flat, {k: hits(70) for k in range(1, 9)}).chosen(0)

    assert (chosen.row.k, chosen.best.k) == (4, 8)
    assert chosen.gap.value == pytest.approx(-0.01)
    assert -0.04 <= chosen.gap.low < -0.02
    assert json.loads(json.dumps(chosen.to_dict()))["k"] == 4
    assert (model.chosen(0.02).row.k, equal.row.k, equal.best.k) == (8, 1, 1)
    assert ExpectedAccuracy(SCORES, RETRIEVAL).chosen(0.02).row.k == 5  # worse with more tools


def test_measured_accuracy_with_retrieved_tools_stands_beside_the_product():
    measured = {10: hits(76), 40: hits(10)}
    rows = {row.k: row for row in ExpectedAccuracy(SCORES, RETRIEVAL, measured=measured).rows}

    assert rows[10].measured.value == pytest.approx(0.76)
    assert rows[10].gap.value == pytest.approx(0)
    assert rows[10].gap.low <= 0 <= rows[10].gap.high
    assert (rows[40].measured.value, rows[40].gap) == (pytest.approx(0.1), None)
    assert rows[1].measured is None


def test_agent_and_retrieval_have_to_be_of_the_same_queries():
    with pytest.raises(ConfigurationError, match=r"the same queries; they are \[9, 10\] queries"):
        ExpectedAccuracy({1: hits(9, 9)}, {1: hits(9, 10)})
