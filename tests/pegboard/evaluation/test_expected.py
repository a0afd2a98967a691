"""What an agent is expected to reach with k tools found, and which k is chosen."""

import json
import math

import numpy as np
import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.expected import AgentCurve, ExpectedAccuracy


def hits(count, queries=100):
    """1 for the first queries, 0 for the others."""
    return np.array([1.0] * count + [0.0] * (queries - count))


CURVE = AgentCurve({1: hits(100), 10: hits(80), 20: hits(40)}, {1: 100.0, 10: 1000.0, 20: 2000.0})
RETRIEVAL = {1: hits(50), 5: hits(90), 10: hits(95), 20: hits(100), 40: hits(100)}


@pytest.fixture
def model():
    return ExpectedAccuracy(CURVE, RETRIEVAL, 4000)


def test_the_expectation_is_the_product_within_the_measured_sizes_and_none_beyond(model):
    rows = {row.k: row for row in model.rows}
    between, beyond = rows[5], rows[40]

    assert [rows[k].expected for k in (1, 10, 20)] == pytest.approx([0.5, 0.8 * 0.95, 0.4])
    assert all(row.tools == 4000 for row in model.rows)
    assert all(row.low <= row.expected <= row.high for row in model.rows[:-1])
    width = 2 * 1.96 * math.sqrt(0.4 * 0.6 / 100)
    assert rows[20].high - rows[20].low == pytest.approx(width, rel=0.1)
    # Between two sizes: the agent on the logarithm of the number, tokens on the number.
    assert between.interpolated
    assert between.agent == pytest.approx(1 - 0.2 * math.log(5) / math.log(10))
    assert between.expected == pytest.approx(between.agent * 0.9)
    assert between.tokens == pytest.approx(100 + 900 * 4 / 9)
    assert (beyond.agent, beyond.expected, beyond.low, beyond.tokens) == (None, None, None, None)
    assert beyond.retrieval == 1
    assert AgentCurve({5: hits(9)}).at(4) is None


def test_the_smallest_k_that_is_not_significantly_below_the_best_is_chosen(model):
    # Of 100 queries, k = 4 misses one that k = 8 finds: chance. k = 2 misses fifteen.
    flat = AgentCurve({1: hits(100), 8: hits(100)})
    chosen = ExpectedAccuracy(flat, {2: hits(80), 4: hits(94), 8: hits(95)}, 500).chosen()
    equal = ExpectedAccuracy(flat, {k: hits(70) for k in range(1, 9)}, 50).chosen()

    assert (chosen.row.k, chosen.best.k) == (4, 8)
    assert chosen.below.value == pytest.approx(0.01)
    assert chosen.below.low <= 0 < chosen.below.high
    assert json.loads(json.dumps(chosen.to_dict()))["best"]["k"] == 8
    assert (equal.row.k, equal.best.k) == (1, 1)
    assert model.chosen().row.k == 5  # the agent is worse with more tools


def test_a_bound_on_tokens_rules_out_higher_and_unknown_costs(model):
    unknown = ExpectedAccuracy(AgentCurve({1: hits(9, 9)}), {1: hits(9, 9)}, 5)

    assert model.chosen(max_tokens=300).row.k == 1
    assert model.chosen(max_tokens=99) is None
    assert unknown.chosen(max_tokens=10**6) is None


def test_measured_accuracy_with_retrieved_tools_stands_beside_the_product(model):
    rows = {row.k: row for row in model.with_measured({10: hits(76), 40: hits(10)})}

    assert rows[10].measured.value == pytest.approx(0.76)
    assert rows[10].gap.value == pytest.approx(0)
    assert rows[10].gap.low <= 0 <= rows[10].gap.high
    assert (rows[40].measured.value, rows[40].gap) == (pytest.approx(0.1), None)
    assert rows[1].measured is None


def test_agent_and_retrieval_have_to_be_of_the_same_queries():
    with pytest.raises(ConfigurationError, match=r"the same queries; they are \[9, 10\] queries"):
        ExpectedAccuracy(AgentCurve({1: hits(9, 9)}), {1: hits(9, 10)}, 5)
