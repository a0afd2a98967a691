"""What a gate asks: where its queries and strategies come from, and every problem of it in one
message.
"""

import pytest

from pegboard.errors import ConfigurationError
from tasks.gate.asked import gate_digest, has_gate, read_gate

GOLDEN = '[golden]\nqueries = "many.jsonl"\n'


@pytest.fixture
def many(shop, queries):
    """The shop with enough golden queries for `[golden]`, too."""
    shop.lines(
        "many.jsonl",
        [{**one, "query": f"{one['query']}, {n}"} for one in queries for n in ("now", "today")],
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


def test_a_gate_asks_its_own_queries_or_else_those_of_golden(many):
    many.configure(rest=GOLDEN)
    own = read_gate(many.configuration)
    many.configure(gate="choose = false\n", rest=GOLDEN)
    theirs = read_gate(many.configuration)

    assert (len(own.queries), str(own.choose), len(theirs.queries), theirs.choose) == (
        20,
        "Recall@5",
        40,
        None,
    )


def test_the_plans_of_a_gate_are_named_or_written_and_else_the_configured_one(shop):
    shop.configure(rest='[find]\nstrategy = "search"\n')
    configured = read_gate(shop.configuration)
    shop.configure(
        'queries = "golden.jsonl"\nstrategies = ["clauses", {name = "mine", depth = 20}]\n'
    )
    named = read_gate(shop.configuration)

    assert [strategy.name for strategy in configured.strategies] == ["search"]
    assert [(strategy.name, strategy.depth) for strategy in named.strategies] == [
        ("clauses", 50),
        ("mine", 20),
    ]


def test_what_rules_and_the_choice_need_is_measured_whatever_is_reported(shop):
    shop.configure(
        'queries = "golden.jsonl"\nmeasures = ["nDCG@5"]\nchoose = "MRR"\nrules = ["Hit@3 >= '
        '0.5"]\n'
    )

    assert [str(one) for one in read_gate(shop.configuration).measures] == [
        "nDCG@5",
        "MRR",
        "Recall@5",
        "Hit@3",
    ]


def test_all_problems_of_a_gate_are_told_at_once_with_the_forms_of_a_rule(shop):
    shop.lines("golden.jsonl", [{"query": "q", "tools": ["a"]}, {"query": "r"}])
    shop.configure(
        'queries = "golden.jsonl"\ncanaries = "none.jsonl"\nstrategies = ["search", "search", '
        '"nosuch", "confident"]\n'
        'choose = "Recal@5"\nmeasures = ["nDGC"]\n'
        'rules = ["Recall@5 > 0.9", "Recall@5 of catalog kat >= 0.8", "Recall@5 of kind parallel '
        '>= 0.8"]\n'
    )

    with pytest.raises(ConfigurationError) as caught:
        read_gate(shop.configuration)

    said = str(caught.value)
    assert "[gate] of" in said
    assert "has 10 problems:" in said
    for problem in (
        "queries: ",
        "golden.jsonl:2: tools: expected a list",
        "canaries: ",
        "none.jsonl cannot be read",
        "strategies: two are named 'search'; give each a name of its own",
        "strategies: There is no strategy 'nosuch'",
        "strategies: 'confident' asks for probabilities, which need [golden] queries",
        "choose: There is no measure 'Recal@5'",
        "measures: There is no measure 'nDGC'",
        "rules: 'Recall@5 > 0.9' is no rule",
        "there is no catalog 'kat'; expected one of kit",
        "there is no kind 'parallel'; expected one of single",
        "Rules look like these:\n  Recall@5 >= 0.9\n",
    ):
        assert problem in said


def test_a_gate_without_queries_and_one_with_an_empty_file_are_refused(shop):
    shop.configure(gate="choose = false\n")
    with pytest.raises(
        ConfigurationError,
        match=r"queries: there are none; name a file of golden queries here, or in \[golden\]",
    ):
        read_gate(shop.configuration)

    shop.lines("golden.jsonl", [])
    shop.configure()
    with pytest.raises(ConfigurationError, match=r"golden\.jsonl has no query"):
        read_gate(shop.configuration)


@pytest.mark.parametrize("wrong", ["choose = true", "canary_k = 0", 'rule = ["x"]', 'rules = "x"'])
def test_what_is_no_setting_of_a_gate_is_refused_with_the_configuration(shop, wrong):
    shop.configure(f"{wrong}\n")

    with pytest.raises(ConfigurationError, match="gate.*" + wrong.split()[0]):
        _ = shop.configuration


def test_queries_plans_and_the_choice_belong_to_a_release_and_rules_and_canaries_do_not(
    shop, queries
):
    def digest(gate, rest=""):
        shop.configure(gate, rest)
        return gate_digest(shop.configuration)

    base = 'queries = "golden.jsonl"\n'
    shop.lines("canaries.jsonl", queries[:2])
    same = [
        digest(base),
        digest(f'{base}rules = ["Recall@5 >= 0.9"]\n'),
        digest(f'{base}canaries = "canaries.jsonl"\n'),
    ]
    others = [
        digest(f"{base}choose = false\n"),
        digest(f'{base}choose = "MRR"\n'),
        digest(f'{base}strategies = ["search"]\n'),
    ]
    shop.lines("golden.jsonl", queries[:10])
    others.append(digest(base))

    assert len(set(same)) == 1
    assert len({*same, *others}) == 5
