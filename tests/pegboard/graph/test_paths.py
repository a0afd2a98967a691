"""Why one tool needs another, and which need each other."""

import pytest

from pegboard.graph.paths import cycles, explain_path
from pegboard.graph.tool_graph import ToolGraph


def ways(graph, source, target, **options):
    return [
        [f"{edge.source}>{edge.target}" for edge in way]
        for way in explain_path(graph, source, target, **options)
    ]


def test_all_shortest_ways_are_found_in_the_order_of_the_dependencies(graph_of):
    graph = graph_of("a>x a>c a>b b>d c>d x>y y>d d>e")

    assert ways(graph, "a", "e") == [["a>c", "c>d", "d>e"], ["a>b", "b>d", "d>e"]]
    assert ways(graph, "a", "e", most=1) == [["a>c", "c>d", "d>e"]]


@pytest.mark.parametrize("ends", ["ba", "ac", "a?", "?a", "dd"])
def test_there_is_no_way_against_the_dependencies_nor_to_an_unknown_tool(graph_of, ends):
    assert ways(graph_of("a>b c>b d>e e>d"), *ends) == []


def test_several_reasons_for_one_step_follow_one_another(edge):
    parameter = edge("a>b", type="parameter-directly-depends-on", parameter="id")
    edges = [edge("a>b", reason="why"), parameter, edge("b>c")]

    (way,) = explain_path(ToolGraph(edges), "a", "c")

    assert [*way] == edges


def test_of_very_many_ways_only_the_first_are_built(graph_of):
    # Sixty levels of two tools each: two to the power of sixty ways.
    levels = (
        f"a{at}>a{at + 1} a{at}>b{at + 1} b{at}>a{at + 1} b{at}>b{at + 1}" for at in range(60)
    )

    assert len(explain_path(graph_of(" ".join(levels)), "a0", "a60")) == 5


def test_groups_that_need_each_other_are_found_the_largest_first(graph_of):
    graph = graph_of("a>b b>c c>a c>d d>e e>d e>f x>y y>x f>f")

    assert cycles(graph) == [("a", "b", "c"), ("d", "e"), ("x", "y")]
    assert cycles(graph_of("a>b a>c b>d c>d")) == []


def test_a_chain_of_five_thousand_tools_has_a_way_and_a_cycle_when_it_is_closed(graph_of):
    chain = " ".join(f"t{number}>t{number + 1}" for number in range(5_000))

    (way,) = explain_path(graph_of(chain), "t0", "t5000")
    (cycle,) = cycles(graph_of(f"{chain} t5000>t0"))

    assert (len(way), len(cycle)) == (5_000, 5_001)
