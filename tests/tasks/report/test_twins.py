"""Tools of different agents that do the same are found, and what one API repeats is not."""

import numpy as np

from tasks.report.twins import ToolVectors, find_twins, unit

THINGS = ("repository", "secret", "variable", "runner", "webhook", "label", "branch", "release")


def vectors(tools, dimensions=64):
    """Tools by id as `{id: (API, function)}`: each vector has a part of both."""
    numbers = np.random.default_rng(0)
    drawn = {key: numbers.normal(size=dimensions) for pair in tools.values() for key in pair}
    ids = sorted(tools)
    matrix = [
        drawn[api] / np.linalg.norm(drawn[api])
        + 1.2 * drawn[function] / np.linalg.norm(drawn[function])
        for api, function in (tools[tool] for tool in ids)
    ]
    return ToolVectors(ids, unit(np.array(matrix, np.float32)))


def names_of(pairs, own):
    names = [tool.rpartition("/")[2] for tool in own.ids]
    return {(names[first], names[second]) for *_, first, second in pairs}


def test_the_same_function_in_two_apis_is_found_and_repeated_text_of_one_api_is_not():
    tools = {f"c/hub/list_{thing}s": ("hub", thing) for thing in THINGS}
    tools |= {f"c/lab/lab_{thing}_list": ("lab", thing) for thing in THINGS[:3]}
    tools |= {f"c/lab/lab_{thing}_drop": ("lab", f"drop {thing}") for thing in THINGS[3:]}
    own = vectors(tools)
    names = [tool.rpartition("/")[2] for tool in own.ids]

    twins = find_twins(own, names)

    expected = {(f"list_{thing}s", f"lab_{thing}_list") for thing in THINGS[:3]}
    assert names_of(twins, own) == expected
    assert [twin[0] for twin in twins] == sorted((twin[0] for twin in twins), reverse=True)


def test_different_tools_with_a_common_name_are_not_twins():
    agents = [f"agent{number}" for number in range(8)]
    own = vectors({f"c/{agent}/search": (agent, f"search {agent}") for agent in agents})

    assert find_twins(own, ["search"] * len(agents)) == []
