"""Which tool a declared dependency means."""

import pytest

from pegboard.graph.declared import declared_edges
from pegboard.records import Dependency, Edge, Tool, agent_id, tool_id

DIRECT = "tool-directly-depends-on"


def tool(place, *needs):
    """A tool `catalog/agent/name` that declares dependencies: names or ids, or whole
    dependencies.
    """
    catalog, agent, name = place.split("/", 2)
    owner = agent_id(catalog, agent)
    dependencies = tuple(
        need if isinstance(need, Dependency) else Dependency(need, DIRECT) for need in needs
    )
    return Tool(tool_id(owner, name), catalog, owner, name, dependencies=dependencies)


def ends(tools):
    return [(edge.source, edge.target) for edge in declared_edges(tools)[0]]


def test_an_edge_says_what_the_catalog_says():
    need = Dependency("ticker", "parameter-indirectly-depends-on", "symbol", "To find the symbol.")

    edges, unresolved = declared_edges([tool("c/a/price", need), tool("c/a/ticker")])

    fields = (need.type, need.parameter, need.reason, "declared", 1.0)
    assert (edges, unresolved) == ([Edge("c/a/price", "c/a/ticker", *fields)], [])


def test_edges_keep_the_order_in_which_tools_and_their_dependencies_are_given():
    tools = [tool("c/a/z", "y", "b", "x"), tool("c/a/b", "z"), tool("c/a/x"), tool("c/a/y")]

    assert [(source[-1], target[-1]) for source, target in ends(tools)] == [
        ("z", "y"),
        ("z", "b"),
        ("z", "x"),
        ("b", "z"),
    ]


@pytest.mark.parametrize(
    ("name", "others", "meant"),
    [
        ("time", ["c/a/time", "c/b/time", "d/e/time"], "c/a/time"),
        ("time", ["c/b/time", "d/e/time", "d/f/time"], "c/b/time"),
        ("time", ["d/e/time"], "d/e/time"),
        ("d/e/time", ["d/e/time", "c/a/time"], "d/e/time"),
        ("d/e/time", ["d/e/time", "c/a/d/e/time"], "c/a/d%2Fe%2Ftime"),
    ],
    ids=["same agent", "same catalog", "only one anywhere", "id", "sibling of that name"],
)
def test_a_name_means_the_nearest_tool(name, others, meant):
    assert ends([tool("c/a/meet", name), *map(tool, others)]) == [("c/a/meet", meant)]


@pytest.mark.parametrize(
    ("name", "others", "reason"),
    [
        ("time", ["c/b/time", "c/d/time", "x/y/time"], "'time' may mean 2 tools: "),
        ("time", ["x/y/time", "z/y/time"], "'time' may mean 2 tools: "),
        ("nothing", ["c/a/other"], "no tool has the name or id 'nothing'"),
        ("c/a/x", ["c/a/other"], "no tool has the name or id 'c/a/x'"),
        ("meet", [], "it names the tool itself"),
    ],
)
def test_an_ambiguous_or_unknown_name_makes_no_edge(name, others, reason):
    edges, [unresolved] = declared_edges([tool("c/a/meet", name), *map(tool, others)])

    assert edges == []
    assert unresolved.startswith(f"c/a/meet: {reason}")
    assert ("declare the id" in unresolved) == ("may mean" in reason)


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
