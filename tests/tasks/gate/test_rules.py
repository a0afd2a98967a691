"""The grammar of a gate's rules, and the errors of invalid ones."""

import re

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure
from tasks.gate.rules import FORMS, Rule, parse_rule

RECALL = Measure("Recall", 5)


@pytest.mark.parametrize(
    ("text", "measure", "values"),
    [
        ("Recall@5 >= 0.9", RECALL, {"floor": 0.9}),
        ("MRR >= 0.5", Measure("MRR"), {"floor": 0.5}),
        ("Recall@5 no worse than live", RECALL, {}),
        ("Recall@5 no worse than live by more than 0.01", RECALL, {"margin": 0.01}),
        (
            "Recall@5  NO WORSE   than live by more than .01 with 97.5 % confidence",
            RECALL,
            {"margin": 0.01, "confidence": 0.975},
        ),
        (
            "Recall@5 of catalog a-b.c_d>=0.8",
            RECALL,
            {"by": "catalog", "name": "a-b.c_d", "floor": 0.8},
        ),
        (
            'Recall@5 OF Kind "two tools" >= 0.7',
            RECALL,
            {"by": "kind", "name": "two tools", "floor": 0.7},
        ),
    ],
)
def test_a_rule_is_a_floor_or_a_comparison_with_live(text, measure, values):
    assert parse_rule(text) == Rule(" ".join(text.split()), measure, **values)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_in_error_messages_is_a_rule(form):
    assert parse_rule(f"  {form} ").text == form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid rule ''"),
        ("Recall@5 of agent x >= 0.9", "Invalid rule"),
        ("Recall@5 >= 0.9 with 95 % confidence", "Invalid rule"),
        ("Recal@5 >= 0.9", "There is no measure 'Recal@5'"),
        ("Recall@5 >= 90", "expected a floor of at most 1 (got 90)"),
        ("Recall@5 no worse than live by more than 1", "expected a margin below 1 (got 1)"),
        ("Recall@5 no worse than live with 50 % confidence", "between 50 and 100 % (got 50 %)"),
    ],
)
def test_an_invalid_rule_is_refused_with_the_reason(text, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_rule(text)
