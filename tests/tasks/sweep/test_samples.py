"""Samples of a catalog are nested, seeded, and hold whole queries."""

from itertools import pairwise

import pytest

from pegboard.evaluation.golden import Needed
from tasks.sweep.samples import catalog_order, default_sizes, nested_samples

CATALOG = [f"tool{number:03}" for number in range(200)]


@pytest.fixture
def needed(needs):
    return [needs(*CATALOG[start : start + 1 + start % 3]) for start in range(0, 90, 3)]


def test_every_sample_is_within_the_next(needed):
    samples = nested_samples(CATALOG, needed, [80, 20, 200, 40], 0, 0.5)

    assert [one.size for one in samples] == [20, 40, 80, 200]
    assert [len(one.tools) for one in samples] == [20, 40, 80, 200]
    for smaller, larger in pairwise(samples):
        assert set(smaller.tools) < set(larger.tools)
        assert set(smaller.queries) <= set(larger.queries)
    assert len(samples[0].queries) < len(samples[1].queries) < len(samples[2].queries)
    assert samples[-1].queries == tuple(range(len(needed)))


def test_a_sample_is_asked_the_queries_whose_tools_it_has_and_no_others(needed):
    for sample in nested_samples(CATALOG, needed, [15, 50], 3, 0.6):
        inside = [at for at, one in enumerate(needed) if set(one.tools) <= set(sample.tools)]

        assert list(sample.queries) == inside


def test_a_small_sample_holds_whole_queries_and_other_tools_at_the_given_share(needed):
    small = nested_samples(CATALOG, needed, [20], 0, 0.75)[0]

    assert small.share == pytest.approx(0.75, abs=0.05)
    assert len(small.queries) >= 5
    by_chance = nested_samples(CATALOG, [], [20], 0, 0.75)[0].tools
    assert sum(1 for one in needed if set(one.tools) <= set(by_chance)) < len(small.queries)


def test_a_seed_decides_the_order_whatever_the_order_of_the_catalog(needed):
    assert catalog_order(CATALOG, needed, 1, 0.5) == catalog_order(
        CATALOG[::-1], needed[::-1], 1, 0.5
    )
    assert catalog_order(CATALOG, needed, 1, 0.5) != catalog_order(CATALOG, needed, 2, 0.5)


def test_a_new_tool_leaves_the_others_where_they_were(needed):
    before = catalog_order(CATALOG, needed, 0, 0.5)
    after = [one for one in catalog_order([*CATALOG, "new"], needed, 0, 0.5) if one != "new"]

    assert after == before


def test_of_tools_that_share_a_name_one_is_enough():
    either = Needed({"send": frozenset(("tool001", "tool002"))})

    small = nested_samples(CATALOG, [either], [1], 0, 1.0)[0]

    assert small.queries == (0,)
    assert set(small.tools) < {"tool001", "tool002"}


def test_a_query_with_an_unknown_tool_is_in_no_sample():
    assert nested_samples(CATALOG, [Needed({}, ("gone",))], [200], 0, 0.5)[0].queries == ()


@pytest.mark.parametrize(
    ("tools", "sizes"),
    [(60, [60]), (130, [100, 130]), (120, [120]), (4076, [100, 500, 1000, 4076])],
)
def test_the_usual_sizes_are_plainly_smaller_than_the_catalog(tools, sizes):
    assert default_sizes(tools) == sizes
