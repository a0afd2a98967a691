"""A ranking, expanded by what its best tools need."""

import pytest

from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge
from pegboard.retrieval.requests import Request
from pegboard.retrieval.rules.dependencies import Dependencies
from tests.pegboard.retrieval.stubs import StubContext, one_step, refined, scored

DIRECT = "tool-directly-depends-on"


def graph_of(*needs):
    """Edges from texts such as `A>1`."""
    return ToolGraph(Edge(need[0], need[2], DIRECT, None, f"{need}!") for need in needs)


def context(graph, k=10, refused=()):
    return StubContext(Request("anything", k), graph=graph, refused=frozenset(refused))


def expanded(graph, tools, k=10, refused=(), **options):
    return "".join(refined(Dependencies(**options), one_step(tools), context(graph, k, refused)))


# What a search finds: A B C D E. What they need, as in the paper's first figure: letters by
# vectors, numbers by the graph.
WORKED = graph_of("A>1", "A>2", "1>3", "B>2", "B>4", "4>C", "C>5", "C>1", "D>6")


def test_algorithm_1_by_hand():
    # A, then 1, what 1 needs, 2. B, then not 2 again, but 4 and C, which 4 needs, and 5, which C
    # needs; 1 and 3 are there. C is there and all that it needs. D and E fill up, and 6 is not
    # looked for.
    assert expanded(WORKED, "ABCDE") == "A132B4C5DE"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"initial": 1}, "A132BCDE"),
        ({"initial": 0}, "ABCDE"),
        ({"initial": 9}, "A132B4C5D6E"),
        ({"limit": 1}, "A1B2C5DE"),
        ({"limit": 0}, "ABCDE"),
        ({"rest": False}, "A132B4C5"),
        ({"origins": ("inferred",)}, "ABCDE"),
    ],
)
def test_options_limit_the_expansion(options, expected):
    assert expanded(WORKED, "ABCDE", 99, **options) == expected


def test_a_tool_that_an_earlier_one_needs_moves_up():
    assert expanded(graph_of("A>C", "A>E", "A>1"), "ABCDE") == "ACE1BD"


def test_the_ranking_is_cut_to_what_the_request_wants():
    assert expanded(WORKED, "ABCDE", k=5) == "A132B"


def test_scores_fall_and_those_of_dependencies_lie_between_their_tool_and_the_next():
    graph = graph_of("A>1", "A>2", "B>C", "C>3")

    rows = scored(Dependencies(), one_step("ABCD"), context(graph))

    assert "".join(row.tool for row in rows) == "A12BC3D"
    expected = [1.0, 0.966667, 0.933333, 0.9, 0.833333, 0.766667, 0.7]
    assert [round(row.score, 6) for row in rows] == expected
    assert expanded(graph, "") == ""
    assert expanded(ToolGraph(()), "ABC") == "ABC"


def test_only_what_passes_the_filter_is_added_and_leaves_its_place_to_the_next():
    graph = graph_of("A>1", "1>2", "A>3", "3>4", "2>5", "B>2")
    filtering = context(graph, refused="1")

    assert "".join(refined(Dependencies(), one_step("AB"), filtering)) == "A34B25"
    assert "1 do not pass" in filtering.trace.note
    four = graph_of("A>1", "A>2", "A>3", "A>4")
    assert expanded(four, "A", refused="12", limit=2) == "A34"


def test_the_trace_and_the_context_say_what_was_added_and_why():
    four = context(graph_of("A>1", "1>C", "A>2"), k=4)
    cut = context(WORKED, k=3)

    refined(Dependencies(initial=1), one_step("ABCD"), four)
    refined(Dependencies(), one_step("ABCDE"), cut)

    assert four.trace.note == "2 of 4 tools added as dependencies, 1 moved up, for the first 1"
    assert set(four.log.added) == {"1", "C", "2"}
    assert four.log.added["C"] == {
        "of": "1", "type": DIRECT, "parameter": None, "reason": "1>C!", "origin": "declared",
        "confidence": 1.0,
    }  # fmt: skip
    assert set(cut.log.added) == {"1", "3"}
