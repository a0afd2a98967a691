"""Asking a release golden queries: what counts, for whole releases and for some of their tools, and
how systems are compared.
"""

import pytest

from pegboard.errors import BoardNotFound, ConfigurationError, QueryError
from pegboard.evaluation.evaluate import evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.judged import JudgedRelease
from pegboard.evaluation.results import differences, results, worst_of

VECTOR = {"name": "vector", "modes": ["vector"]}
TEXT = {"name": "BM25", "modes": ["text"]}
QUERIES = [
    GoldenQuery("open an issue in a repository", ("create_issue",)),
    GoldenQuery("the weather forecast of a city", ("weather/get_forecast",)),
    GoldenQuery(
        "convert money to another currency and list the rates",
        ("convert_currency", "list_rates"),
        kind="parallel",
    ),
]


@pytest.fixture(scope="module")
def judged(board_uri, encoder):
    return JudgedRelease.open(board_uri, encoder=encoder)


def test_an_evaluation_has_a_value_for_every_query_and_the_means_have_intervals(judged):
    found = evaluate(judged, QUERIES, strategy="search", measures=["Recall@5", "MRR"])

    row = found.rows(task="all")[0]
    assert (row["task"], row["strategy"], row["index"], row["measure"], row["n"]) == (
        "all",
        "search",
        "full",
        "Recall@5",
        3,
    )
    assert row["value"] == 1.0 == row["low"] == row["high"]
    assert [list(values.shape) for values in found.values.values()] == [[3], [3]]
    assert found.answers[0].ranks() == {"create_issue": 1}


def test_a_query_for_which_nothing_is_found_and_a_tool_that_is_gone_count_as_zero(judged):
    queries = [
        GoldenQuery("zzzz qqqq", ("create_issue",)),
        GoldenQuery("open an issue", ("create_issue", "no_such_tool")),
    ]
    found = evaluate(judged, queries, strategy=TEXT, measures=["Recall@5", "Complete@5"])

    assert found.answers[0].found == ()
    assert [list(values) for values in found.values.values()] == [[0.0, 0.5], [0.0, 0.0]]
    assert found.unknown == ("no_such_tool",)


def test_any_tool_of_a_shared_name_will_do_and_only_once(workshop, hashing):
    say = workshop.tool("say_hello", "Says hello to a person.")
    workshop.servers(
        {"one": [say], "two": [say], "three": [workshop.tool("count_sheep", "Counts sheep.")]}
    )
    workshop.run(workshop.configure(), encoder=hashing(64))
    judged = JudgedRelease.open(str(workshop.folder / "board"), encoder=hashing(64))

    either = evaluate(
        judged,
        [GoldenQuery("says hello to a person", ("say_hello",))],
        strategy=VECTOR,
        measures=["Recall@1", "Precision@2"],
    )
    second = evaluate(
        judged,
        [GoldenQuery("says hello to a person", ("two/say_hello",))],
        strategy=VECTOR,
        measures=["Recall@2"],
    )

    assert [float(values[0]) for values in either.values.values()] == [1.0, 0.5]
    assert float(next(iter(second.values.values()))[0]) == 1.0


def test_groups_are_by_kind_and_by_the_catalogs_of_the_needed_tools(judged):
    found = evaluate(judged, QUERIES, strategy="search", measures=["Recall@5"])

    assert found.groups("kind") == {"parallel": [2], "single": [0, 1]}
    assert found.groups("catalog") == {"finance": [2], "kit": [0, 1]}
    assert [row["n"] for row in found.group_rows("kind")] == [1, 2]


def test_a_history_is_asked_with_its_own_queries(judged):
    before = ({"role": "user", "content": "hello"},)
    mixed = [
        GoldenQuery(one.query, one.tools, history=before if at == 1 else ())
        for at, one in enumerate(QUERIES)
    ]

    asked, plain = (
        evaluate(judged, queries, strategy="search", measures=["Recall@5"])
        for queries in (mixed, QUERIES)
    )
    assert [one.found for one in asked.answers] == [one.found for one in plain.answers]


def test_a_restricted_release_finds_only_the_tools_that_it_has_and_counts_words_among_them(judged):
    kept = [one for one in judged.names.catalogs if one.startswith("finance/")]
    few = judged.restricted(kept)

    for strategy in (VECTOR, TEXT, "search", "clauses", "dependencies"):
        found = evaluate(few, QUERIES, strategy=strategy, measures=["Recall@5"])
        assert {tool.id for one in found.answers for tool in one.found} <= set(kept)
    whole = {
        tool.id: tool.score
        for tool in evaluate(judged, QUERIES, strategy=VECTOR, measures=["Recall@20"])
        .answers[2]
        .found
    }
    part = {
        tool.id: tool.score
        for tool in evaluate(few, QUERIES, strategy=VECTOR, measures=["Recall@20"]).answers[2].found
    }
    assert part == {one: whole[one] for one in kept}
    assert few.loaded.agents.keys() == {"finance/finance"}
    assert len(few.loaded.index("full").rows) == len(kept)


def test_systems_are_compared_query_by_query(judged):
    best = evaluate(judged, QUERIES, strategy="search", measures=["Recall@5"])
    none = evaluate(judged.restricted([]), QUERIES, strategy="search", measures=["Recall@5"])

    gap = differences([none, best])[0]
    assert (gap["value"], gap["measure"], gap["against"]) == (1.0, "Recall@5", "search in full")
    assert worst_of(none, 1)["queries"][0]["ranks"] == {"create_issue": None}
    assert results([none, best], by=["kind"])["groups"]["kind"][0]["kind"] == "parallel"
    with pytest.raises(ConfigurationError, match="the same queries"):
        best.against(evaluate(judged, QUERIES[:2], measures=["Recall@5"]), "Recall@5")


def test_what_cannot_be_asked_is_said(judged, board_uri):
    with pytest.raises(ConfigurationError, match="no golden queries"):
        evaluate(judged, [])
    with pytest.raises(ConfigurationError, match="no measure 'Recal@5'"):
        evaluate(judged, QUERIES, measures=["Recal@5"])
    with pytest.raises(QueryError, match="no strategy 'best'"):
        evaluate(judged, QUERIES, strategy="best")
    with pytest.raises(BoardNotFound, match="no channel 'canary'"):
        JudgedRelease.open(board_uri, "canary")
