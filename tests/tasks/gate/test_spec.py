"""The gate of a configuration: its queries and strategies, and every problem in one message."""

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


def test_queries_and_strategies_are_those_of_the_gate_or_else_the_configured_ones(many):
    many.configure(QUERIES + 'strategies = ["clauses", {name = "mine", depth = 20}]\n', GOLDEN)
    own = read_gate(many.configuration)
    many.configure("choose = false\n", GOLDEN + '[find]\nstrategy = "search"\n')
    configured = read_gate(many.configuration)

    assert (len(own.queries), str(own.choose)) == (20, "Recall@5")
    assert [(strategy.name, strategy.depth) for strategy in own.strategies] == [
        ("clauses", 50),
        ("mine", 20),
    ]
    assert (len(configured.queries), configured.choose) == (40, None)
    assert [strategy.name for strategy in configured.strategies] == ["search"]


def test_measures_of_rules_and_of_the_choice_are_computed_whatever_is_reported(shop):
    shop.configure(f'{QUERIES}measures = ["nDCG@5"]\nchoose = "MRR"\nrules = ["Hit@3 >= 0.5"]\n')

    measures = [str(measure) for measure in read_gate(shop.configuration).measures]

    assert measures == ["nDCG@5", "MRR", "Recall@5", "Hit@3"]


def test_all_problems_of_a_gate_are_in_one_message_with_examples_of_rules(shop):
    shop.lines("golden.jsonl", [{"query": "q", "tools": ["a"]}, {"query": "r"}])
    shop.configure(
        f'{QUERIES}canaries = "none.jsonl"\n'
        'strategies = ["search", "search", "nosuch", {name = "likely", modes = ["vector"], '
        'refine = [{part = "at-least", probability = 0.5}]}]\n'
        'choose = "Recal@5"\nmeasures = ["nDGC"]\n'
        'rules = ["Recall@5 > 0.9", "Recall@5 of catalog kat >= 0.8", "Recall@5 of kind parallel '
        '>= 0.8"]\n'
    )

    with pytest.raises(ConfigurationError, match=r"\[gate\] of .* has 10 problems:") as error:
        read_gate(shop.configuration)

    for problem in (
        "golden.jsonl:2: tools: expected a list",
        "none.jsonl cannot be read",
        "strategies: two are named 'search'; rename one",
        "strategies: Unknown strategy 'nosuch'",
        "strategies: 'likely' asks for a probability that no search gives it",
        "choose: There is no measure 'Recal@5'",
        "measures: There is no measure 'nDGC'",
        "rules: Invalid rule 'Recall@5 > 0.9'",
        "no catalog 'kat'; expected one of kit",
        "no kind 'parallel'; expected one of single",
        "Rules look like these:\n  Recall@5 >= 0.9\n",
    ):
        assert problem in str(error.value)


def test_a_gate_without_queries_is_refused(shop):
    shop.configure(gate="choose = false\n")
    with pytest.raises(ConfigurationError, match="queries: missing; name a file"):
        read_gate(shop.configuration)

    shop.lines("golden.jsonl", [])
    shop.configure()
    with pytest.raises(ConfigurationError, match=r"golden\.jsonl has no query"):
        read_gate(shop.configuration)


@pytest.mark.parametrize("wrong", ["choose = true", "canary_k = 0", 'rule = ["x"]', 'rules = "x"'])
def test_invalid_settings_of_a_gate_are_refused_with_the_configuration(shop, wrong):
    shop.configure(f"{wrong}\n")

    with pytest.raises(ConfigurationError, match="gate.*" + wrong.split()[0]):
        _ = shop.configuration
