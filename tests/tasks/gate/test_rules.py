"""The grammar of a gate's rules, and the errors of invalid ones."""

import re

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure
from tasks.gate.rules import FORMS, parse_rule

RECALL = Measure("Recall", 5)


@pytest.mark.parametrize(
    ("text", "measure", "floor"),
    [
        ("Recall@5 >= 0.9", RECALL, 0.9),
        ("  recall@5>=.9 ", RECALL, 0.9),
        ("nDCG@10 >= 1", Measure("nDCG", 10), 1.0),
        ("MRR >= 0.5", Measure("MRR"), 0.5),
        ("F1>=0.5 >= 0.8", Measure("F1", least=0.5), 0.8),
        ("Complete@3 >= 0", Measure("Complete", 3), 0.0),
    ],
)
def test_a_floor_names_a_measure_and_its_least_value(text, measure, floor):
    rule = parse_rule(text)

    assert (rule.measure, rule.floor, rule.by) == (measure, floor, None)


@pytest.mark.parametrize(
    ("text", "margin", "confidence"),
    [
        ("Recall@5 no worse than live", 0.0, None),
        ("Recall@5 no worse than live by more than 0.01", 0.01, None),
        ("Recall@5 NO WORSE THAN live by more than .01 with 95 % confidence", 0.01, 0.95),
        ("Recall@5 no worse than live with 90% confidence", 0.0, 0.9),
        ("Recall@5  no   worse than live by more than 0.02 with 97.5 % confidence", 0.02, 0.975),
    ],
)
def test_a_comparison_with_live_may_have_a_margin_and_a_confidence(text, margin, confidence):
    rule = parse_rule(text)

    assert (rule.measure, rule.floor, rule.margin, rule.confidence) == (
        RECALL,
        None,
        margin,
        confidence,
    )


@pytest.mark.parametrize(
    ("text", "by", "name"),
    [
        ("Recall@5 of catalog github >= 0.8", "catalog", "github"),
        ("Recall@5 of catalog a-b.c_d>=0.8", "catalog", "a-b.c_d"),
        ("Recall@5 of kind parallel no worse than live", "kind", "parallel"),
        ('Recall@5 of kind "two tools" >= 0.7', "kind", "two tools"),
        ("Recall@5 OF Kind 'two tools' >= 0.7", "kind", "two tools"),
    ],
)
def test_a_rule_may_be_about_one_catalog_or_kind(text, by, name):
    rule = parse_rule(text)

    assert (rule.by, rule.name) == (by, name)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_errors_show_is_a_rule_and_keeps_its_text(form):
    assert parse_rule(f"  {form} ").text == form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid rule ''"),
        ("Recall@5", "Invalid rule 'Recall@5'"),
        ("Recall@5 > 0.9", "Invalid rule 'Recall@5 > 0.9'"),
        ("Recall@5 >= high", "Invalid rule"),
        ("Recall@5 of agent x >= 0.9", "Invalid rule"),
        ("Recall@5 no worse than canary", "Invalid rule"),
        ("Recall@5 >= 0.9 with 95 % confidence", "Invalid rule"),
        ("Recal@5 >= 0.9", "There is no measure 'Recal@5'"),
        ("Recall@0 >= 0.9", "There is no measure 'Recall@0'"),
        ("Recall@5 >= 90", "expected a floor of at most 1 (got 90)"),
        ("Recall@5 no worse than live by more than 1", "expected a margin below 1 (got 1)"),
        ("Recall@5 no worse than live with 50 % confidence", "between 50 and 100 % (got 50 %)"),
        ("Recall@5 no worse than live with 100 % confidence", "(got 100 %)"),
    ],
)
def test_an_invalid_rule_is_refused_with_the_reason(text, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_rule(text)
