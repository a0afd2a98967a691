"""The places of tools and agents on a map."""

import numpy as np
import pytest

from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from tasks.report.map import evenly, map_data, mean_vectors, project


def clusters(count, each, seed=0):
    """Unit vectors around `count` centres, `each` of every one."""
    numbers = np.random.default_rng(seed)
    centres = np.repeat(numbers.normal(size=(count, 32)), each, axis=0)
    vectors = centres + numbers.normal(scale=0.1, size=centres.shape)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def loaded(uri, in_memory_rows=IN_MEMORY_ROWS):
    store = ReleaseStore(uri)
    return LoadedRelease(store, store.get(store.channel().release), in_memory_rows)


def test_what_is_alike_lies_together_and_equal_vectors_give_equal_maps():
    vectors = clusters(3, 20)

    places = project(vectors)

    assert (project(vectors) == places).all()
    groups = places.reshape(3, 20, 2)
    centres = groups.mean(axis=1)
    within = max(
        np.linalg.norm(group - centre, axis=1).max()
        for group, centre in zip(groups, centres, strict=True)
    )
    between = min(
        np.linalg.norm(centres[one] - centres[other]) for one, other in ((0, 1), (0, 2), (1, 2))
    )
    assert between > 2 * within


@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 11])
def test_few_points_have_places_too(count):
    places = project(clusters(1, count) if count else np.zeros((0, 32), np.float32))

    assert places.shape == (count, 2)
    assert np.isfinite(places).all()


def test_equal_vectors_have_one_place():
    assert not project(np.repeat(clusters(1, 1), 40, axis=0)).any()


def test_tools_are_chosen_evenly_over_the_agents_and_always_the_same():
    ids = [f"c/big/{number}" for number in range(50)] + [f"c/small/{number}" for number in range(3)]
    owners = [one.rpartition("/")[0] for one in ids]

    chosen = evenly(ids, owners, 10)

    assert sorted(owners[at] for at in chosen) == ["c/big"] * 7 + ["c/small"] * 3
    assert chosen == evenly(ids, owners, 10)
    assert evenly(ids, owners, 53) == list(range(53))


def test_every_tool_has_the_mean_of_its_vectors(board_uri):
    release = loaded(board_uri)

    ids, vectors = mean_vectors(release, "fine")

    assert len(ids) == len(vectors) == 14
    assert ids == sorted(ids)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    several = "desk/desk/book_room"
    rows = release.index("fine").rows_of([several])[several]
    assert len(rows) > 1
    mean = rows.mean(axis=0)
    np.testing.assert_allclose(
        vectors[ids.index(several)], mean / np.linalg.norm(mean), rtol=1e-3, atol=1e-5
    )


def test_an_agent_is_placed_at_one_of_its_tools(held_data):
    drawn = held_data["map"]

    for number, agent in enumerate(drawn["agents"]):
        own = [(tool["x"], tool["y"]) for tool in drawn["tools"] if tool["agent"] == number]
        assert (agent["x"], agent["y"]) in own
        assert agent["tools"] == len(own)
    names = {agent["name"] for agent in drawn["agents"]}
    assert names == {"door", "window", "roof", "fence", "bicycle"}
    assert all(0 <= tool[axis] <= 1 for tool in drawn["tools"] for axis in "xy")


def test_of_many_tools_landmarks_are_laid_out_and_the_others_lie_beside_them(workshop, hashing):
    words = ("door", "boat", "tree")
    tools = {
        word: [workshop.tool(f"{word}_{n}", f"{word} {word} {word} {n}") for n in range(30)]
        for word in words
    }
    workshop.publish(tools, encoder=hashing(64))

    drawn = map_data(loaded(workshop.uri), landmarks=30)

    assert (drawn["of"], drawn["shown"], drawn["landmarks"]) == (90, 90, 30)
    places = np.array(
        [[(one["x"], one["y"]) for one in drawn["tools"] if one["agent"] == at] for at in range(3)]
    )
    spread = max(
        np.linalg.norm(group - np.median(group, axis=0), axis=1).mean() for group in places
    )
    assert (
        min(
            np.linalg.norm(np.median(places[a], 0) - np.median(places[b], 0))
            for a, b in ((0, 1), (0, 2), (1, 2))
        )
        > spread
    )
    assert drawn == map_data(loaded(workshop.uri), landmarks=30)


def test_of_too_many_tools_some_of_every_agent_are_shown_in_memory_and_in_the_store(
    workshop, hashing
):
    tools = {
        agent: [workshop.tool(f"{agent}_{n}", f"{agent} {n}") for n in range(12)]
        for agent in ("one", "two")
    }
    workshop.publish(tools, encoder=hashing(16))

    drawn = map_data(loaded(workshop.uri), shown=6)

    assert (drawn["of"], drawn["shown"]) == (24, 6)
    assert [tool["agent"] for tool in drawn["tools"]] == [0, 0, 0, 1, 1, 1]
    assert [agent["tools"] for agent in drawn["agents"]] == [3, 3]
    assert map_data(loaded(workshop.uri, in_memory_rows=1), shown=6) == drawn
