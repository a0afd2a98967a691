"""Samples of a catalog are nested, seeded, and hold whole queries."""

from itertools import pairwise

import pytest

from pegboard.evaluation.golden import Needed
from tasks.sweep.samples import catalog_order, default_sizes, nested_samples

CATALOG = [f"tool{number:03}" for number in range(200)]


def needs(*tools):
    """What a golden query of tools needs, whose names are their ids."""
    return Needed({tool: frozenset((tool,)) for tool in tools})


NEEDED = [needs(*CATALOG[start : start + 1 + start % 3]) for start in range(0, 90, 3)]


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


def test_one_of_several_tools_of_a_name_is_enough_and_an_unknown_tool_excludes_a_query():
    either = Needed({"send": frozenset(("tool001", "tool002"))})
    unknown = Needed({}, ("gone",))

    small = nested_samples(CATALOG, [either], [1], 0, 1.0)[0]

    assert small.queries == (0,)
    assert set(small.tools) < {"tool001", "tool002"}
    assert nested_samples(CATALOG, [unknown], [200], 0, 0.5)[0].queries == ()


@pytest.mark.parametrize(
    ("tools", "sizes"),
    [(60, [60]), (130, [100, 130]), (120, [120]), (4076, [100, 500, 1000, 4076])],
)
def test_the_usual_sizes_are_plainly_smaller_than_the_catalog(tools, sizes):
    assert default_sizes(tools) == sizes
