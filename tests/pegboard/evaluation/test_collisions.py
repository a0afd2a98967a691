"""Pairs of tools whose vectors lie close together, with one and with several vectors per tool."""

from itertools import combinations

import pytest

from pegboard.errors import BoardNotFound, ConfigurationError
from pegboard.evaluation.collisions import Collisions, collisions
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from tests.vectors import tool_vectors


def loaded(uri, in_memory_rows=IN_MEMORY_ROWS):
    store = ReleaseStore(uri)
    return LoadedRelease(store, store.get(store.channel("live").release), in_memory_rows)


def by_hand(release, index, least):
    ids = sorted(tool for tool, _, _ in release.tool_names())
    rows = tool_vectors(release, index)
    pairs = {(a, b): round(float((rows[a] @ rows[b].T).max()), 5) for a, b in combinations(ids, 2)}
    return {pair: cosine for pair, cosine in pairs.items() if cosine >= least}


def by_pair(result):
    assert [*result.pairs] == sorted(result.pairs, key=lambda pair: (-pair[2], *pair[:2]))
    return {(first, second): cosine for first, second, cosine in result.pairs}


@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("least", [0.15, 0.3, 0.6])
@pytest.mark.parametrize("block_scores", [1, 40, 10**6])
def test_every_pair_is_found_once_by_its_closest_rows(board_uri, index, least, block_scores):
    release = loaded(board_uri)
    expected = by_hand(release, index, least)

    result = collisions(release, index, least=least, block_scores=block_scores)

    # Multiplied in other blocks, a cosine may differ in its last bit, and so in its last digit.
    assert by_pair(result) == pytest.approx(expected, abs=2e-5)
    assert (result.total, result.tools, result.least) == (len(expected), 14, least)
    assert result.density == pytest.approx(len(expected) / 91)
    assert result.colliding == {tool for pair in expected for tool in pair}


def test_only_so_many_are_listed_but_all_are_counted(board_uri, monkeypatch):
    release = loaded(board_uri)
    every = collisions(release, least=0.1)
    monkeypatch.setattr("pegboard.evaluation.collisions.SHOWN", 3)

    few = collisions(release, least=0.1, block_scores=40)

    assert [pair[:2] for pair in few.pairs] == [pair[:2] for pair in every.pairs[:3]]
    assert (few.total, few.colliding) == (every.total, every.colliding)


def test_an_index_that_is_too_large_for_memory_has_the_same_pairs(board_uri):
    from_lance, in_memory = loaded(board_uri, 0), loaded(board_uri)

    assert collisions(from_lance, "fine", least=0.3) == collisions(in_memory, "fine", least=0.3)


def test_equal_tools_have_a_cosine_of_one_and_are_ordered_by_id(workshop, hashing):
    pay = workshop.tool("pay", "Pays an invoice.", amount="how much")
    workshop.servers({server: [pay] for server in "cab"})
    workshop.run(
        workshop.configure('[[indexes]]\nname = "full"\nparts = ["name", "description"]\n'),
        encoder=hashing(32),
    )

    result = collisions(loaded(workshop.uri), least=1)

    assert [*by_pair(result)] == [
        ("kit/a/pay", "kit/b/pay"),
        ("kit/a/pay", "kit/c/pay"),
        ("kit/b/pay", "kit/c/pay"),
    ]
    assert (result.total, result.density) == (3, 1.0)


def test_a_single_tool_collides_with_none(workshop, hashing):
    workshop.publish({"a": [workshop.tool("pay")]}, encoder=hashing())

    result = collisions(loaded(workshop.uri))

    assert result == Collisions(0.9, 1, (), 0)
    empty = {"total": 0, "density": 0.0, "colliding": 0, "pairs": []}
    assert result.to_dict() == {"least": 0.9, "tools": 1, **empty}


def test_invalid_bounds_and_unknown_indexes_are_refused(board_uri):
    for least in (0.0, 1.5):
        with pytest.raises(ConfigurationError, match="Expected a cosine above 0"):
            collisions(loaded(board_uri), least=least)
    with pytest.raises(BoardNotFound, match="It has: fine, full"):
        collisions(loaded(board_uri), "none")
