"""`Board.find` and `Board.search_agents`: strategies over a published board, what they cost, and
that they answer whatever fails.
"""

import asyncio
import gc
import threading
import warnings
from dataclasses import dataclass
from typing import ClassVar

import pytest

import pegboard
from pegboard import AsyncBoard
from pegboard.errors import QueryError
from pegboard.ranker.model import default_ranker
from pegboard.ranking import ScoredTool
from pegboard.retrieval.requests import Query
from pegboard.retrieval.strategy import Strategy
from tests.pegboard.retrieval.stubs import ScriptedCompleter

TWO = "Convert 30 dollars to yen, then open an issue in the repository."


@pytest.fixture(scope="module")
def board(board_uri, encoder):
    return pegboard.open(board_uri, encoder=encoder)


def names(hits):
    return [hit.tool.name for hit in hits]


@dataclass(frozen=True, slots=True)
class Split:
    """A transform of a few lines, as anyone may write one."""

    part: ClassVar[str] = "split"

    async def transform(self, queries, context):
        texts = context.request.text.split(", then ")
        return [*queries, *(Query(text, step, "step") for step, text in enumerate(texts, start=1))]


@dataclass(frozen=True, slots=True)
class Backwards:
    """A refinement of a few lines."""

    part: ClassVar[str] = "backwards"

    async def refine(self, candidates, context):
        turned = list(candidates.ranking)[::-1]
        return [ScoredTool(row.tool, place) for place, row in enumerate(turned)]


SPLIT = Strategy(transforms=(Split(),))


def says(text):
    """A completer that always says the same."""
    return ScriptedCompleter(by=lambda request: text)


def test_every_step_of_a_request_gets_its_tool(board):
    found = board.find(TWO, 2, strategy=SPLIT)
    by_name = {hit.tool.name: hit for hit in found}
    assert found.steps[0].text == TWO
    assert {"convert_currency", "create_issue"} == by_name.keys()
    assert found.steps[1].tools[0].endswith("/convert_currency")
    assert by_name["convert_currency"].why["vector"]["rank"] == 1
    assert by_name["convert_currency"].why["vector"]["query"] in (TWO, "Convert 30 dollars to yen")

    found = board.find(TWO, 3)
    assert found.trace.strategy == "clauses"
    assert {"convert_currency", "create_issue"} <= set(names(found))
    assert all(not part.ranks for part in found.trace.parts)

    filtered = board.find(TWO, 10, strategy=SPLIT, where={"catalog": "finance"})
    assert {hit.tool.catalog for hit in filtered} == {"finance"}


def test_custom_parts_stand_beside_those_of_the_library(board):
    @dataclass(frozen=True, slots=True)
    class Waits:
        part: ClassVar[str] = "waits"

        async def refine(self, candidates, context):
            await asyncio.sleep(0.001)
            return [await asyncio.to_thread(lambda: candidates.ranking[0])]

    plain = board.find("open an issue", 14, strategy=Strategy(depth=14))
    turned = board.find("open an issue", 14, strategy=Strategy(depth=14, refine=(Backwards(),)))
    assert names(turned) == names(plain)[::-1]
    assert len(board.find("convert dollars", 5, strategy=Strategy(refine=(Waits(),)))) == 1


def test_an_explained_trace_says_which_part_brought_each_tool_at_which_rank(board):
    found = board.find(
        TWO, 3, strategy=Strategy(transforms=(Split(),), refine=(Backwards(),)), explain=True
    )
    parts = [(part.stage, part.part, part.step) for part in found.trace.parts]
    assert parts == [
        ("transform", "split", None),
        ("search", "search", None),
        ("fuse", "search", 0),
        ("fuse", "search", 1),
        ("fuse", "search", 2),
        ("fuse", "round-robin", None),
        ("refine", "backwards", None),
    ]
    assert found.trace.parts[0].queries == (TWO, *TWO.split(", then "))
    for place, hit in enumerate(found, start=1):
        assert found.trace.ranks_of(hit.tool.id)[-1] == ("backwards", place)
    assert found.trace.llm_calls == found.trace.tokens == found.trace.cost_usd == 0
    assert found.trace.milliseconds > 0
    assert found.to_dict()["trace"]["parts"][0]["part"] == "split"


def test_what_a_part_of_a_request_finds_is_as_likely_as_its_mean_with_the_whole(board):
    found = board.find(TWO, 14)
    scores = {
        step.text: {hit.tool.id: hit.score for hit in board.search(step.text, 14)}
        for step in found.steps
    }

    assert len(scores) == 3
    for hit in found:
        own = scores[TWO][hit.tool.id]
        means = [(own + each[hit.tool.id]) / 2 for each in scores.values()]
        assert hit.probability == pytest.approx(default_ranker().probability(max(means)), abs=1e-4)


def test_a_request_that_nothing_fits_is_said_to_have_no_answer(board):
    fits, nothing = board.find_many(["convert dollars to yen", "qwxz"], 3)

    assert not fits.nothing_fits
    assert nothing.nothing_fits
    assert nothing.probability < fits.probability
    assert len(nothing) == 3
    assert nothing.to_dict()["nothing_fits"] is True
    assert fits.judged_by == nothing.to_dict()["judged_by"] == "ranker"


def test_an_llm_that_looked_judges_in_place_of_the_threshold(board_uri, encoder):
    def by(request):
        shown = request.messages[-1].content
        return {"tools": [] if "dollars" in shown else ["close_ledger"]}

    requests = ["convert dollars to yen", "qwxz"]
    with pegboard.open(board_uri, encoder=encoder, llm=ScriptedCompleter(by=by)) as board:
        refused, found = board.find_many(requests, 3, strategy="look-at-fifteen")
        nearest = board.find(requests[0], 3, llm=False)

    assert (refused.nothing_fits, refused.judged_by) == (True, "llm")
    assert names(refused) == names(nearest)
    assert (found.nothing_fits, found.judged_by) == (False, "llm")
    assert found.probability < refused.probability


def test_where_the_look_fails_the_threshold_judges_and_the_default_strategy_answers(
    board_uri, encoder
):
    with pegboard.open(board_uri, encoder=encoder, llm=says("no idea")) as board:
        found = board.find_many([TWO, "qwxz"], 3, strategy="ask-as-agent-and-look")
        default = board.find_many([TWO, "qwxz"], 3, llm=False)

    assert [names(result) for result in found] == [names(result) for result in default]
    assert [result.nothing_fits for result in found] == [False, True]
    assert {result.judged_by for result in found} == {"ranker"}
    assert [part for part, _ in found[0].trace.fallbacks] == ["agent-query", "look"]


def test_many_requests_are_one_call_of_the_encoder_and_find_what_each_finds_alone(
    board_uri, encoder
):
    class Counting:
        name = encoder.name
        fingerprint = encoder.fingerprint
        dimensions = encoder.dimensions
        calls: ClassVar[list] = []

        def encode(self, texts):
            self.calls.append(list(texts))
            return encoder.encode(texts)

    board = pegboard.open(board_uri, encoder=Counting())
    requests = ["convert dollars", TWO, "water the plants", "convert dollars", " "]
    together = board.find_many(requests, 4)
    assert len(Counting.calls) == 1
    assert len(Counting.calls[0]) == len(set(Counting.calls[0]))
    alone = [board.find(request, 4) for request in requests]
    assert len(Counting.calls) == 1  # their vectors are remembered
    assert [list(hits) for hits in together] == [list(hits) for hits in alone]
    assert list(together[-1]) == []


def test_a_strategy_searches_its_own_index_in_its_own_mode(board):
    strategy = Strategy(modes=("vector",), indexes=("fine",))
    found = board.find("convert an amount of dollars", 3, strategy=strategy)
    expected = board.search("convert an amount of dollars", 3, mode="vector", index="fine")
    assert list(found) == expected
    assert list(board.find("dollars", 3, strategy=strategy, index="full")) == board.search(
        "dollars", 3, mode="vector", index="full"
    )


def test_a_strategy_that_fails_for_one_request_leaves_nothing_half_begun(board):
    by_vector = {"modes": ["vector"]}
    likely = {**by_vector, "refine": [{"part": "at-least", "probability": 0.5}]}
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests left

    with pytest.raises(QueryError, match="which only a hybrid search gives"):
        board.find_many(["one", "two", "three"], strategy=likely)
    gc.collect()  # a coroutine that nobody awaits is reported here
    assert board.find("convert dollars", strategy=by_vector).probability is None


@pytest.mark.parametrize("running_loop", [False, True])
def test_an_llm_is_asked_through_its_completer_and_counted(board_uri, encoder, running_loop):
    llm = says('{"steps": ["Convert 30 dollars to yen", "Water the plants"]}')
    strategy = {"transforms": ["decompose"]}

    async def inside():
        with pegboard.open(board_uri, encoder=encoder, llm=llm) as board:
            return board.find(TWO, 2, strategy=strategy), await AsyncBoard(board).find(
                TWO, 2, strategy=strategy
            )

    def outside():
        with pegboard.open(board_uri, encoder=encoder, llm=llm) as board:
            return board.find(TWO, 2, strategy=strategy), board.find(TWO, 2, strategy=strategy)

    for found in asyncio.run(inside()) if running_loop else outside():
        assert set(names(found)) == {"convert_currency", "water_plants"}
        trace = found.trace
        assert (trace.llm_calls, trace.tokens, trace.cost_usd) == (1, 110, pytest.approx(0.001))
    assert len(llm.requests) == 2


BY_RULES = [
    "rag-tool-fusion",
    "plan-select",
    "plan-select-precise",
    "step-back",
    "dependencies",
    "graph-rag-tool-fusion",
    "hybrid-alpha",
    "dummy-steps",
]


def test_without_an_llm_every_strategy_answers_by_its_rules(board):
    for strategy in BY_RULES:
        found = board.find(TWO, 6, strategy=strategy)
        assert {"convert_currency", "create_issue"} <= set(names(found)), strategy
        assert found.trace.llm_calls == 0
        reasons = {part.fallback_reason for part in found.trace.parts} - {None}
        assert reasons <= {"no LLM was given"}


def test_the_async_board_finds_the_same_and_does_not_block_the_loop(board_uri, encoder):
    class Slow:
        name = encoder.name
        fingerprint = encoder.fingerprint
        dimensions = encoder.dimensions
        free = threading.Event()

        def encode(self, texts):
            self.free.wait()  # forever, if this blocks the event loop
            return encoder.encode(texts)

    async def both():
        board = await pegboard.open_async(board_uri, encoder=Slow())
        work = asyncio.create_task(board.find(TWO, 3, explain=True))
        await asyncio.sleep(0.01)
        Slow.free.set()
        found = await work
        several = await board.find_many([TWO, "water the plants"], 3)
        agents = await board.search_agents("convert dollars", 1)
        return found, several, agents, await board.search("convert dollars", 1)

    found, several, agents, hits = asyncio.run(both())
    board = pegboard.open(board_uri, encoder=encoder)
    assert list(found) == list(board.find(TWO, 3, explain=True))
    assert [list(hits) for hits in several] == [
        list(hits) for hits in board.find_many([TWO, "water the plants"], 3)
    ]
    assert (agents, hits) == (
        board.search_agents("convert dollars", 1),
        board.search("convert dollars", 1),
    )


def test_an_llm_that_answered_too_late_once_is_not_waited_for_again(board_uri, encoder):
    class Hangs:
        name = "stub/hangs"
        asked = 0

        async def complete(self, request):
            Hangs.asked += 1
            await asyncio.sleep(600)

    with pegboard.open(
        board_uri, encoder=encoder, llm=Hangs(), llm_options={"timeout": 0.2}
    ) as board:
        found = board.find(TWO, 4, strategy="rag-tool-fusion")
    assert {"convert_currency", "create_issue"} <= set(names(found))
    assert Hangs.asked == found.trace.llm_calls == 1
    reasons = [part.fallback_reason for part in found.trace.parts if part.fallback_reason]
    assert reasons[0] == "timed out after 0.2 s"
    assert set(reasons[1:]) == {"the LLM was not asked again: it timed out after 0.2 s"}


ONE_TEXT = "expected a list of texts"
TEXTS = {"request", "requests"}


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("find", {"request": None}, f"the requests are .None.*{ONE_TEXT}"),
        ("find_many", {"requests": "hello"}, f"the requests are 'hello', {ONE_TEXT}"),
        ("search_agents", {"request": None}, ONE_TEXT),
        ("find", {"k": 0}, "k is 0, expected the number of results"),
        ("find", {"k": "5"}, "k is '5', expected the number of results"),
        ("find", {"k": 2.5}, "k is 2.5"),
        ("find", {"strategy": "guess"}, "Unknown strategy 'guess'"),
        ("find", {"strategy": 5}, "Invalid strategy: 5. Expected a Strategy"),
        ("find", {"strategy": {"modes": []}}, "'modes' is"),
        ("find", {"history": [{"role": "judge"}]}, "Invalid message in the history"),
        ("find", {"history": ["a"]}, "Invalid message in the history: 'a'"),
        ("find", {"history": None}, "the history is None, expected a list of messages"),
        ("find", {"where": {"colour": "red"}}, "there is no field 'colour'"),
        ("find", {"where": "finance"}, "The filter is 'finance'; expected values by field"),
        ("find", {"index": "missing"}, "has no index 'missing'"),
    ],
)
def test_invalid_arguments_are_reported(board, method, arguments, message):
    with pytest.raises(pegboard.PegboardError, match=message):
        getattr(board, method)(*([] if len(arguments.keys() & TEXTS) else ["x"]), **arguments)


def test_agents_are_found_by_what_they_say_and_by_their_tools(board):
    (best,) = board.search_agents("convert an amount of dollars to another currency", 1)
    assert best.agent.name == "finance"
    assert best.release == board.release.id
    assert best.why["rank"] == 1
    hits = board.search("dollars", 20, where={"agent": best.agent.id})
    assert {hit.agent.id for hit in hits} == {best.agent.id}
    with pytest.raises(QueryError, match="k is 0"):
        board.search_agents("anything", 0)
    assert not board.search_agents(" ")


def test_a_tool_or_an_agent_answers_whichever_is_nearer(board):
    result = board.search_entities("a tool that opens an issue, or the git host", 4)

    scores = [hit.score for hit in result]
    assert len(result) == 4
    assert scores == sorted(scores, reverse=True)
    assert {hit.release for hit in result} == {board.release.id}
    assert [*result.tools, *result.agents] == sorted(result, key=lambda hit: hit in result.agents)
    whole = {hit.agent.id for hit in result.agents}
    assert whole.isdisjoint(hit.agent.id for hit in result.tools)
    by_type = {"tool": result.tools, "agent": result.agents}
    types = [hit["type"] for hit in result.to_dict()["hits"]]
    assert {name: types.count(name) for name in by_type} == {
        name: len(hits) for name, hits in by_type.items()
    }
    [agent] = board.search_entities("git", 1, mode="text", where={"agent": "git"}).agents
    assert (agent.agent.name, agent.why["tool"]) == ("git", None)
    [tool] = board.search_entities("merges a branch into another", 1).tools
    assert pegboard.as_openai_tools([tool])[0]["function"]["name"] == "merge_branch"
    assert not board.search_entities(" ")
    with pytest.raises(QueryError, match="k is 0"):
        board.search_entities("anything", 0)


@pytest.mark.parametrize(
    ("reply", "steps", "fallback"),
    [
        (
            '{"steps": ["exchange dollars", "report a bug"]}',
            ["exchange dollars", "report a bug"],
            None,
        ),
        ("no JSON", TWO.removesuffix(".").split(", then "), "the reply holds no JSON object"),
    ],
    ids=["an LLM's steps", "its reply cannot be used"],
)
def test_the_steps_for_agents_are_an_llm_s_or_the_clauses_with_a_reason(
    board_uri, encoder, reply, steps, fallback
):
    with pegboard.open(board_uri, encoder=encoder, llm=says(reply)) as board:
        found = board.search_agents(TWO, 2, decompose=True)
        quiet = board.search_agents(TWO, 2, decompose=True, llm=False)

    (part,) = found.trace.parts
    assert found.steps == (TWO, *steps)
    assert found[0].why["step"] in found.steps
    assert (part.part, part.llm_calls) == ("decompose", 1)
    assert part.fallback_reason == fallback
    assert {hit.agent.name for hit in found} == {"finance", "git"}
    assert (quiet.trace.parts[0].part, quiet.trace.llm_calls) == ("clauses", 0)
