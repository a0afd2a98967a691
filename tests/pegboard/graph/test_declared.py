"""Which tool a declared dependency means."""

import pytest

from pegboard.graph.declared import Unresolved, declared_edges
from pegboard.records import Dependency, Edge, Tool, agent_id, tool_id

DIRECT = "tool-directly-depends-on"


def tool(place, *needs):
    """A tool `catalog/agent/name` that declares dependencies: names or ids, or whole
    dependencies.
    """
    catalog, agent, name = place.split("/")
    owner = agent_id(catalog, agent)
    dependencies = tuple(
        one if isinstance(one, Dependency) else Dependency(one, DIRECT) for one in needs
    )
    return Tool(tool_id(owner, name), catalog, owner, name, dependencies=dependencies)


def ends(tools):
    return [(edge.source, edge.target) for edge in declared_edges(tools)[0]]


def test_an_edge_says_what_the_catalog_says():
    need = Dependency("ticker", "parameter-indirectly-depends-on", "symbol", "To find the symbol.")

    edges, unresolved = declared_edges([tool("c/a/price", need), tool("c/a/ticker")])

    assert edges == [
        Edge(
            "c/a/price",
            "c/a/ticker",
            "parameter-indirectly-depends-on",
            "symbol",
            "To find the symbol.",
            "declared",
            1.0,
        )
    ]
    assert unresolved == []


def test_edges_keep_the_order_in_which_tools_and_their_dependencies_are_given():
    tools = [tool("c/a/z", "y", "b", "x"), tool("c/a/b", "z"), tool("c/a/x"), tool("c/a/y")]

    assert ends(tools) == [
        ("c/a/z", "c/a/y"),
        ("c/a/z", "c/a/b"),
        ("c/a/z", "c/a/x"),
        ("c/a/b", "c/a/z"),
    ]


@pytest.mark.parametrize(
    ("others", "meant"),
    [
        (["c/a/time", "c/b/time", "d/e/time"], "c/a/time"),
        (["c/b/time", "d/e/time", "d/f/time"], "c/b/time"),
        (["d/e/time"], "d/e/time"),
    ],
    ids=["the same agent", "the same catalog", "the only one anywhere"],
)
def test_a_name_means_the_nearest_tool(others, meant):
    assert ends([tool("c/a/meet", "time"), *map(tool, others)]) == [("c/a/meet", meant)]


def test_an_id_means_that_tool_wherever_it_is_unless_a_sibling_is_called_so():
    far = tool("d/e/time")

    assert ends([tool("c/a/meet", "d/e/time"), far, tool("c/a/time")]) == [("c/a/meet", "d/e/time")]
    sibling = Tool(tool_id("c/a", "d/e/time"), "c", "c/a", "d/e/time")
    assert ends([tool("c/a/meet", "d/e/time"), far, sibling]) == [("c/a/meet", "c/a/d%2Fe%2Ftime")]


@pytest.mark.parametrize("others", [["c/b/time", "c/d/time", "x/y/time"], ["x/y/time", "z/y/time"]])
def test_a_name_that_may_mean_several_tools_makes_no_edge(others):
    edges, unresolved = declared_edges([tool("c/a/meet", "time"), *map(tool, others)])

    assert edges == []
    assert [(one.tool, one.dependency) for one in unresolved] == [("c/a/meet", "time")]
    assert unresolved[0].why.startswith("'time' may mean 2 tools: ")
    assert "declare the id" in unresolved[0].why


def test_a_name_that_no_tool_has_makes_no_edge_and_is_counted():
    edges, unresolved = declared_edges(
        [tool("c/a/meet", "nothing", "meet2", "c/a/x"), tool("c/a/meet2")]
    )

    assert [edge.target for edge in edges] == ["c/a/meet2"]
    assert unresolved == [
        Unresolved("c/a/meet", "nothing", "no tool has the name or id 'nothing'"),
        Unresolved("c/a/meet", "c/a/x", "no tool has the name or id 'c/a/x'"),
    ]


def test_a_tool_that_names_itself_makes_no_edge():
    edges, unresolved = declared_edges([tool("c/a/page", "page")])

    assert (edges, [one.why for one in unresolved]) == ([], ["it names the tool itself"])


def test_of_equal_edges_the_first_is_kept_and_other_parameters_are_other_edges():
    parameter = "parameter-directly-depends-on"
    needs = [
        Dependency("ids", parameter, "from", "first"),
        Dependency("ids", parameter, "from", "second"),
        Dependency("c/a/ids", parameter, "to", "third"),
        Dependency("ids", parameter, ""),
        Dependency("ids", parameter, None),
    ]

    edges, _ = declared_edges([tool("c/a/move", *needs), tool("c/a/ids")])

    assert [(edge.parameter, edge.reason) for edge in edges] == [
        ("from", "first"),
        ("to", "third"),
        (None, ""),
    ]


def test_a_name_that_every_agent_has_costs_no_more_than_others():
    tools = [tool(f"c/a{number}/get", "missing", "get", "put") for number in range(20_000)]

    edges, unresolved = declared_edges([*tools, tool("d/a/put"), tool("e/a/put")])

    assert (edges, len(unresolved)) == ([], 60_000)
