"""Which cells a sweep has, and the problems that prevent measuring them. Samples of a catalog are
nested, seeded, and hold whole queries.
"""

import json
from itertools import pairwise

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import Needed
from tasks.sweep.design import catalog_order, default_sizes, nested_samples

CATALOG = [f"tool{number:03}" for number in range(200)]


def needs(*tools):
    """What a golden query of tools needs, whose names are their ids."""
    return Needed({tool: frozenset((tool,)) for tool in tools})


NEEDED = [needs(*CATALOG[start : start + 1 + start % 3]) for start in range(0, 90, 3)]


def test_there_is_a_cell_for_every_index_strategy_and_sample(bench):
    design = bench.design(tools="10,all", seed=4)

    assert design.catalog == 40
    assert [sample.size for sample in design.samples] == [10, 40]
    assert len(design.cells) == len({cell.key for cell in design.cells}) == 2 * 2 * 2
    assert {(cell.index, cell.strategy["name"]) for cell in design.cells} == {
        (index, strategy) for index in ("whole", "names") for strategy in ("search", "clauses")
    }
    parts = {name: recipe["parts"] for name, recipe in design.indexes.items()}
    assert parts == {"whole": ["name", "description", "arguments"], "names": ["name"]}


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


@pytest.mark.parametrize(("seed", "share"), [(0, 0.5), (3, 0.6)])
def test_every_sample_is_within_the_next_and_has_the_queries_whose_tools_it_has(seed, share):
    samples = nested_samples(CATALOG, NEEDED, [80, 20, 200, 40], seed, share)

    assert [sample.size for sample in samples] == [20, 40, 80, 200]
    assert [len(sample.tools) for sample in samples] == [20, 40, 80, 200]
    for smaller, larger in pairwise(samples):
        assert set(smaller.tools) < set(larger.tools)
        assert set(smaller.queries) <= set(larger.queries)
    for sample in samples:
        inside = [at for at, query in enumerate(NEEDED) if set(query.tools) <= set(sample.tools)]
        assert list(sample.queries) == inside
    assert 0 < len(samples[0].queries) < len(samples[1].queries)
    assert samples[-1].queries == tuple(range(len(NEEDED)))


def test_a_small_sample_holds_whole_queries_and_other_tools_at_the_given_share():
    small = nested_samples(CATALOG, NEEDED, [20], 0, 0.75)[0]

    assert small.share == pytest.approx(0.75, abs=0.05)
    assert len(small.queries) >= 5
    by_chance = nested_samples(CATALOG, [], [20], 0, 0.75)[0].tools
    assert sum(set(query.tools) <= set(by_chance) for query in NEEDED) < len(small.queries)


def test_the_seed_decides_the_order_and_a_new_tool_leaves_the_others_in_place():
    order = catalog_order(CATALOG, NEEDED, 1, 0.5)

    assert order == catalog_order(CATALOG[::-1], NEEDED[::-1], 1, 0.5)
    assert order != catalog_order(CATALOG, NEEDED, 2, 0.5)
    with_new = catalog_order([*CATALOG, "new"], NEEDED, 1, 0.5)
    assert [tool for tool in with_new if tool != "new"] == order


@pytest.mark.parametrize(
    ("tools", "sizes"),
    [(60, [60]), (130, [100, 130]), (120, [120]), (4076, [100, 500, 1000, 4076])],
)
def test_the_usual_sizes_are_plainly_smaller_than_the_catalog(tools, sizes):
    assert default_sizes(tools) == sizes
