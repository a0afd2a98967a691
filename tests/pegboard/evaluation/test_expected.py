"""What an agent is expected to reach with k tools found, and which k is named."""

import json
import math

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.expected import AgentCurve, ExpectedAccuracy


def ones(count, queries=100):
    """A value for each query: 1 for so many, else 0."""
    return np.array([1.0] * count + [0.0] * (queries - count))


CURVE = AgentCurve({1: ones(100), 10: ones(80), 20: ones(40)}, {1: 100.0, 10: 1000.0, 20: 2000.0})
RETRIEVAL = {1: ones(50), 5: ones(90), 10: ones(95), 20: ones(100), 40: ones(100)}


def test_the_expectation_is_the_product_of_both_means():
    rows = {row.k: row for row in ExpectedAccuracy(CURVE, RETRIEVAL, 4000).rows}

    assert (rows[1].expected, rows[10].expected, rows[20].expected) == pytest.approx(
        (0.5, 0.8 * 0.95, 0.4)
    )
    assert all(row.tools == 4000 for row in rows.values())
    assert all(
        row.low <= row.expected <= row.high for row in rows.values() if row.expected is not None
    )
    assert rows[20].high - rows[20].low == pytest.approx(
        2 * 1.96 * math.sqrt(0.4 * 0.6 / 100), rel=0.1
    )


def test_between_two_measured_numbers_the_agent_is_read_on_the_logarithm_and_tokens_on_the_number():
    row = next(row for row in ExpectedAccuracy(CURVE, RETRIEVAL, 4000).rows if row.k == 5)

    assert row.interpolated
    assert row.agent == pytest.approx(1 - 0.2 * math.log(5) / math.log(10))
    assert row.expected == pytest.approx(row.agent * 0.9)
    assert row.tokens == pytest.approx(100 + 900 * 4 / 9)


def test_beyond_what_was_measured_nothing_is_said():
    row = ExpectedAccuracy(CURVE, RETRIEVAL, 4000).rows[-1]

    assert (row.k, row.agent, row.expected, row.low, row.high, row.tokens) == (
        40,
        None,
        None,
        None,
        None,
        None,
    )
    assert row.retrieval == 1
    assert AgentCurve({5: ones(9)}).at(4) is None


def test_the_smallest_k_that_is_not_significantly_below_the_best_is_chosen():
    # Of 100 queries, k = 4 misses one that k = 8 finds: chance. k = 2 misses fifteen.
    model = ExpectedAccuracy(
        AgentCurve({1: ones(100), 8: ones(100)}), {2: ones(80), 4: ones(94), 8: ones(95)}, 500
    )

    chosen = model.chosen()

    assert (chosen.row.k, chosen.best.k) == (4, 8)
    assert chosen.below.value == pytest.approx(0.01)
    assert chosen.below.low <= 0 < chosen.below.high
    assert json.loads(json.dumps(chosen.to_dict()))["best"]["k"] == 8


def test_more_tools_than_the_agent_bears_are_not_chosen():
    assert ExpectedAccuracy(CURVE, RETRIEVAL, 4000).chosen().row.k == 5


def test_a_bound_on_tokens_rules_out_what_costs_more_or_what_is_not_known():
    model = ExpectedAccuracy(CURVE, RETRIEVAL, 4000)

    assert model.chosen(max_tokens=300).row.k == 1
    assert model.chosen(max_tokens=99) is None
    assert (
        ExpectedAccuracy(AgentCurve({1: ones(9, 9)}), {1: ones(9, 9)}, 5).chosen(max_tokens=10**6)
        is None
    )


def test_where_all_are_equal_the_smallest_is_chosen():
    model = ExpectedAccuracy(
        AgentCurve({1: ones(3, 7), 9: ones(3, 7)}), {k: ones(5, 7) for k in range(1, 10)}, 50
    )

    assert model.chosen().row.k == 1
    assert model.chosen().best.k == 1


def test_what_was_measured_with_the_tools_found_stands_beside_the_product():
    rows = ExpectedAccuracy(CURVE, RETRIEVAL, 4000).with_measured({10: ones(76), 40: ones(10)})
    by_k = {row.k: row for row in rows}

    assert by_k[10].measured.value == pytest.approx(0.76)
    assert by_k[10].gap.value == pytest.approx(0)
    assert by_k[10].gap.low <= 0 <= by_k[10].gap.high
    assert (by_k[40].measured.value, by_k[40].gap) == (pytest.approx(0.1), None)
    assert by_k[1].measured is None


def test_both_have_to_be_of_the_same_queries():
    with pytest.raises(ConfigurationError, match=r"the same queries; they are \[9, 10\] queries"):
        ExpectedAccuracy(AgentCurve({1: ones(9, 9)}), {1: ones(9, 10)}, 5)
