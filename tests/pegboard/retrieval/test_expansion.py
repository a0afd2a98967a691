"""A ranking, expanded by what its best tools need."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pegboard.errors import QueryError
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Dependency, Edge, Tool
from pegboard.retrieval.parts import Candidates, Request, ScoredTool
from pegboard.retrieval.results import PartTrace
from pegboard.retrieval.rules.dependencies import Dependencies
from pegboard.search.memory import MemoryIndex
from pegboard.search.text import identifier_words, tokenize

DIRECT, INDIRECT = "tool-directly-depends-on", "tool-indirectly-depends-on"
LINKOS = Path(__file__).parents[4] / "shared" / "benchmarks" / "toollinkos"


class Wanting:
    """A context for one request of which this part uses only the graph and the caller's filter."""

    def __init__(self, graph, k=10, refused=()):
        self.graph, self.request = graph, Request("anything", k)
        self.trace, self.added = PartTrace("dependencies", "refine"), {}
        self.refused, self.asked = set(refused), []

    async def passing(self, ids):
        self.asked.append(list(ids))
        return set(ids) - self.refused


def graph_of(*needs):
    return ToolGraph(
        Edge(
            *(one.split("~") if "~" in one else one.split(">")),
            INDIRECT if "~" in one else DIRECT,
            None,
            f"{one}!",
        )
        for one in needs
    )


def refined(context, ranking, **options):
    """The part's ranking; the tools of the given one are letters, with scores from 1.0 downwards in
    tenths.
    """
    scored = [ScoredTool(tool, (10 - place) / 10) for place, tool in enumerate(ranking)]
    return asyncio.run(
        Dependencies(**options).refine(Candidates({0: scored}, scored, {0: "anything"}), context)
    )


def expanded(graph, ranking, k=10, **options):
    return "".join(one.tool for one in refined(Wanting(graph, k), ranking, **options))


# What a search finds: A B C D E. What they need, as in the paper's first figure: letters by
# vectors,
# numbers by the graph.
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
        ({"budget": 0}, "ABCDE"),
        ({"budget": 4}, "A132B4CDE"),
        ({"depth": 1}, "A12B4C5DE"),
        ({"final": 4}, "A132"),
        ({"final": 99}, "A132B4C5DE"),
        ({"types": (INDIRECT,)}, "ABCDE"),
        ({"origins": ("judged", "inferred")}, "ABCDE"),
    ],
)
def test_options_limit_the_expansion(options, expected):
    assert expanded(WORKED, "ABCDE", 99, **options) == expected


def test_a_tool_that_an_earlier_one_needs_moves_up_whatever_the_budget():
    assert expanded(graph_of("A>C", "A>E", "A>1"), "ABCDE", budget=0) == "ACBDE"
    assert expanded(graph_of("A>C", "A>E", "A>1"), "ABCDE", budget=1) == "ACEBD"


def test_the_ranking_is_cut_to_what_the_request_wants():
    assert expanded(WORKED, "ABCDE", k=5) == "A132B"


def test_direct_dependencies_may_come_first():
    graph = graph_of("A~1", "A>2", "2~3", "2>4")

    assert expanded(graph, "AB") == "A1234B"
    assert expanded(graph, "AB", order="direct-first") == "A2431B"


def test_uncertain_edges_may_be_left_out():
    edges = [
        Edge("A", "1", DIRECT, origin="inferred", confidence=0.4),
        Edge("A", "2", DIRECT, origin="judged"),
    ]

    assert expanded(ToolGraph(edges), "AB") == "A21B"
    assert expanded(ToolGraph(edges), "AB", min_confidence=0.5) == "A2B"


def test_nothing_is_made_of_nothing():
    assert expanded(WORKED, "") == ""
    assert expanded(ToolGraph(()), "ABC") == "ABC"


def test_scores_fall_and_those_of_dependencies_lie_between_their_tool_and_the_next():
    scores = {
        one.tool: one.score
        for one in refined(Wanting(graph_of("A>1", "A>2", "B>C", "C>3")), "ABCD")
    }

    assert [round(score, 6) for score in scores.values()] == [
        1.0,
        0.966667,
        0.933333,
        0.9,
        0.833333,
        0.766667,
        0.7,
    ]
    assert list(scores) == ["A", "1", "2", "B", "C", "3", "D"]


def test_scores_fall_below_the_last_tool_as_well():
    for last in (0.8, 0.0, -0.5):
        scored = [ScoredTool("A", last)]
        found = asyncio.run(
            Dependencies().refine(Candidates({}, scored, {}), Wanting(graph_of("A>1", "A>2")))
        )

        assert [one.tool for one in found] == ["A", "1", "2"]
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == last
        assert last == 0 or scores[1] < last


def test_only_what_passes_the_filter_is_added_and_what_only_that_needs_is_not():
    context = Wanting(graph_of("A>1", "1>2", "A>3", "3>4", "2>5", "B>2"), refused="1")

    assert "".join(one.tool for one in refined(context, "AB")) == "A34B25"
    assert "1 do not pass" in context.trace.note


def test_a_refused_dependency_leaves_its_place_under_the_limit_to_the_next():
    context = Wanting(graph_of("A>1", "A>2", "A>3", "A>4"), refused="12")

    assert "".join(one.tool for one in refined(context, "A", limit=2)) == "A34"


def test_thousands_of_refused_dependencies_are_asked_about_in_few_calls():
    tools = [f"t{number}" for number in range(5000)]
    graph = ToolGraph([*(Edge("A", tool, DIRECT) for tool in tools), Edge("A", "last", DIRECT)])
    context = Wanting(graph, refused=tools)

    assert [one.tool for one in refined(context, "AB")] == ["A", "last", "B"]
    assert len(context.asked) < 15
    asked = [tool for call in context.asked for tool in call]
    assert len(asked) == len(set(asked)) == 5001


def test_the_trace_and_the_context_say_what_was_added_and_why():
    context = Wanting(graph_of("A>1", "1>C", "A>2"), k=4)

    refined(context, "ABCD", initial=1)

    assert context.trace.note == "2 of 4 tools added as dependencies, 1 moved up, for the first 1"
    assert set(context.added) == {"1", "C", "2"}
    assert context.added["C"] == {
        "of": "1", "type": DIRECT, "parameter": None, "reason": "1>C!", "origin": "declared",
        "confidence": 1.0,
    }  # fmt: skip


def test_what_was_cut_off_is_not_explained():
    context = Wanting(WORKED, k=3)

    refined(context, "ABCDE")

    assert set(context.added) == {"1", "3"}


def test_wrong_options_are_named_together():
    with pytest.raises(QueryError) as caught:
        Dependencies(
            initial=-1, limit=-2, final=0, order="deepest", types=("needs",), origins=("guessed",)
        )  # type: ignore[arg-type]

    for problem in (
        "initial is -1",
        "limit is -2",
        "final is 0",
        "'deepest'",
        "types has needs",
        "origins has guessed",
    ):
        assert problem in str(caught.value)


@pytest.fixture(scope="module")
def linkos():
    """The graph of ToolLinkOS, and for each of its requests the ranking by BM25 and what is
    needed.
    """
    if not LINKOS.is_dir():
        pytest.skip(f"ToolLinkOS is not at {LINKOS}")
    listed = json.loads((LINKOS / "tools.json").read_text("utf-8"))
    tools = [
        Tool(
            one["name"],
            "linkos",
            "linkos",
            one["name"],
            dependencies=tuple(map(_dependency, one["depends_on"])),
        )
        for one in listed
    ]
    tokens = [
        " ".join(tokenize(f"{identifier_words(one['name'])} {one['description']}"))
        for one in listed
    ]
    index = MemoryIndex(
        pa.table(
            {"tool": [one.id for one in tools], "part": ["document"] * len(tools), "tokens": tokens}
        )
    )
    asked = [
        json.loads(line) for line in (LINKOS / "instances.jsonl").read_text("utf-8").splitlines()
    ]
    rankings = [
        [ScoredTool(row.tool, row.score) for row in index.text(tokenize(one["user_query"]), 10)]
        for one in asked
    ]
    return SimpleNamespace(
        graph=ToolGraph.from_declared(tools),
        rankings=rankings,
        needed=[set(one["golden_function_names"]) for one in asked],
    )


def _dependency(listed):
    kind = (
        listed["dependence_type"]
        .lower()
        .replace("_", "-")
        .replace("parameter-depends", "parameter-directly-depends")
    )
    return Dependency(listed["name"], kind, listed["parameter_name"], listed["reason"] or "")


def precision_at_10(ranking, needed):
    """AP@10: the sum of the precision at each of the first ten ranks with a needed tool, over the
    most that there can be.
    """
    ranks = [rank for rank, tool in enumerate(ranking[:10], start=1) if tool in needed]
    return sum(place / rank for place, rank in enumerate(ranks, start=1)) / min(10, len(needed))


def mean_precision(linkos, part):
    async def all_of_them():
        return [
            await part.refine(Candidates({0: ranking}, ranking, {0: ""}), Wanting(linkos.graph))
            for ranking in linkos.rankings
        ]

    rankings = asyncio.run(all_of_them())
    each = [
        precision_at_10([one.tool for one in ranking], needed)
        for ranking, needed in zip(rankings, linkos.needed, strict=True)
    ]
    return sum(each) / len(each)


def test_on_toollinkos_the_dependencies_are_most_of_what_is_needed(linkos):
    # By words alone, so that no model is needed; with the embedded encoder it is .22 and .91
    # (docs/explanation/dependencies.md).
    assert mean_precision(linkos, Dependencies(initial=0)) < 0.2
    assert mean_precision(linkos, Dependencies()) > 0.77


def test_on_toollinkos_the_order_of_the_catalog_is_worth_having(linkos):
    shuffled = SimpleNamespace(
        **{
            **vars(linkos),
            "graph": ToolGraph(sorted(linkos.graph.edges, key=lambda one: one.target)),
        }
    )

    assert mean_precision(linkos, Dependencies()) > mean_precision(shuffled, Dependencies()) + 0.05
