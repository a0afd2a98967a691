"""Whole strategies on a published board, with an LLM."""

import asyncio

import pytest

import pegboard
from pegboard.retrieval.llm.refinements import (
    Grade,
    ListwiseRerank,
    PostSelection,
    Reflect,
    StepLoop,
)
from pegboard.retrieval.llm.transforms import (
    ContextDecompose,
    Decompose,
    Expand,
    Rewrite,
    StepBackPrompting,
)
from pegboard.retrieval.strategies import named_strategy
from pegboard.retrieval.strategy import Strategy
from tests.pegboard.retrieval.stubs import ScriptedCompleter, offered_names

REQUEST = "pls list teh commits of main, and what's the weather in Oslo?"
STEPS = ["List the commits of a branch", "Get the weather forecast of a city"]
NEEDED = {"list_commits", "get_forecast"}
TOOLSHED = Strategy(
    name="toolshed",
    transforms=(Rewrite(), Decompose(), Expand(), StepBackPrompting()),
    refine_step=(ListwiseRerank(),),
    refine=(ListwiseRerank(), Grade(), Reflect()),
)
RPS = Strategy(name="rps", transforms=(ContextDecompose(),), refine=(StepLoop(), PostSelection()))


def sensible(request):
    """The reply that the prompts ask for, for this one request."""
    [field] = request.schema["properties"]
    if (offered := offered_names(request)) is not None:
        return {field: [name for name in offered if name in NEEDED]}
    commits = "commits" in request.messages[-1].content
    texts = {
        "rewrite": "List the commits of main and get the weather forecast of Oslo",
        "decompose": STEPS,
        "context_decompose": STEPS,
        "expand": ["History of a branch" if commits else "Meteorological outlook for a place"],
        "step_back": "Look something up",
        "reflect": [],
    }
    return {field: texts[request.schema_name]}


@pytest.mark.parametrize(
    ("strategy", "calls"), [(TOOLSHED, 1 + 1 + 2 + 2 + 2 + 1 + 1 + 1), (RPS, 1 + 2 + 1)]
)
def test_a_strategy_finds_the_tools_of_every_step(board_uri, strategy, calls):
    with pegboard.open(board_uri, llm=ScriptedCompleter(by=sensible)) as board:
        found = board.find(REQUEST, 5, strategy=strategy)
        beside = asyncio.run(pegboard.AsyncBoard(board).find(REQUEST, 5, strategy=strategy))

    assert {hit.tool.name for hit in found[:2]} == NEEDED
    assert [hit.tool.id for hit in beside] == [hit.tool.id for hit in found]
    assert [step.text for step in found.steps] == STEPS
    assert (found.trace.llm_calls, found.trace.tokens) == (calls, 110 * calls)
    assert not [part.part for part in found.trace.parts if part.fallback_reason]


@pytest.mark.parametrize("several", [True, False])
def test_every_part_behind_a_rewrite_sees_the_rewritten_request(board_uri, several):
    def by(request):
        [field] = request.schema["properties"]
        reply = sensible(request)
        if request.schema_name == "rewrite":
            return {field: "List the commits of main"}
        return {field: STEPS[: 1 + several]} if field == "steps" else reply

    parts = (ListwiseRerank(), Grade(), Reflect(), PostSelection(), StepLoop())
    strategy = Strategy(
        transforms=(Rewrite(), Decompose(), Expand(), StepBackPrompting()),
        refine_step=parts,
        refine=parts,
    )
    llm = ScriptedCompleter(by=by)
    with pegboard.open(board_uri, llm=llm) as board:
        found = board.find("and for mian?", strategy=strategy)

    assert not [part.part for part in found.trace.parts if part.fallback_reason]
    shown = [request.messages[-1].content for request in llm.requests]
    assert "and for mian?" in shown[0]
    assert len(shown) > 10
    assert not [text for text in shown[1:] if "and for mian?" in text]
    assert all("List the commits of" in text or "weather" in text for text in shown[1:])


@pytest.mark.parametrize("part", [Decompose(), ContextDecompose()])
def test_a_follow_up_of_one_step_is_searched_as_the_llm_wrote_it_out(board_uri, part):
    llm = ScriptedCompleter({"steps": STEPS[1:]}, {"relevant": ["get_forecast"]})
    history = [{"role": "user", "content": "I fly to Oslo"}]
    with pegboard.open(board_uri, llm=llm) as board:
        found = board.find(
            "and the weather there?",
            strategy=Strategy(transforms=(part,), refine=(Grade(),)),
            history=history,
        )

    assert found.trace.parts[0].queries == (STEPS[1],)
    assert "I fly to Oslo" in llm.requests[0].messages[-1].content
    assert STEPS[1] in llm.requests[1].messages[-1].content
    assert "there?" not in llm.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("name", "queries", "calls", "made"),
    [
        ("ask-as-agent", ["list the commits of a branch"], "1", 1),
        ("ask-as-agent-and-look", ["list commits", "get forecast"], "2", 2),
        ("look-at-fifteen", [], "1", 1),
        ("rag-only-select", [], "1", 1),
        ("step-back", [], "1", 1),
        ("graph-rag-tool-fusion", [], "1", 1),
        ("rag-tool-fusion", [], "5 + 2n", 9),
        ("rps-dummy", [], "n to 5n", 3),
        ("plan-select", [], "1 + n to 1 + 5n", 3),
        ("plan-select-precise", [], "2 + n to 2 + 5n", 4),
    ],
)
def test_a_request_takes_as_many_calls_as_the_strategy_says(board_uri, name, queries, calls, made):
    def by(request):
        *_, field = request.schema["properties"]
        if request.schema_name == "agent_query":
            return {field: queries}
        if (offered := offered_names(request)) is not None:
            return {field: offered[:2]}
        return sensible(request)

    with pegboard.open(board_uri, llm=ScriptedCompleter(by=by)) as board:
        found = board.find(REQUEST, 5, strategy=name)

    assert named_strategy(name).llm_calls() == calls
    assert found.trace.llm_calls == made
    assert not found.trace.fallbacks


@pytest.mark.parametrize(
    ("rounds", "more", "variations", "calls"),
    [(3, 5, 0, "3"), (3, 0, 2, "5"), (3, 0, 0, "1"), (2, 5, 3, "3")],
)
def test_a_loop_takes_the_most_calls_where_nothing_ever_fits(
    board_uri, rounds, more, variations, calls
):
    def by(request):
        if request.schema_name == "expand":
            return {"queries": ["something else entirely"]}
        return {"tools": []}

    loop = StepLoop(k=1, more=more, rounds=rounds, variations=variations)
    strategy = Strategy(refine=(loop,))
    with pegboard.open(board_uri, llm=ScriptedCompleter(by=by)) as board:
        found = board.find("weather in Oslo", 5, strategy=strategy)

    assert strategy.llm_calls().split(" to ")[-1] == calls
    assert found.trace.llm_calls == int(calls)
