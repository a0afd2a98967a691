"""Which cells a sweep has, and the problems that prevent measuring them."""

import json

import pytest

from pegboard.errors import ConfigurationError


def test_there_is_a_cell_for_every_index_strategy_and_sample_and_the_whole_once(bench):
    design = bench.design(tools="10,all", samples=2, seed=4)

    assert design.catalog == 40
    assert [(one.size, one.seed) for one in design.samples] == [(10, 4), (40, 4), (10, 5)]
    assert len(design.cells) == len({cell.key for cell in design.cells}) == 3 * 2 * 2
    assert {(cell.index, cell.strategy["name"]) for cell in design.cells} == {
        (index, strategy) for index in ("whole", "names") for strategy in ("search", "clauses")
    }
    parts = [shape.parts for shape in design.indexes]
    assert parts == [("name", "description", "arguments"), ("name",)]


def test_all_problems_with_the_release_are_in_one_message(bench):
    unknown = json.dumps({"query": "fly", "tools": ["fly_kite"]})
    bench.golden.write_text(bench.golden.read_text("utf-8") + unknown, "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        bench.design(tools="2,50", indexes=["whole", "other"], k="5")

    message = str(caught.value)
    for part in (
        f"The sweep of release {bench.release} has 4 problems:",
        "tools: expected at most the 40 tools of the catalog (got 50)",
        "k: expected at most the 2 tools of the smallest sample (got 5)",
        "the release has no index 'other'; expected one of names, whole",
        "1 queries need tools that the release does not have: fly_kite",
    ):
        assert part in message


def test_k_is_no_more_than_the_catalog(bench):
    with pytest.raises(ConfigurationError, match=r"the 40 tools of the catalog \(got 41\)"):
        bench.design(k="41")


def test_a_sample_without_a_query_is_refused_and_one_with_few_has_a_warning(bench):
    lines = bench.golden.read_text("utf-8").splitlines()
    bench.golden.write_text("\n".join(line for line in lines if "then send" in line), "utf-8")

    with pytest.raises(
        ConfigurationError, match="No golden query has all its tools in a sample of 1 tools"
    ):
        bench.design(tools="1,all", k="1")

    warnings = bench.design(tools="8,all").warnings
    assert len(warnings) == 2
    assert warnings[0].startswith("3 golden queries have all their tools in the sample of 8 tools")
