"""Pairs of tools whose vectors lie close together, in indexes with one and with several vectors per
tool.
"""

from itertools import combinations
from typing import Any

import pytest

from pegboard.errors import BoardNotFound, ConfigurationError
from pegboard.evaluation.collisions import Collisions, collisions
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore


def loaded(uri: str, in_memory_rows: int = IN_MEMORY_ROWS) -> LoadedRelease:
    store = ReleaseStore(uri)
    channel = store.channel("live")
    assert channel is not None
    return LoadedRelease(store, store.get(channel.release), in_memory_rows)


def by_hand(release: LoadedRelease, index: str, least: float) -> dict[tuple[str, str], float]:
    ids = sorted(one for one, _, _ in release.tool_names())
    rows = release.index(index).rows_of(ids)
    pairs = {(a, b): round(float((rows[a] @ rows[b].T).max()), 5) for a, b in combinations(ids, 2)}
    return {pair: cosine for pair, cosine in pairs.items() if cosine >= least}


def by_pair(found: Collisions) -> dict[tuple[str, str], float]:
    assert [*found.pairs] == sorted(
        found.pairs, key=lambda one: (-one.cosine, one.first, one.second)
    )
    pairs = {(one.first, one.second): one.cosine for one in found.pairs}
    assert len(pairs) == len(found.pairs)
    return pairs


@pytest.mark.parametrize("index", ["full", "fine"])
def test_every_pair_is_found_once_by_its_closest_rows_and_the_closest_come_first(
    board_uri: str, index: str
) -> None:
    release = loaded(board_uri)
    for least in (0.15, 0.3, 0.6):
        expected, found = by_hand(release, index, least), collisions(release, index, least=least)
        assert by_pair(found) == pytest.approx(expected, abs=2e-5)
        assert (found.total, found.tools, found.least) == (len(expected), 14, least)
        assert found.density == pytest.approx(len(expected) / 91)
        assert found.colliding == {tool for pair in expected for tool in pair}


def test_only_so_many_are_listed_but_all_are_counted(board_uri: str) -> None:
    release = loaded(board_uri)
    every = collisions(release, least=0.1)
    assert collisions(release, least=0.1, shown=3).pairs == every.pairs[:3]
    none = collisions(release, least=0.1, shown=0)
    assert (none.pairs, none.total, none.colliding) == ((), every.total, every.colliding)


@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("cells", [1, 40, 200])
def test_blocks_of_any_size_find_the_same(board_uri: str, index: str, cells: int) -> None:
    release = loaded(board_uri)
    whole = collisions(release, index, least=0.2)
    found = collisions(release, index, least=0.2, block_scores=cells)
    # Multiplied in other blocks, a cosine may differ in its last bit, and so in the digit to which
    # it is rounded.
    assert by_pair(found) == pytest.approx(by_pair(whole), abs=2e-5)
    assert (found.total, found.colliding) == (whole.total, whole.colliding)


def test_an_index_that_is_too_large_for_memory_has_the_same(board_uri: str) -> None:
    assert collisions(loaded(board_uri, 0), "fine", least=0.3) == collisions(
        loaded(board_uri), "fine", least=0.3
    )


def test_equal_tools_have_a_cosine_of_one_and_equals_are_ordered_by_id(
    workshop: Any, hashing: Any
) -> None:
    same = [
        workshop.tool(name, "Pays an invoice.", amount="how much") for name in ("pay", "pay", "pay")
    ]
    workshop.servers({server: [tool] for server, tool in zip("cab", same, strict=True)})
    workshop.run(
        workshop.configure('[[indexes]]\nname = "full"\nparts = ["name", "description"]\n'),
        encoder=hashing(32),
    )
    found = collisions(loaded(workshop.uri), least=1)
    assert [*by_pair(found)] == [
        ("kit/a/pay", "kit/b/pay"),
        ("kit/a/pay", "kit/c/pay"),
        ("kit/b/pay", "kit/c/pay"),
    ]
    assert (found.total, found.density) == (3, 1.0)


def test_a_single_tool_collides_with_none(workshop: Any, hashing: Any) -> None:
    workshop.publish({"a": [workshop.tool("pay")]}, encoder=hashing())
    found = collisions(loaded(workshop.uri))
    assert found == Collisions(0.9, 1, (), 0)
    assert found.to_dict() == {
        "least": 0.9,
        "tools": 1,
        "total": 0,
        "density": 0.0,
        "colliding": 0,
        "pairs": [],
    }


def test_what_cannot_be_meant_is_refused(board_uri: str) -> None:
    for least, shown in ((0.0, 1), (1.5, 1), (0.5, -1)):
        with pytest.raises(ConfigurationError, match="expected a cosine above 0"):
            collisions(loaded(board_uri), least=least, shown=shown)
    with pytest.raises(BoardNotFound, match="It has: fine, full"):
        collisions(loaded(board_uri), "none")


def test_many_tools_are_compared_block_by_block(
    workshop: Any, hashing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("open", "close", "list", "rename", "archive")
    things = ("invoice", "ticket", "branch", "room", "taxi", "letter")
    workshop.publish(
        {
            "a": [
                workshop.tool(f"{word}_{thing}", f"{word} {thing}")
                for word in words
                for thing in things
            ]
        },
        encoder=hashing(64),
    )
    release = loaded(workshop.uri)
    expected = by_hand(release, release.index_name(None), 0.5)
    found = collisions(release, least=0.5, shown=1000, block_scores=300)
    assert by_pair(found) == pytest.approx(expected, abs=2e-5)
    assert 0 < found.total == len(expected) < 30 * 29 // 2
