"""Nearest neighbours: exact, in one order, however many tools say the same."""

import numpy as np
import pytest

from pegboard.records import Agent, Tool
from tasks.enrichment.neighbours import Neighbour, head_text, nearest

AGENT = Agent("kit/git", "kit", "git-tools")


def tool(name, description):
    return Tool(f"kit/git/{name}", "kit", "kit/git", name, description)


def unit_vectors(count, dimensions=24, seed=7):
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_definition(ids, vectors, k):
    cosines = np.round(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 5)
    return {
        one: tuple(
            sorted(
                (Neighbour(other, cosines[row, at]) for at, other in enumerate(ids) if at != row),
                key=lambda near: (-near.cosine, near.id),
            )[:k]
        )
        for row, one in enumerate(ids)
    }


def test_a_tool_is_compared_by_its_name_as_words_and_its_description_on_one_line():
    assert (
        head_text(tool("getRecord_v2", "Reads\n  a record."), AGENT)
        == "get Record v2. Reads a record."
    )


def test_a_tool_without_a_description_has_its_agents_name_in_front():
    assert head_text(tool("list", " "), AGENT) == "git tools. list"


def test_a_name_without_letters_still_is_a_text():
    assert head_text(tool("+", "Adds."), AGENT) == "+. Adds."


def test_a_credential_in_a_description_is_in_no_text_that_is_encoded():
    secret = "sk-proj-4f9aA81bTq7kLm20Zx81"

    assert secret not in head_text(tool("call", f"Calls with {secret}."), AGENT)


def test_the_nearest_are_those_of_the_definition_in_blocks_of_any_size():
    ids = [f"c/a/{number:03}" for number in np.random.default_rng(1).permutation(300)]
    vectors = unit_vectors(300)
    expected = by_definition(ids, vectors, 4)

    assert nearest(ids, vectors, 4) == expected
    assert nearest(ids, vectors, 4, block_scores=1) == expected
    assert nearest(ids, vectors, 4, block_scores=2_100) == expected


def test_equal_cosines_are_ordered_by_id_among_twins_and_strangers():
    corners = np.eye(3, dtype=np.float32)
    vectors = corners[[0, 1, 0, 1, 0, 2, 0]]
    ids = ["g", "f", "e", "d", "c", "b", "a"]

    near = nearest(ids, vectors, 3)

    assert near == by_definition(ids, vectors, 3)
    assert near["g"] == (Neighbour("a", 1.0), Neighbour("c", 1.0), Neighbour("e", 1.0))
    assert near["f"] == (Neighbour("d", 1.0), Neighbour("a", 0.0), Neighbour("b", 0.0))
    assert near["b"] == (Neighbour("a", 0.0), Neighbour("c", 0.0), Neighbour("d", 0.0))


@pytest.mark.parametrize("k", [1, 2, 7, 200])
def test_many_twins_change_nothing(k):
    vectors = unit_vectors(9, 3)[np.random.default_rng(3).integers(0, 9, 150)]
    ids = [f"{number:03}" for number in np.random.default_rng(4).permutation(150)]

    assert nearest(ids, vectors, k) == by_definition(ids, vectors, k)


def test_a_tool_alone_has_no_neighbours_and_two_have_each_other():
    vectors = unit_vectors(2)

    assert nearest([], vectors[:0], 3) == {}
    assert nearest(["a"], vectors[:1], 3) == {"a": ()}
    assert [one.id for one in nearest(["a", "b"], vectors, 3)["b"]] == ["a"]
    assert nearest(["a", "b"], vectors, 0) == {"a": (), "b": ()}


def test_real_tools_find_their_siblings(encoder):
    tools = [
        tool("create_issue", "Opens an issue in a repository."),
        tool("close_issue", "Closes an issue in a repository."),
        tool("get_forecast", "The weather forecast of a city."),
        tool("get_tides", "High and low tide at a harbour, and the weather there."),
    ]

    near = nearest(
        [one.name for one in tools], encoder.encode([head_text(one, AGENT) for one in tools]), 1
    )

    assert {name: found[0].id for name, found in near.items()} == {
        "create_issue": "close_issue",
        "close_issue": "create_issue",
        "get_forecast": "get_tides",
        "get_tides": "get_forecast",
    }
