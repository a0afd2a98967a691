"""Why one tool needs another, and which need each other."""

from pegboard.graph.paths import cycles, explain_path
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge

DIRECT = "tool-directly-depends-on"


def graph_of(*needs):
    return ToolGraph(Edge(*one.split(">"), DIRECT, reason=f"{one} because") for one in needs)


def ways(graph, source, target, **how):
    return [
        [f"{edge.source}>{edge.target}" for edge in way]
        for way in explain_path(graph, source, target, **how)
    ]


def test_all_shortest_ways_are_found_in_the_order_of_the_dependencies():
    graph = graph_of("a>x", "a>c", "a>b", "b>d", "c>d", "x>y", "y>d", "d>e")

    assert ways(graph, "a", "e") == [["a>c", "c>d", "d>e"], ["a>b", "b>d", "d>e"]]
    assert ways(graph, "a", "e", most=1) == [["a>c", "c>d", "d>e"]]
    assert explain_path(graph, "a", "c")[0][0].reason == "a>c because"


def test_there_is_no_way_against_the_dependencies_nor_to_what_is_unknown():
    graph = graph_of("a>b", "c>b")

    assert (
        ways(graph, "b", "a")
        == ways(graph, "a", "c")
        == ways(graph, "a", "?")
        == ways(graph, "?", "a")
        == []
    )
    assert ways(graph_of("a>b", "b>a"), "a", "a") == []


def test_several_reasons_for_one_step_follow_one_another():
    parameter = "parameter-directly-depends-on"
    graph = ToolGraph(
        [Edge("a", "b", DIRECT), Edge("a", "b", parameter, "id"), Edge("b", "c", DIRECT)]
    )

    (way,) = explain_path(graph, "a", "c")

    assert [(edge.source, edge.target, edge.parameter) for edge in way] == [
        ("a", "b", None), ("a", "b", "id"), ("b", "c", None),
    ]  # fmt: skip


def test_more_ways_than_can_be_listed_are_not_all_looked_for():
    # Sixty levels of two tools each: two to the power of sixty ways.
    levels = [
        f"{one}{number}>{other}{number + 1}"
        for number in range(60)
        for one in "ab"
        for other in "ab"
    ]

    assert len(explain_path(graph_of(*levels), "a0", "a60")) == 5


def test_groups_that_need_each_other_are_found_the_largest_first():
    graph = graph_of("a>b", "b>c", "c>a", "c>d", "d>e", "e>d", "e>f", "x>y", "y>x", "f>f")

    assert cycles(graph) == [("a", "b", "c"), ("d", "e"), ("x", "y")]
    assert cycles(graph_of("a>b", "a>c", "b>d", "c>d")) == []


def test_a_chain_of_five_thousand_tools_has_a_way_and_a_circle_when_it_is_closed():
    chain = [Edge(f"t{number}", f"t{number + 1}", DIRECT) for number in range(5_000)]

    (way,) = explain_path(ToolGraph(chain), "t0", "t5000")
    (circle,) = cycles(ToolGraph([*chain, Edge("t5000", "t0", DIRECT)]))

    assert (len(way), len(circle)) == (5_000, 5_001)
