"""The places, groups and labels of tools on a map."""

from itertools import combinations

import numpy as np
import pytest

from pegboard.records import Tool
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from tasks.report.map import group_labels, map_data
from tasks.report.vectors import ToolVectors


def loaded(uri, in_memory_rows=IN_MEMORY_ROWS):
    store = ReleaseStore(uri)
    return LoadedRelease(store, store.get(store.channel().release), in_memory_rows)


def draw(uri, in_memory_rows=IN_MEMORY_ROWS, **bounds):
    release = loaded(uri, in_memory_rows)
    return map_data(release, ToolVectors.of(release), **bounds)


def spread_and_gap(groups):
    """The mean distance within the widest group, and the distance of the closest two."""
    middles = [np.median(group, axis=0) for group in groups]
    within = [
        np.linalg.norm(group - middle, axis=1).mean()
        for group, middle in zip(groups, middles, strict=True)
    ]
    gaps = [np.linalg.norm(first - second) for first, second in combinations(middles, 2)]
    return max(within), min(gaps)


def test_a_large_release_is_shown_by_tools_of_all_agents(workshop, hashing):
    words = ("door", "boat", "tree")
    tools = {
        word: [workshop.tool(f"{word}_{n}", f"{word} {word} {word} {n}") for n in range(30)]
        for word in words
    }
    workshop.publish(tools, encoder=hashing(64))

    drawn = draw(workshop.uri)
    few = draw(workshop.uri, shown=6)

    assert (drawn["of"], drawn["shown"]) == (90, 90)
    places = [
        np.array([(tool["x"], tool["y"]) for tool in drawn["tools"] if tool["group"] == group])
        for group in range(3)
    ]
    spread, gap = spread_and_gap(places)
    assert gap > spread
    assert drawn == draw(workshop.uri)
    assert (few["of"], few["shown"]) == (90, 6)
    assert [group["tools"] for group in few["groups"]] == [2, 2, 2]
    assert few == draw(workshop.uri, in_memory_rows=1, shown=6)


def tools_of(agent, *names, tags=()):
    return [Tool(f"c/{agent}/{name}", "c", f"c/{agent}", name, tags=tags) for name in names]


@pytest.mark.parametrize(
    ("tools", "labels"),
    [
        (tools_of("a", "x", "y") + tools_of("b", "z", "w"), ["A", "A", "B", "B"]),
        (tools_of("a", "repos/add", "users/get", "users/list"), ["repos", "users", "users"]),
        (tools_of("a", "x", tags=("pay", "eu")) + tools_of("a", "y", tags=("hr",)), ["pay", "hr"]),
        (tools_of("a", "getX", "get_y", "add") + tools_of("b", "z"), ["get", "get", "add", "B"]),
        (tools_of("a", "browser_x", "browser_y"), ["A", "A"]),
        ([], []),
    ],
)  # fmt: skip
def test_groups_are_agents_or_the_parts_of_an_agent_that_has_most_tools(tools, labels):
    assert group_labels(tools, {"c/a": "A", "c/b": "B"}) == labels
