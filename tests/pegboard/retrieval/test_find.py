"""`Board.find` and `Board.search_agents`: strategies over a published board, what they cost, and
that they answer whatever fails.
"""

import asyncio
import gc
import threading
import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

import pegboard
from pegboard import AsyncBoard
from pegboard.errors import ConfigurationError, QueryError
from pegboard.llm import ChatReply
from pegboard.retrieval.fusion import BestScore
from pegboard.retrieval.parts import Query, ScoredTool
from pegboard.retrieval.strategy import Strategy

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
        return [ScoredTool(one.tool, place) for place, one in enumerate(turned)]


@dataclass
class Says:
    """A completer that always says the same, and remembers what it was asked."""

    text: str
    name: str = "stub/says"
    asked: list = field(default_factory=list)

    async def complete(self, request):
        self.asked.append(request)
        return ChatReply(
            text=self.text,
            finish_reason="stop",
            model=self.name,
            prompt_tokens=11,
            completion_tokens=3,
            cost_usd=0.001,
            seconds=0.0,
        )


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_a_plan_of_one_search_finds_what_a_search_finds(board, mode):
    for request in ("convert an amount of dollars", "forecast of the weather", "東京の天気予報"):
        found = board.find(request, 5, strategy=Strategy(modes=(mode,), depth=1))
        hits = board.search(request, 5, mode=mode)
        assert list(found) == hits
        assert [hit.score for hit in found] == [hit.score for hit in hits]
        assert [hit.why for hit in found] == [hit.why for hit in hits]
        assert {hit.release for hit in found} == {found.release} == {board.release.id}


def test_every_step_of_a_request_gets_its_tool(board):
    found = board.find(TWO, 2, strategy=Strategy(transforms=(Split(),)))
    assert found.steps[0].text == TWO
    assert {"convert_currency", "create_issue"} <= {
        tool.rpartition("/")[2] for step in found.steps for tool in step.tools[:1]
    }
    assert len(found) == 2
    assert found.steps[1].tools[0].endswith("/convert_currency")


def test_the_default_plan_takes_a_request_apart(board):
    found = board.find(TWO, 3)
    assert found.trace.strategy == "clauses"
    assert {"convert_currency", "create_issue"} <= set(names(found))


def test_parts_of_ones_own_stand_beside_those_of_the_library(board):
    plain = board.find("open an issue", 14, strategy=Strategy(depth=14))
    turned = board.find("open an issue", 14, strategy=Strategy(depth=14, refine=(Backwards(),)))
    assert names(turned) == names(plain)[::-1]


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
    assert all(not part.ranks for part in board.find(TWO, 3).trace.parts)
    assert found.to_dict()["trace"]["parts"][0]["part"] == "split"


def test_hits_say_by_which_query_they_were_found_where_there_were_several(board):
    found = board.find(TWO, 2, strategy=Strategy(transforms=(Split(),)))
    by_name = {hit.tool.name: hit for hit in found}
    assert by_name["convert_currency"].why["vector"]["rank"] == 1
    assert by_name["convert_currency"].why["vector"]["query"] in (TWO, "Convert 30 dollars to yen")


def test_many_requests_are_one_call_of_the_encoder_and_find_what_each_finds_alone(
    board_uri, encoder
):
    class Counting:
        name, fingerprint, dimensions = encoder.name, encoder.fingerprint, encoder.dimensions
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
    assert [list(one) for one in together] == [list(one) for one in alone]
    assert list(together[-1]) == []
    for hits, request in zip(board.search_many(requests[:2], 4), requests[:2], strict=True):
        expected = board.search(request, 4)
        assert names(hits) == names(expected)
        # Multiplied together or alone, a cosine may differ in its last bit, and so in the digit to
        # which it is rounded.
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in expected], abs=2e-5
        )


def test_a_filter_holds_for_every_search_of_a_plan(board):
    found = board.find(
        TWO, 10, strategy=Strategy(transforms=(Split(),)), where={"catalog": "finance"}
    )
    assert {hit.tool.catalog for hit in found} == {"finance"}


def test_several_modes_and_indexes_are_fused(board):
    strategy = Strategy(
        modes=("vector", "text"), indexes=("full", "fine"), fuse_queries=BestScore()
    )
    found = board.find("convert an amount of dollars", 3, strategy=strategy, explain=True)
    assert names(found)[0] == "convert_currency"
    only = board.find("convert an amount of dollars", 3, strategy=strategy, index="full")
    assert only[0].score <= found[0].score


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 0}, "k is 0, expected the number of tools"),
        ({"strategy": "guess"}, "Unknown strategy 'guess'"),
        ({"strategy": {"modes": []}}, "'modes' is"),
        ({"history": [{"role": "judge", "content": "no"}]}, "Invalid message in the history"),
        ({"where": {"colour": "red"}}, "there is no field 'colour'"),
        ({"index": "missing"}, "has no index 'missing'"),
    ],
)
def test_what_cannot_be_asked_is_said(board, options, said):
    with pytest.raises(pegboard.PegboardError, match=said.replace("[", r"\[")):
        board.find("anything", **options)


def test_an_index_without_a_calibration_cannot_be_asked_for_probabilities(board):
    with pytest.raises(QueryError, match="calibrat"):
        board.find(
            "convert dollars", strategy={"refine": [{"part": "at-least", "probability": 0.5}]}
        )
    assert board.find("convert dollars").probability is None


def test_a_plan_that_fails_for_one_request_leaves_nothing_half_begun(board):
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests left

    with pytest.raises(QueryError, match="calibrat"):
        board.find_many(
            ["one", "two", "three"], strategy={"refine": [{"part": "at-least", "probability": 0.5}]}
        )
    gc.collect()  # a coroutine that nobody awaits is reported here


def test_an_llm_is_asked_through_its_completer_and_counted(board_uri, encoder):
    says = Says('{"steps": ["Convert 30 dollars to yen", "Water the plants"]}')
    with pegboard.open(board_uri, encoder=encoder, llm=says) as board:
        found = board.find(TWO, 2, strategy={"transforms": ["decompose"]})
        assert set(names(found)) == {"convert_currency", "water_plants"}
        assert (found.trace.llm_calls, found.trace.tokens, found.trace.cost_usd) == (
            1,
            14,
            pytest.approx(0.001),
        )
        assert len(says.asked) == 1
        board.find(TWO, 2, strategy={"transforms": ["decompose"]}, llm=False)
        assert len(says.asked) == 1


def test_an_llm_that_talks_nonsense_is_replaced_and_the_trace_says_so(board_uri, encoder):
    with pegboard.open(board_uri, encoder=encoder, llm=Says("I would rather not.")) as board:
        found = board.find(TWO, 4, strategy="rag-tool-fusion")
        assert {"convert_currency", "create_issue"} <= set(names(found))
        asked = [part for part in found.trace.parts if part.llm_calls]
        assert asked
        assert all(part.fallback_reason for part in asked)
        assert found.trace.llm_calls == sum(part.llm_calls for part in asked)


def test_without_an_llm_every_plan_of_the_library_answers_by_its_embedded_parts(board):
    for strategy in (
        "rag-tool-fusion",
        "plan-select",
        "plan-select-precise",
        "step-back",
        "dependencies",
        "dummy-steps",
    ):
        found = board.find(TWO, 6, strategy=strategy)
        assert {"convert_currency", "create_issue"} <= set(names(found)), strategy
        assert found.trace.llm_calls == 0
        reasons = {part.fallback_reason for part in found.trace.parts} - {None}
        assert reasons <= {"no LLM was given"}


def test_the_twin_for_event_loops_finds_the_same_and_lets_the_loop_go_on(board_uri, encoder):
    class Slow:
        name, fingerprint, dimensions = encoder.name, encoder.fingerprint, encoder.dimensions
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
        hits = await board.search("convert dollars", 1)
        return found, several, agents, hits, await board.search_many(["convert dollars"], 1)

    found, several, agents, hits, many = asyncio.run(both())
    board = pegboard.open(board_uri, encoder=encoder)
    assert list(found) == list(board.find(TWO, 3))
    assert [list(one) for one in several] == [
        list(one) for one in board.find_many([TWO, "water the plants"], 3)
    ]
    assert (agents, hits) == (
        board.search_agents("convert dollars", 1),
        board.search("convert dollars", 1),
    )
    assert many == [hits]


def test_a_plan_with_an_llm_works_where_a_loop_runs_already(board_uri, encoder):
    async def inside():
        with pegboard.open(
            board_uri, encoder=encoder, llm=Says('{"steps": ["Water the plants", "Order lunch"]}')
        ) as board:
            blocking = board.find(TWO, 2, strategy={"transforms": ["decompose"]})
            beside = AsyncBoard(board)
            awaited = await beside.find(TWO, 2, strategy={"transforms": ["decompose"]})
            return names(blocking), names(awaited)

    blocking, awaited = asyncio.run(inside())
    assert blocking == awaited == ["water_plants", "order_lunch"]


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


def test_a_completer_that_returns_something_else_is_no_reason_to_fail(board_uri, encoder):
    class Wrong:
        name = "stub/wrong"

        async def complete(self, request):
            return "a text"

    with pegboard.open(board_uri, encoder=encoder, llm=Wrong()) as board:
        found = board.find(TWO, 4, strategy={"transforms": ["decompose"]})
    assert (
        found.trace.parts[0].fallback_reason
        == "no answer: stub/wrong returned str, expected a ChatReply"
    )


def test_a_part_of_ones_own_may_wait_for_something(board):
    @dataclass(frozen=True, slots=True)
    class Waits:
        part: ClassVar[str] = "waits"

        async def refine(self, candidates, context):
            await asyncio.sleep(0.001)
            return [await asyncio.to_thread(lambda: candidates.ranking[0])]

    assert len(board.find("convert dollars", 5, strategy=Strategy(refine=(Waits(),)))) == 1


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda board: board.find(None), "the requests are .None.*expected a list of texts"),
        (
            lambda board: board.find_many("hello"),
            "the requests are 'hello', expected a list of texts",
        ),
        (lambda board: board.search_many("hello"), "expected a list of texts"),
        (lambda board: board.find("x", k="5"), "k is '5', expected the number of tools"),
        (lambda board: board.find("x", k=2.5), "k is 2.5"),
        (
            lambda board: board.find("x", where="finance"),
            "The filter is 'finance'; expected values by field",
        ),
        (lambda board: board.find("x", strategy=5), "Invalid strategy: 5. Expected a Strategy"),
        (lambda board: board.find("x", history=["a"]), "Invalid message in the history: 'a'"),
        (
            lambda board: board.find("x", history=None),
            "the history is None, expected a list of messages",
        ),
        (lambda board: board.search_agents(None), "expected a text, and a list of texts"),
        (lambda board: Strategy(modes=("foo",)), "'modes' is"),
        (lambda board: Strategy(depth=0), "'depth' is 0"),
        (
            lambda board: Strategy.from_dict({"transforms": [{"part": "expand", "prompts": 5}]}),
            "is 5, expected a text",
        ),
        (
            lambda board: Strategy.from_dict({"refine": [{"part": "dependencies", "depth": 2.5}]}),
            "expected a whole number",
        ),
        (
            lambda board: Strategy.from_dict({"refine": [{"part": "at-least", "score": "high"}]}),
            "expected a number",
        ),
        (
            lambda board: Strategy.from_dict(
                {"refine": [{"part": "at-least", "probability": True}]}
            ),
            "is True, expected",
        ),
    ],
)
def test_wrong_arguments_are_told_apart_from_bugs(board, ask, said):
    with pytest.raises(QueryError, match=said):
        ask(board)


def test_options_for_an_llm_that_are_unknown_are_refused(board_uri, encoder):
    with pytest.raises(
        ConfigurationError, match=r"llm_options has no api_bass\. Expected: api_base"
    ):
        pegboard.open(board_uri, encoder=encoder, llm=Says(""), llm_options={"api_bass": "x"})


def test_agents_are_found_by_what_they_say_and_by_their_tools(board):
    (best,) = board.search_agents("convert an amount of dollars to another currency", 1)
    assert best.agent.name == "finance"
    assert best.release == board.release.id
    assert best.why["rank"] == 1
    hits = board.search("dollars", 20, where={"agent": best.agent.id})
    assert {hit.agent.id for hit in hits} == {best.agent.id}
    with pytest.raises(QueryError, match="k is 0"):
        board.search_agents("anything", 0)
    assert board.search_agents(" ") == []


def test_the_agents_of_several_steps_each_come_first(board):
    found = board.search_agents(TWO, 2, steps=TWO.split(", then "))
    assert {one.agent.name for one in found} == {
        "finance",
        board.search("open an issue", 1)[0].agent.name,
    }
    assert found[0].why["step"] in TWO.split(", then ")
