"""What all parts that ask an LLM have in common: what they do without one, with a good reply, and
with every failure, scripted, through LiteLLM, and with a real model.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.retrieval.llm.caller import completer_of
from pegboard.retrieval.llm.refinements import Grade, ListwiseRerank, PostSelection, Reflect
from pegboard.retrieval.llm.step_loop import StepLoop
from pegboard.retrieval.llm.transforms import (
    ContextDecompose,
    Decompose,
    Expand,
    Rewrite,
    StepBackPrompting,
)
from pegboard.retrieval.parts import Candidates, Query
from pegboard.retrieval.rules.clauses import Clauses
from tests.children import start_child
from tests.pegboard.retrieval.stubs import (
    TOOLS,
    candidates,
    context,
    offered_names,
    refined,
    transformed,
)

pytestmark = [
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # pydantic says so when the OpenAI client rewrites a malformed reply.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
    # LiteLLM drops the coroutine of a call whose timeout passes before it begins.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <coroutine object BaseLLMHTTPHandler"
        ":pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.filterwarnings(
        "ignore:coroutine 'BaseLLMHTTPHandler.async_completion' was never awaited:RuntimeWarning"
    ),
]

SERVER = Path(__file__).parents[2] / "scripted_llm.py"
REQUEST = "tides at Whitby, and 200 pounds in euros"
STEPS = {1: ["sea/list_tides", "sea/find_berth"], 2: ["bank/list_rates", "bank/convert_currency"]}
UNION = ["sea/list_tides", "bank/list_rates", "sea/find_berth", "bank/convert_currency"]
TWO_STEPS = candidates(STEPS, {1: "tides at Whitby", 2: "200 pounds in euros"})
DECOMPOSED = [(1, "the tides of a harbour"), (2, "where a parcel is")]
FALLBACKS = {Decompose(): Clauses(6), ContextDecompose(): Clauses(8)}
TRANSFORMS = [Rewrite(), *FALLBACKS, Expand(), StepBackPrompting()]
EXPECTED = {  # the first tools or queries, with the replies of tests/scripted_llm.py
    Rewrite(): [(0, "the tides of a harbour")],
    Decompose(): DECOMPOSED,
    ContextDecompose(): DECOMPOSED,
    Expand(): [(0, REQUEST), (0, "the tides of a harbour"), (0, "where a parcel is")],
    StepBackPrompting(): [(0, REQUEST), (0, "the tides of a harbour")],
    ListwiseRerank(): [UNION[3], UNION[2], UNION[0], UNION[1]],
    Grade(): [UNION[0], UNION[2], UNION[3]],
    PostSelection(): UNION[2:],
    StepLoop(): [UNION[2], UNION[3], UNION[0], UNION[1]],
    Reflect(add=1): [*UNION[:3], "post/list_tides", "post/track_parcel"],
}
PARTS = [*EXPECTED]
REFINEMENTS = [part for part in PARTS if part not in TRANSFORMS]
SELECTING = REFINEMENTS[:4]
FIELDS = ("query", "steps", "queries", "ranking", "relevant", "tools", "missing")
# Replies and the first words of the reason.
UNUSABLE = [
    ('{"answer": ["list_tides"]}', "the reply has no '"),
    (dict.fromkeys(FIELDS, 1), "the reply has no "),
    (RuntimeError("broken"), "no answer: RuntimeError: broken"),
]
UNUSABLE_TEXTS = [
    ({"query": " ", "steps": [], "queries": []}, "the reply "),
    ({"query": "...", "steps": ["..."], "queries": ["- -"]}, "the reply "),
    (
        {field: ["Sorry, I can't help with that."] for field in FIELDS}
        | {"query": "I cannot answer that."},
        "the reply is a refusal",
    ),
]
OUTCOMES = {
    "429": "too many requests: ",
    "500": "no answer: ",
    "503": "no answer: ",
    "529": "no answer: ",
    "hang": "timed out after 0.1 s",
    "cut": "no answer: ",
    "not-json": "the reply holds no JSON object",
    "refusal": "the reply is a refusal",
    "unfinished": "cut off after ",
    "filtered": "refused: the provider withheld the reply",
    "empty": "the reply was empty",
}
PAID = {"not-json", "refusal", "unfinished", "filtered", "empty"}


def name_of(part):
    return getattr(part, "part", None)


def for_each(parts):
    return pytest.mark.parametrize("part", parts, ids=name_of)


def result(part, context):
    """The tools of a refinement, the queries of a transform."""
    if part in REFINEMENTS:
        return refined(part, TWO_STEPS, context)
    return [(query.step, query.text) for query in transformed(part, [Query(REQUEST)], context)]


def fallback(part):
    if part in REFINEMENTS:
        return UNION
    return result(FALLBACKS[part], context(REQUEST)) if part in FALLBACKS else [(0, REQUEST)]


@for_each(PARTS)
def test_without_an_llm_the_fallback_answers_and_the_trace_says_so(part):
    plain = context(REQUEST)

    assert result(part, plain) == fallback(part)
    assert (plain.trace.fallback_reason, plain.trace.llm_calls) == ("no LLM was given", 0)
    assert plain.searched == []


@pytest.mark.parametrize(
    ("part", "reply", "reason"),
    [(part, *case) for part in PARTS for case in UNUSABLE]
    + [(part, *case) for part in TRANSFORMS for case in UNUSABLE_TEXTS],
    ids=name_of,
)
def test_with_an_unusable_reply_the_fallback_answers_and_the_trace_says_why(part, reply, reason):
    scripted = context(REQUEST, by=lambda request: reply)

    assert result(part, scripted) == fallback(part)
    assert scripted.trace.fallback_reason.startswith(reason)
    assert scripted.trace.llm_calls > 0


@for_each(REFINEMENTS)
def test_nothing_found_stays_nothing(part):
    scripted = context(REQUEST, by=lambda request: {"missing": []})

    assert refined(part, Candidates({}, [], {}), scripted) == []


@for_each(REFINEMENTS)
def test_tools_that_are_not_in_the_release_stay_and_are_not_offered(part):
    scripted = context(REQUEST, by=lambda request: {"missing": []})
    ids = ["sea/gone", "sea/removed"]

    assert refined(part, candidates({1: ids}), scripted) == ids
    # No server takes an enum of nothing.
    assert [] not in [offered_names(request) for request in scripted.completer.requests]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of the scripted server; its process ends with the tests of this module."""
    log = tmp_path_factory.mktemp("scripted") / "log"
    process = start_child(
        [sys.executable, SERVER, log, "--hang", "3600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    process.stdin.close()
    process.wait()
    process.stdout.close()


@pytest.fixture
def real_llm(local_llm):
    """135M parameters on loopback, with short replies: a list has no end by itself."""

    class Short:
        def __init__(self, completer):
            self.name, self.complete_whole = completer.name, completer.complete
            self.aclose = completer.aclose

        async def complete(self, request):
            return await self.complete_whole(replace(request, max_tokens=120))

    return Short(completer_of("hosted_vllm/smollm2", api_base=local_llm, timeout=200, price=(1, 1)))


def hosted(server, outcome):
    """A context whose LLM, behind LiteLLM, always meets one outcome."""
    timeout = 0.1 if outcome == "hang" else 600
    llm = completer_of(
        f"hosted_vllm/always-{outcome}", api_base=server, timeout=timeout, price=(1, 2)
    )
    return context(REQUEST, llm=llm, timeout=timeout)


@for_each(PARTS)
def test_a_good_reply_is_used_and_accounted_for(server, part):
    good = hosted(server, "good")

    assert result(part, good)[: len(EXPECTED[part])] == EXPECTED[part]
    trace = good.trace
    assert trace.fallback_reason is None
    assert trace.llm_calls == (2 if isinstance(part, StepLoop) else 1)
    assert trace.prompt_tokens > 100
    assert trace.completion_tokens > 0
    assert trace.cost_usd == pytest.approx(
        (trace.prompt_tokens + 2 * trace.completion_tokens) / 1e6
    )


@pytest.mark.parametrize(
    ("part", "outcome"),
    [(part, "not-json") for part in PARTS]
    + [(part, outcome) for part in (Decompose(), Grade()) for outcome in OUTCOMES],
    ids=name_of,
)
def test_whatever_goes_wrong_the_fallback_answers_and_the_trace_says_why(server, part, outcome):
    failing = hosted(server, outcome)

    assert result(part, failing) == fallback(part)
    assert failing.trace.fallback_reason.startswith(OUTCOMES[outcome]), failing.trace
    assert failing.trace.llm_calls >= 1
    assert (failing.trace.prompt_tokens > 0) == (outcome in PAID)


@for_each(SELECTING)
def test_a_reply_of_tools_that_were_not_offered_changes_nothing(server, part):
    wrong = hosted(server, "wrong-tool")

    assert result(part, wrong) == UNION
    assert wrong.trace.fallback_reason == "the reply names only tools that it was not shown"


def test_a_missing_key_is_reported_and_nothing_is_asked(server, monkeypatch):
    monkeypatch.delenv("HARBOUR_KEY", raising=False)
    llm = completer_of("openai/always-good", api_base=server, api_key_env="HARBOUR_KEY")
    keyless = context(REQUEST, llm=llm)

    assert result(Rewrite(), keyless) == fallback(Rewrite())
    assert keyless.trace.fallback_reason.startswith("no key: ")
    assert "HARBOUR_KEY" in keyless.trace.fallback_reason


@pytest.mark.slow
@for_each(PARTS)
def test_a_real_reply_is_used_or_the_trace_says_why_not(real_llm, part):
    real = context(
        "list the tides of the harbour, and convert 200 pounds to euros",
        llm=real_llm,
        timeout=200.0,
    )

    found = result(part, real)

    assert 1 <= len(found) <= 10
    if part in REFINEMENTS:
        assert set(found) <= TOOLS.keys()
    else:
        assert all(text.strip() and len(text) <= 300 for _, text in found)
    trace = real.trace
    assert trace.llm_calls >= 1
    assert trace.prompt_tokens > 150
    assert trace.completion_tokens > 0
    assert trace.cost_usd == pytest.approx((trace.prompt_tokens + trace.completion_tokens) / 1e6)
    assert found != [(0, REQUEST)] or trace.fallback_reason or trace.note
