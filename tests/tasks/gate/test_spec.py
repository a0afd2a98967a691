"""The gate of a configuration: its queries and rules, and every problem in one message."""

import pytest

from pegboard.errors import ConfigurationError
from tasks.gate.spec import read_gate

GOLDEN = '[golden]\nqueries = "many.jsonl"\n'
QUERIES = 'queries = "golden.jsonl"\n'


@pytest.fixture
def many(shop, queries):
    """The shop with enough golden queries for `[golden]`, too."""
    shop.lines(
        "many.jsonl",
        [{**row, "query": f"{row['query']}, {n}"} for row in queries for n in ("now", "today")],
    )
    return shop


def test_queries_are_those_of_the_gate_or_else_the_configured_ones(many):
    many.configure(QUERIES, GOLDEN)
    gate_queries = read_gate(many.configuration)
    many.configure("canary_k = 3\n", GOLDEN)
    golden_queries = read_gate(many.configuration)

    assert (len(gate_queries.queries), len(golden_queries.queries)) == (20, 40)


def test_the_measure_of_the_first_rule_is_the_main_one_and_those_of_all_are_computed(shop):
    shop.configure(f'{QUERIES}rules = ["Hit@3 >= 0.5", "MRR >= 0.1"]\n')
    ruled = read_gate(shop.configuration)
    shop.configure(QUERIES)
    plain = read_gate(shop.configuration)

    assert (str(ruled.main), ruled.k) == ("Hit@3", 3)
    assert (str(plain.main), plain.k) == ("Recall@5", 5)
    assert {"Hit@3", "MRR", "Recall@5"} <= set(map(str, ruled.measures))


def test_all_problems_of_a_gate_are_in_one_message_with_examples_of_rules(shop):
    shop.lines("golden.jsonl", [{"query": "q", "tools": ["a"]}, {"query": "r"}])
    shop.configure(
        f'{QUERIES}canaries = "none.jsonl"\n'
        'rules = ["Recall@5 > 0.9", "Recall@5 of catalog kat >= 0.8", "Recall@5 of kind parallel '
        '>= 0.8"]\n'
    )

    with pytest.raises(ConfigurationError, match=r"\[gate\] of .* has 5 problems:") as error:
        read_gate(shop.configuration)

    for problem in (
        "golden.jsonl:2: tools: expected a list",
        "none.jsonl cannot be read",
        "rules: Invalid rule 'Recall@5 > 0.9'",
        "no catalog 'kat'; expected one of kit",
        "no kind 'parallel'; expected one of single",
        "Rules look like these:\n  Recall@5 >= 0.9\n",
    ):
        assert problem in str(error.value)


def test_a_gate_without_queries_is_refused(shop):
    shop.configure(gate="canary_k = 3\n")
    with pytest.raises(ConfigurationError, match="queries: missing; name a file"):
        read_gate(shop.configuration)

    shop.lines("golden.jsonl", [])
    shop.configure()
    with pytest.raises(ConfigurationError, match=r"golden\.jsonl has no query"):
        read_gate(shop.configuration)
