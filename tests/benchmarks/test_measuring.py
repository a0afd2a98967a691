"""Evaluating the boards of benchmarks: strategies, tasks, agents, and results as JSON, tables and
documents. Boards are built without Prefect, on the hashing encoder.
"""

import asyncio
import json
from types import SimpleNamespace

import pytest

from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.measuring import default_measures, measure_runs, result_of, runs_of
from benchmarks.papers.strategies import DESCRIPTIONS, GivenSteps
from benchmarks.papers.tables import printed
from pegboard.evaluation.agent_search import AGENT_STRATEGIES
from pegboard.retrieval.parts import Query

ROW = ("task", "strategy", "index", "encoder", "measure", "value", "low", "high", "n")


@pytest.fixture
def opened(specimen, boards_of):
    """A benchmark, and its boards as they are asked."""

    def build(name):
        benchmark = load_benchmark(name, specimen(name))
        return benchmark, boards_of(benchmark)

    return build


def measured(benchmark, boards):
    """The result as JSON values, from JSON."""
    measures = default_measures(benchmark.name)
    measured = measure_runs(runs_of(benchmark, boards, None), measures)
    counts = {name: {"tools": 2, "agents": 2} for name in boards}
    seconds = {"build": 1.0, "strategies": {}}
    result = result_of(benchmark, measured, measures, boards=counts, seconds=seconds)
    return json.loads(json.dumps(result))


def strategies(result, task):
    rows = [row for row in result["rows"] if row["task"] == task]
    return list(dict.fromkeys((row["strategy"], row["index"]) for row in rows))


def values(result, task, measure):
    """The value of each strategy, by its name and index."""
    return {
        (row["strategy"], row["index"]): row["value"]
        for row in result["rows"]
        if (row["task"], row["measure"]) == (task, measure)
    }


def test_seal_tools_is_searched_by_the_baselines_and_every_strategy_that_needs_no_llm(opened):
    result = measured(*opened("seal-tools"))

    names = [strategy for strategy, _ in strategies(result, "all")]
    assert names[:3] == ["BM25", "vector", "hybrid"]
    assert {"clauses", "clauses-vector", "dummy-steps", "tool-rag"} < set(names)
    assert not {"rag-tool-fusion", "plan-select", "step-back", "confident"} & set(names)
    assert set(names) < set(DESCRIPTIONS)
    assert list(result["rows"][0]) == list(ROW)
    assert {
        row["task"]: (row["n"], row["value"])
        for row in result["rows"]
        if (row["strategy"], row["measure"]) == ("BM25", "Recall@10")
    } == {
        "all": (3, 2 / 3),
        "single": (2, 0.5),
        "multi": (1, 1.0),
        "test_in_domain": (2, 1.0),
        "test_out_domain": (1, 0.0),
    }
    assert (
        "counted as not found: 1 tool that queries need and no catalog has: milkGoat"
        in result["problems"]
    )
    against = {(row["task"], row["strategy"]): row for row in result["differences"]}
    assert against["all", "BM25"]["against"] == "hybrid"
    assert against["all", "BM25"]["measure"] == "Recall@5"
    assert against["all", "BM25"]["p"] <= against["all", "BM25"]["p_holm"] <= 1
    assert ("all", "hybrid") not in against


def test_livemcpbench_measures_tools_and_agents_by_the_same_measures(opened):
    result = measured(*opened("livemcpbench"))

    assert {row["task"]: row["n"] for row in result["rows"]} == {
        "direct-tool": 2,
        "step-tool": 2,
        "direct-agent": 2,
        "step-agent": 2,
        "step-agent-all": 4,
    }
    whole = [strategy.name for strategy in AGENT_STRATEGIES if not strategy.texts]
    assert [strategy for strategy, _ in strategies(result, "step-agent")] == whole
    assert [strategy for strategy, _ in strategies(result, "direct-agent")] == [
        strategy.name for strategy in AGENT_STRATEGIES
    ]
    hits = values(result, "step-agent", "Recall@1")
    assert hits["tools-BM25", "full"] == hits["both-BM25", "full"] == 1.0
    assert {row["against"] for row in result["differences"]} == {"hybrid", "agents-hybrid"}


def test_linked_tools_have_an_account_of_what_their_dependencies_gained(opened):
    result = measured(*opened("toollinkos"))

    accounts = {(row["strategy"], row["index"]): row for row in result["dependencies"]}
    account = accounts["dependencies-declared", "brief"]
    assert {name for name, _ in accounts} >= {"dependencies", "dependencies-declared"}
    assert (account["queries"], account["final"]) == (3, 10)
    assert sum(account["errors"].values()) == 0
    assert account["measured"] == 1.0
    assert "by search (k = 3) + " in printed(result)


def test_the_steps_of_the_reference_plan_are_searched_in_place_of_the_request():
    plan = {"milk the goat": ["find the goat", "milk it"]}
    asked = SimpleNamespace(request=SimpleNamespace(text="milk the goat"))
    other = SimpleNamespace(request=SimpleNamespace(text="fly a kite"))

    queries = asyncio.run(GivenSteps(plan).transform([], asked))
    beside = asyncio.run(GivenSteps(plan, whole=True).transform([], asked))

    assert queries == [Query("find the goat", 1, "step"), Query("milk it", 2, "step")]
    assert [(query.text, query.step) for query in beside[2:]] == [
        ("milk the goat", 0),
        ("milk the goat", 1),
        ("milk the goat", 2),
    ]
    assert [query.text for query in asyncio.run(GivenSteps(plan).transform([], other))] == [
        "fly a kite"
    ]
