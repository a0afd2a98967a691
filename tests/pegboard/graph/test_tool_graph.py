"""What tools need, and in which order that is found."""

import random

import pytest

from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Dependency, Edge, Tool

DIRECT, INDIRECT = "tool-directly-depends-on", "tool-indirectly-depends-on"


def graph_of(*needs, **how):
    """A graph of edges written as `a>b`; an indirect one as `a~b`."""
    return ToolGraph(
        [
            Edge(
                *(one.split("~") if "~" in one else one.split(">")),
                INDIRECT if "~" in one else DIRECT,
            )
            for one in needs
        ],
        **how,
    )


def needs(graph, tool, *limit, **how):
    return "".join(edge.target for edge in graph.dependencies(tool, *limit, **how))


def test_edges_are_found_from_both_ends():
    graph = graph_of("a>b", "a~c", "b>c")

    assert [edge.target for edge in graph.edges_from("a")] == ["b", "c"]
    assert [edge.source for edge in graph.edges_to("c")] == ["a", "b"]
    assert graph.edges_from("c") == graph.edges_to("a") == graph.edges_from("unknown") == ()
    assert (len(graph), graph.tools, "c" in graph, "d" in graph) == (
        3,
        ("a", "b", "c"),
        True,
        False,
    )
    assert repr(graph) == "ToolGraph(3 tools, 3 edges)"


def test_dependencies_are_found_depth_first():
    # a needs b, e and f; b needs c and d, c needs g.
    graph = graph_of("a>b", "a>e", "a>f", "b>c", "b>d", "c>g", "z>a")

    assert needs(graph, "a") == "bcgdef"
    assert [needs(graph, "a", limit) for limit in range(5)] == ["", "b", "bc", "bcg", "bcgd"]
    assert needs(graph, "g") == needs(graph, "unknown") == ""


def test_each_dependency_comes_with_the_edge_by_which_it_was_reached():
    graph = graph_of("a>b", "b>c", "a>c")

    assert [(edge.source, edge.target) for edge in graph.dependencies("a")] == [
        ("a", "b"),
        ("b", "c"),
    ]


def test_circles_and_edges_to_oneself_end():
    graph = graph_of("a>b", "b>c", "c>a", "c>b", "b>b", "a>a", "c>d")

    assert [needs(graph, tool) for tool in "abcd"] == ["bcd", "cad", "abd", ""]
    assert len(graph) == 5


def test_a_depth_counts_the_fewest_edges_between_two_tools():
    # The way that is walked first reaches d at the third edge; a itself needs it, too, and e is one
    # further.
    graph = graph_of("a>b", "b>c", "c>d", "a>d", "d>e", "e>f")

    assert [needs(graph, "a", depth=depth) for depth in (1, 2, 3, 4, None)] == [
        "bd",
        "bcde",
        "bcdef",
        "bcdef",
        "bcdef",
    ]


def test_a_target_that_has_no_edges_of_its_own_is_a_dependency_all_the_same():
    assert needs(graph_of("a>b", "b>gone"), "a", order="direct-first") == "bgone"


def test_direct_dependencies_may_come_first():
    graph = graph_of("a~b", "a>c", "a~d", "a>e", "c~f", "c>g")

    assert needs(graph, "a") == "bcfgde"
    assert needs(graph, "a", order="direct-first") == "cgfebd"
    assert [edge.target for edge in graph.edges_from("a", "direct-first")] == ["c", "e", "b", "d"]


def test_what_a_catalog_declares_comes_in_its_order_before_what_was_inferred():
    edges = [
        Edge("a", "b", DIRECT, origin="inferred", confidence=0.4),
        Edge("a", "z", DIRECT),
        Edge("a", "c", DIRECT, origin="judged", confidence=0.9),
        Edge("a", "y", INDIRECT),
        Edge("a", "d", DIRECT, origin="inferred", confidence=0.4),
    ]

    assert needs(ToolGraph(edges), "a") == "zycbd"
    assert needs(ToolGraph(edges), "a", order="direct-first") == "zcbdy"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"types": [DIRECT]}, "bc"),
        ({"types": [INDIRECT]}, "ef"),
        ({"origins": ["declared"]}, "bde"),
        ({"origins": ["inferred", "judged"]}, "f"),
        ({"min_confidence": 0.5}, "bdce"),
        ({"passes": lambda tool: tool != "b"}, "ef"),
    ],
)
def test_edges_that_do_not_count_are_not_followed(how, expected):
    edges = [
        Edge("a", "b", DIRECT),
        Edge("b", "c", DIRECT, origin="inferred", confidence=0.8),
        Edge("b", "d", INDIRECT),
        Edge("a", "e", INDIRECT),
        Edge("a", "f", INDIRECT, origin="judged", confidence=0.3),
    ]

    assert needs(ToolGraph(edges), "a", **how) == expected


def test_a_tool_that_is_needed_in_several_ways_comes_once():
    edges = [
        Edge("a", "b", DIRECT),
        Edge("a", "b", "parameter-directly-depends-on", "id"),
        Edge("a", "c", DIRECT),
    ]

    assert needs(ToolGraph(edges), "a") == "bc"
    assert len(ToolGraph(edges).edges_from("a")) == 3


def test_core_tools_are_those_that_a_catalog_calls_so_and_those_that_many_need():
    graph = graph_of(
        *(f"{tool}>x" for tool in "abcde"),
        *(f"{tool}>y" for tool in "abcd"),
        "a~y",
        core=["w", "y"],
    )

    assert graph.needed() == {"x": 5, "y": 4}
    assert graph.core_tools() == ["x", "y", "w"]
    assert graph_of("a>b", "a~b", "c>b").core_tools(threshold=3) == []
    assert graph_of("a>b", "a~b", "c>b").core_tools(threshold=2) == ["b"]


def test_the_graph_of_a_release_without_edges_is_what_its_tools_declare():
    need = Dependency("date", INDIRECT)
    tools = [
        Tool("c/a/meet", "c", "c/a", "meet", dependencies=(need,)),
        Tool("c/a/date", "c", "c/a", "date", tags=("core",)),
    ]

    graph = ToolGraph.from_declared(iter(tools))

    assert needs(graph, "c/a/meet") == "c/a/date"
    assert graph.core_tools() == ["c/a/date"]


def test_a_chain_of_twenty_thousand_tools_is_walked_to_its_end():
    graph = ToolGraph(Edge(f"t{number}", f"t{number + 1}", DIRECT) for number in range(20_000))

    found = graph.dependencies("t0", None)

    assert (len(found), found[-1].target) == (20_000, "t20000")
    assert len(graph.dependencies("t0", None, depth=10_000)) == 10_000


@pytest.mark.parametrize("order", ["declared", "direct-first"])
def test_a_tool_with_twenty_thousand_dependencies_gives_the_first(order):
    graph = ToolGraph(
        Edge("hub", f"t{number}", INDIRECT if number % 2 else DIRECT) for number in range(20_000)
    )

    found = [edge.target for edge in graph.dependencies("hub", 3, order=order)]

    assert found == (["t0", "t1", "t2"] if order == "declared" else ["t0", "t2", "t4"])
    assert len(graph.dependencies("hub", None, order=order)) == 20_000


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_are_what_can_be_reached(seed):
    pick = random.Random(seed)
    edges = [Edge(str(pick.randrange(30)), str(pick.randrange(30)), DIRECT) for _ in range(45)]
    graph = ToolGraph(edges)
    depth = pick.choice([None, 1, 2, 3])

    reached, level = {"0"}, {"0"}
    for _ in range(depth or len(edges)):
        level = {edge.target for edge in edges if edge.source in level} - reached
        reached |= level

    found = [edge.target for edge in graph.dependencies("0", None, depth=depth)]
    assert sorted(found) == sorted(reached - {"0"})
    assert [edge.target for edge in graph.dependencies("0", 4, depth=depth)] == found[:4]
