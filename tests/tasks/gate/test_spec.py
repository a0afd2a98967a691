"""The gate of a configuration: its queries and strategies, and every problem in one message."""

import pytest

from pegboard.errors import ConfigurationError
from tasks.gate.spec import gate_digest, has_gate, read_gate

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


def test_without_golden_queries_there_is_no_gate(shop):
    shop.configure(gate="")

    assert not has_gate(shop.configuration)
    assert (read_gate(shop.configuration), gate_digest(shop.configuration)) == (None, None)


def test_golden_queries_alone_are_measured_and_decide_nothing(many):
    many.configure(gate="", rest=GOLDEN)
    gate = read_gate(many.configuration)

    assert has_gate(many.configuration)
    assert (len(gate.queries), gate.rules, gate.canaries, gate.choose) == (40, (), (), None)
    assert [strategy.name for strategy in gate.strategies] == ["clauses"]
    assert gate_digest(many.configuration) is None


def test_a_gate_uses_its_own_queries_or_else_those_of_golden(many):
    many.configure(rest=GOLDEN)
    own = read_gate(many.configuration)
    many.configure(gate="choose = false\n", rest=GOLDEN)
    golden = read_gate(many.configuration)

    assert (len(own.queries), str(own.choose)) == (20, "Recall@5")
    assert (len(golden.queries), golden.choose) == (40, None)


def test_the_strategies_of_a_gate_are_given_or_else_the_configured_one(shop):
    shop.configure(rest='[find]\nstrategy = "search"\n')
    configured = read_gate(shop.configuration)
    shop.configure(QUERIES + 'strategies = ["clauses", {name = "mine", depth = 20}]\n')
    given = read_gate(shop.configuration)

    assert [strategy.name for strategy in configured.strategies] == ["search"]
    assert [(one.name, one.depth) for one in given.strategies] == [("clauses", 50), ("mine", 20)]


def test_measures_of_rules_and_of_the_choice_are_computed_whatever_is_reported(shop):
    shop.configure(f'{QUERIES}measures = ["nDCG@5"]\nchoose = "MRR"\nrules = ["Hit@3 >= 0.5"]\n')

    measures = [str(measure) for measure in read_gate(shop.configuration).measures]

    assert measures == ["nDCG@5", "MRR", "Recall@5", "Hit@3"]


def test_all_problems_of_a_gate_are_in_one_message_with_examples_of_rules(shop):
    shop.lines("golden.jsonl", [{"query": "q", "tools": ["a"]}, {"query": "r"}])
    shop.configure(
        f'{QUERIES}canaries = "none.jsonl"\n'
        'strategies = ["search", "search", "nosuch", "confident"]\n'
        'choose = "Recal@5"\nmeasures = ["nDGC"]\n'
        'rules = ["Recall@5 > 0.9", "Recall@5 of catalog kat >= 0.8", "Recall@5 of kind parallel '
        '>= 0.8"]\n'
    )

    with pytest.raises(ConfigurationError) as caught:
        read_gate(shop.configuration)

    message = str(caught.value)
    assert "[gate] of" in message
    assert "has 10 problems:" in message
    for problem in (
        "queries: ",
        "golden.jsonl:2: tools: expected a list",
        "canaries: ",
        "none.jsonl cannot be read",
        "strategies: two are named 'search'; rename one",
        "strategies: Unknown strategy 'nosuch'",
        "strategies: 'confident' returns probabilities, which need [golden] queries",
        "choose: There is no measure 'Recal@5'",
        "measures: There is no measure 'nDGC'",
        "rules: Invalid rule 'Recall@5 > 0.9'",
        "no catalog 'kat'; expected one of kit",
        "no kind 'parallel'; expected one of single",
        "Rules look like these:\n  Recall@5 >= 0.9\n",
    ):
        assert problem in message


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


def test_queries_strategies_and_the_choice_belong_to_a_release_rules_and_canaries_do_not(
    shop, queries
):
    def digest(gate):
        shop.configure(gate)
        return gate_digest(shop.configuration)

    shop.lines("canaries.jsonl", queries[:2])
    same = [
        digest(QUERIES),
        digest(f'{QUERIES}rules = ["Recall@5 >= 0.9"]\n'),
        digest(f'{QUERIES}canaries = "canaries.jsonl"\n'),
    ]
    others = [
        digest(f"{QUERIES}choose = false\n"),
        digest(f'{QUERIES}choose = "MRR"\n'),
        digest(f'{QUERIES}strategies = ["search"]\n'),
    ]
    shop.lines("golden.jsonl", queries[:10])
    others.append(digest(QUERIES))

    assert len(set(same)) == 1
    assert len({*same, *others}) == 5
