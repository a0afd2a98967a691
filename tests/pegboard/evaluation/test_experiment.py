"""The experiment: measures over whole and restricted releases, stored results, comparisons."""

import pytest

from pegboard.errors import BoardNotFound, ConfigurationError, QueryError
from pegboard.evaluation.comparison import comparison, differences, evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.search.restricted import RestrictedRelease

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
def searcher(board_uri, encoder):
    return Searcher.open(board_uri, encoder=encoder)


@pytest.fixture
def measure(searcher):
    """A function that evaluates a strategy."""

    def measure(strategy, queries=QUERIES, measures=("Recall@5",), searcher=searcher):
        return evaluate(ReleaseSystem.resolve(searcher, strategy), queries, measures)

    return measure


def test_an_evaluation_has_a_value_for_every_query_and_intervals_of_the_means(measure):
    evaluation = measure("search", measures=["Recall@5", "MRR"])

    row = evaluation.rows(task="all")[0]
    expected = {"task": "all", "strategy": "search", "index": "full", "measure": "Recall@5", "n": 3}
    assert row.items() >= expected.items()
    assert row["value"] == 1.0 == row["low"] == row["high"]
    assert [list(values.shape) for values in evaluation.values.values()] == [[3], [3]]
    assert evaluation.results[0].ranks() == {"create_issue": 1}


def test_a_query_without_results_and_a_removed_tool_count_as_zero(measure):
    queries = [
        GoldenQuery("zzzz qqqq", ("create_issue",)),
        GoldenQuery("open an issue", ("create_issue", "no_such_tool")),
    ]
    evaluation = measure(TEXT, queries, ["Recall@5", "Complete@5"])

    assert evaluation.results[0].retrieved == ()
    assert [list(values) for values in evaluation.values.values()] == [[0.0, 0.5], [0.0, 0.0]]
    assert evaluation.unknown == ("no_such_tool",)


def test_any_tool_of_a_shared_name_is_right_and_counts_once(workshop, hashing, measure):
    say = workshop.tool("say_hello", "Says hello to a person.")
    workshop.servers({"one": [say], "two": [say], "three": [workshop.tool("count_sheep")]})
    workshop.run(workshop.configure(), encoder=hashing(64))
    searcher = Searcher.open(workshop.uri, encoder=hashing(64))
    either = GoldenQuery("says hello to a person", ("say_hello",))
    second = GoldenQuery("says hello to a person", ("two/say_hello",))

    measures = ["Recall@1", "Precision@2", "Recall@2"]
    recall_1, precision_2, recall_2 = measure(
        VECTOR, [either, second], measures, searcher
    ).values.values()

    assert (recall_1[0], precision_2[0], recall_2[1]) == (1.0, 0.5, 1.0)


def test_groups_are_by_kind_and_by_the_catalogs_of_the_needed_tools(measure):
    evaluation = measure("search")
    gone = measure("search", [GoldenQuery(QUERIES[2].query, ("old/office/gone",))])

    assert evaluation.groups("kind") == {"parallel": [2], "single": [0, 1]}
    assert evaluation.groups("catalog") == {"finance": [2], "kit": [0, 1]}
    assert [row["n"] for row in evaluation.group_rows("kind")] == [1, 2]
    assert gone.groups("catalog", evaluation.subset([2])) == {"finance": [0], "old": [0]}


def test_a_restricted_release_has_only_its_tools_and_counts_words_among_them(searcher, measure):
    ids = [tool for tool in searcher.names.catalogs if tool.startswith("finance/")]
    few = Searcher(RestrictedRelease(searcher.loaded, ids), searcher.vectors)

    def scores(searcher):
        retrieved = measure(VECTOR, searcher=searcher, measures=["Recall@20"]).results[2].retrieved
        return {tool.id: tool.score for tool in retrieved}

    for strategy in (VECTOR, TEXT, "search", "clauses", "dependencies"):
        results = measure(strategy, searcher=few).results
        assert {tool.id for result in results for tool in result.retrieved} <= set(ids)
    whole = scores(searcher)
    assert scores(few) == {tool: whole[tool] for tool in ids}
    assert few.loaded.agents.keys() == {"finance/finance"}
    assert len(few.loaded.index("full").rows) == len(ids)


def test_systems_are_compared_query_by_query(searcher, measure):
    empty = Searcher(RestrictedRelease(searcher.loaded, []), searcher.vectors)
    best = measure("search")
    none = measure("search", searcher=empty)

    gap = differences([none, best])[0]
    values = comparison([none, best], by=["kind"], worst=1)

    assert (gap["value"], gap["measure"], gap["against"]) == (1.0, "Recall@5", "search in full")
    assert values["groups"]["kind"][0]["kind"] == "parallel"
    assert set(values["worst"][0]["queries"][0]["ranks"].values()) == {None}
    with pytest.raises(ConfigurationError, match="the same queries"):
        best.difference(measure("search", QUERIES[:2]), "Recall@5")


def test_invalid_queries_measures_strategies_and_channels_are_refused(measure, board_uri):
    with pytest.raises(ConfigurationError, match="no golden queries"):
        measure("search", [])
    with pytest.raises(ConfigurationError, match="no measure 'Recal@5'"):
        measure("search", measures=["Recal@5"])
    with pytest.raises(QueryError, match="Unknown strategy 'best'"):
        measure("best")
    with pytest.raises(BoardNotFound, match="no channel 'canary'"):
        Searcher.open(board_uri, "canary")
