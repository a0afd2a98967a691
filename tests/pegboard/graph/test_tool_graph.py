"""What tools need, and in which order that is found. `a>b` is a direct dependency, `a~b` an
indirect one.
"""

import random

import pytest

from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge


def edge(ends, **fields):
    kind, sign = ("indirectly", "~") if "~" in ends else ("directly", ">")
    source, target = ends.split(sign)
    return Edge(source, target, **{"type": f"tool-{kind}-depends-on", **fields})


def graph_of(edges):
    return ToolGraph(map(edge, edges.split()))


def targets(graph, tool, *limit, **options):
    return "".join(edge.target for edge in graph.dependencies(tool, *limit, **options))


def test_edges_are_found_from_both_ends():
    graph = graph_of("a>b a~c b>c")

    assert [edge.target for edge in graph.edges_from("a")] == ["b", "c"]
    assert [edge.source for edge in graph.edges_to("c")] == ["a", "b"]
    assert graph.edges_from("c") == graph.edges_to("a") == graph.edges_from("unknown") == ()
    assert len(graph) == 3
    assert ("c" in graph, "d" in graph) == (True, False)
    assert repr(graph) == "ToolGraph(3 edges)"


@pytest.mark.parametrize(
    ("edges", "tool", "options", "expected"),
    [
        ("a>b a>e a>f b>c b>d c>g z>a", "a", {}, "bcgdef"),
        ("a>b a>e a>f b>c b>d c>g z>a", "a", {"limit": 3}, "bcg"),
        ("a>b a>e a>f b>c b>d c>g z>a", "a", {"limit": 0}, ""),
        ("a>b a>e a>f b>c b>d c>g z>a", "g", {}, ""),
        ("a>b a>e a>f b>c b>d c>g z>a", "unknown", {}, ""),
        ("a>b b>c c>a c>b b>b a>a c>d", "a", {}, "bcd"),
        ("a>b b>c c>a c>b b>b a>a c>d", "c", {}, "abd"),
        ("a~b a>c a~d a>e c~f c>g", "a", {}, "bcfgde"),
    ],
)
def test_dependencies_are_found_depth_first(edges, tool, options, expected):
    assert targets(graph_of(edges), tool, **options) == expected


def test_each_dependency_comes_once_with_the_edge_by_which_it_was_reached():
    parameter = edge("a>b", type="parameter-directly-depends-on", parameter="id")
    graph = ToolGraph([edge("a>b"), parameter, edge("b>c"), edge("a>c")])

    assert graph.dependencies("a") == [edge("a>b"), edge("b>c")]
    assert len(graph.edges_from("a")) == 3


def test_declared_edges_come_in_their_order_before_inferred_ones():
    edges = [
        edge("a>b", origin="inferred", confidence=0.4),
        edge("a>z"),
        edge("a>c", origin="inferred", confidence=0.9),
        edge("a~y"),
        edge("a>d", origin="inferred", confidence=0.4),
    ]

    assert targets(ToolGraph(edges), "a") == "zycbd"


def test_what_does_not_pass_is_not_followed():
    graph = graph_of("a>b b>c b~d a~e a~f")

    assert targets(graph, "a", passes=lambda tool: tool != "b") == "ef"


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_are_what_can_be_reached(seed):
    pick = random.Random(seed)
    edges = [edge(f"{pick.randrange(30)}>{pick.randrange(30)}") for _ in range(45)]
    graph = ToolGraph(edges)

    reached = {"0"}
    level = {"0"}
    for _ in edges:
        level = {edge.target for edge in edges if edge.source in level} - reached
        reached |= level

    walked = [edge.target for edge in graph.dependencies("0", None)]
    assert sorted(walked) == sorted(reached - {"0"})
    assert [edge.target for edge in graph.dependencies("0", 4)] == walked[:4]
