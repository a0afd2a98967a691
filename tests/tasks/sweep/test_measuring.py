"""What a sweep measures, and the problems that prevent it."""

import json

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem


def test_every_strategy_is_measured_in_every_index(bench):
    design = bench.design()

    assert (design.tools, design.warnings) == (40, ())
    assert [(index, strategy.name, tools) for index, strategy, tools in design.systems] == [
        (index, strategy, 40) for index in ("whole", "names") for strategy in ("search", "clauses")
    ]
    parts = {name: recipe["parts"] for name, recipe in design.indexes.items()}
    assert parts == {"whole": ["name", "description", "arguments"], "names": ["name"]}


def test_what_is_measured_is_what_evaluate_returns_with_its_cost(bench):
    design, results = bench.measure(
        strategies=["clauses"], indexes=["names"], measures=["nDCG", "Recall"]
    )
    searcher = Searcher.open(str(bench.folder / "board"))
    system = ReleaseSystem.resolve(searcher, "clauses", "names")
    direct = evaluate(system, design.sweep.queries, ["nDCG@2", "Recall@2"])

    rows = [result for result in results if result.k == 2]
    intervals = [direct.interval(measure).to_dict() for measure in direct.values]
    assert [{name: row.to_dict()[name] for name in intervals[0]} for row in rows] == intervals
    assert [row.measure for row in rows] == ["nDCG", "Recall"]
    assert [row.values.tolist() for row in rows] == [row.tolist() for row in direct.values.values()]
    # More tools take more tokens, and requests take time.
    tokens = [result.tokens for result in results if result.measure == "Recall"]
    assert tokens[0] > 5
    assert tokens[2] == pytest.approx(3 * tokens[0], rel=0.2)
    assert 0 < rows[0].ms_p50 <= rows[0].ms_p95


def test_every_sample_is_within_the_next_and_has_what_all_queries_need(bench):
    lines = bench.golden.read_text("utf-8").splitlines()
    bench.golden.write_text("\n".join(lines[:10]), "utf-8")

    design, results = bench.measure(
        tools="10,20,all", strategies=["search"], indexes=["whole"], k="1"
    )

    assert [len(tools) for tools in design.samples.values()] == [10, 20, 40]
    small, middle, whole = design.samples.values()
    assert small < middle < whole
    assert {tool.rpartition("/")[2] for tool in small} == {
        tool for line in lines[:10] for tool in json.loads(line)["tools"]
    }
    assert [(row.tools, row.n) for row in results] == [(10, 10), (20, 10), (40, 10)]


def test_all_problems_with_the_release_are_in_one_message(bench):
    unknown = json.dumps({"query": "fly", "tools": ["fly_kite"]})
    bench.golden.write_text(bench.golden.read_text("utf-8") + unknown, "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        bench.design(indexes=["whole", "other"], k="50", tools="9")

    message = str(caught.value)
    for part in (
        f"The sweep of release {bench.release} has 4 problems:",
        "tools: expected sizes from 40, the tools that the golden queries need, to 40 (got 9)",
        "k: expected at most the 40 tools of the release, got 50",
        "the release has no index 'other'; expected one of names, whole",
        "1 queries need tools that the release does not have: fly_kite",
    ):
        assert part in message


def test_few_queries_have_a_warning(bench):
    lines = bench.golden.read_text("utf-8").splitlines()
    bench.golden.write_text("\n".join(lines[:29]), "utf-8")

    (warning,) = bench.design().warnings

    assert warning.startswith("29 golden queries say little")
