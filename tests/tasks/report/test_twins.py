"""Tools of different agents that do the same are found, and what one API repeats is not."""

import numpy as np
import pytest

from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from tasks.report.twins import find_twins, twins_data
from tasks.report.vectors import ToolVectors, unit

BROWSERS = {
    "playwright": {
        "browser_click": "Perform click on a web page",
        "browser_close": "Close the page",
        "browser_drag": "Perform drag and drop between two elements",
        "browser_file_upload": "Upload one or multiple files",
        "browser_hover": "Hover over element on page",
        "browser_press_key": "Press a key on the keyboard",
        "browser_take_screenshot": "Take a screenshot of the current page.",
    },
    "chrome-devtools": {
        "click": "Clicks on the provided element",
        "drag": "Drag an element onto another element",
        "hover": "Hover over the provided element",
        "list_pages": "Get a list of pages open in the browser.",
        "new_page": "Open a new tab and load a URL.",
        "press_key": "Press a key or key combination.",
        "take_screenshot": "Take a screenshot of the page or element.",
        "upload_file": "Upload a file through a provided element.",
    },
}
SAME = {
    ("click", "browser_click"),
    ("drag", "browser_drag"),
    ("hover", "browser_hover"),
    ("press_key", "browser_press_key"),
    ("take_screenshot", "browser_take_screenshot"),
    ("upload_file", "browser_file_upload"),
}
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
    return ToolVectors("full", ids, unit(np.array(matrix, np.float32)))


def names_of(pairs, own):
    names = [tool.rpartition("/")[2] for tool in own.ids]
    return {(names[first], names[second]) for *_, first, second in pairs}


def test_the_same_function_in_two_apis_is_found_and_what_an_api_repeats_is_not():
    tools = {f"c/hub/list_{thing}s": ("hub", thing) for thing in THINGS}
    tools |= {f"c/lab/lab_{thing}_list": ("lab", thing) for thing in THINGS[:3]}
    tools |= {f"c/lab/lab_{thing}_drop": ("lab", f"drop {thing}") for thing in THINGS[3:]}
    own = vectors(tools)
    names = [tool.rpartition("/")[2] for tool in own.ids]

    twins = find_twins(own, names)

    expected = {(f"list_{thing}s", f"lab_{thing}_list") for thing in THINGS[:3]}
    assert names_of(twins, own) == expected
    assert [twin[0] for twin in twins] == sorted((twin[0] for twin in twins), reverse=True)


def test_a_common_name_of_unlike_tools_is_no_twin():
    agents = [f"agent{number}" for number in range(8)]
    own = vectors({f"c/{agent}/search": (agent, f"search {agent}") for agent in agents})

    assert find_twins(own, ["search"] * len(agents)) == []


@pytest.fixture(scope="module")
def browsers(tmp_path_factory, workshop_type, real_encoder):
    workshop = workshop_type(tmp_path_factory.mktemp("browsers"))
    servers = {
        agent: [workshop.tool(name, text) for name, text in tools.items()]
        for agent, tools in BROWSERS.items()
    }
    release = workshop.publish(servers, encoder=real_encoder).release
    return LoadedRelease(ReleaseStore(workshop.uri), release, IN_MEMORY_ROWS)


def test_the_twins_of_two_browsers_are_found_by_the_real_encoder(browsers):
    own = ToolVectors.of(browsers)

    data = twins_data(browsers, own)

    pairs = {(row["first"]["name"], row["second"]["name"]) for row in data["shown"]}
    assert pairs == SAME
    drag = next(row for row in data["shown"] if row["first"]["name"] == "drag")
    assert drag["cosine"] < 0.9  # the cosine alone missed it
    (missing,) = twins_data(browsers, own, max_tools=14).values()
    assert "has 15 tools" in missing
