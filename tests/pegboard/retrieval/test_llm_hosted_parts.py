"""Every part that asks an LLM, through LiteLLM, against a server that answers well, badly, late or
not at all.
"""

import asyncio
import subprocess
import sys
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
from pegboard.retrieval.parts import Query
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.retrieval.rules.rewording import Condense, StepBack, Variations
from tests.children import start_child

pytestmark = [
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # pydantic says so when the OpenAI client rewrites a malformed reply.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

SERVER = Path(__file__).parents[2] / "scripted_llm.py"
REQUEST = "tides at Whitby, and 200 pounds in euros"
STEPS = {1: ["sea/list_tides", "sea/find_berth"], 2: ["bank/list_rates", "bank/convert_currency"]}
UNION = ["sea/list_tides", "bank/list_rates", "sea/find_berth", "bank/convert_currency"]
TRANSFORMS = [
    (Rewrite(), Condense(), [(0, "the tides of a harbour")]),
    (Decompose(), Clauses(6), [(1, "the tides of a harbour"), (2, "where a parcel is")]),
    (ContextDecompose(), Clauses(8), [(1, "the tides of a harbour"), (2, "where a parcel is")]),
    (
        Expand(),
        Variations(),
        [(0, REQUEST), (0, "the tides of a harbour"), (0, "where a parcel is")],
    ),
    (StepBackPrompting(), StepBack(), [(0, REQUEST), (0, "the tides of a harbour")]),
]
REFINEMENTS = [
    (
        ListwiseRerank(),
        ["bank/convert_currency", "sea/find_berth", "sea/list_tides", "bank/list_rates"],
    ),
    (Grade(), ["sea/list_tides", "sea/find_berth", "bank/convert_currency"]),
    (PostSelection(), ["sea/find_berth", "bank/convert_currency"]),
    (StepLoop(), ["sea/find_berth", "bank/convert_currency", "sea/list_tides", "bank/list_rates"]),
    (Reflect(add=1), [*UNION[:3], "post/list_tides", "post/track_parcel"]),
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
PARTS = [part for part, *_ in TRANSFORMS] + [part for part, _ in REFINEMENTS]


def named(part):
    return getattr(part, "part", None)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of the scripted server; its process ends with the tests of this module."""
    log = tmp_path_factory.mktemp("scripted") / "log"
    process = start_child(
        [sys.executable, str(SERVER), str(log), "--hang", "3600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    process.stdin.close()
    process.wait()
    process.stdout.close()


@pytest.fixture
def context(desk, server):
    """Makes a context whose LLM always meets one outcome."""

    def make(outcome, **options):
        timeout = 0.1 if outcome == "hang" else 600
        llm = completer_of(
            f"hosted_vllm/always-{outcome}", api_base=server, timeout=timeout, price=(1, 2)
        )
        return desk.context(REQUEST, llm=llm, timeout=timeout, **options)

    return make


def worked(part, desk, context):
    """What comes of a part, as texts, and its trace."""
    if hasattr(part, "transform"):
        queries = desk.transform(part, [Query(REQUEST)], context)
        return [(query.step, query.text) for query in queries], context.trace
    return desk.refine(
        part, desk.candidates(STEPS, {1: "tides at Whitby", 2: "pounds in euros"}), context
    ), context.trace


def without(part, desk):
    """What comes of it without an LLM."""
    for transform, counterpart, _ in TRANSFORMS:
        if transform is part:
            queries = asyncio.run(counterpart.transform([Query(REQUEST)], desk.context(REQUEST)))
            return [(query.step, query.text) for query in queries]
    return UNION


@pytest.mark.parametrize(
    ("part", "expected"), [(part, want) for part, *_, want in TRANSFORMS] + REFINEMENTS, ids=named
)
def test_a_good_reply_is_used_and_accounted_for(desk, context, part, expected):
    came, trace = worked(part, desk, context("good", k=5))

    assert came[: len(expected)] == expected
    assert trace.fallback_reason is None
    assert trace.llm_calls == (2 if isinstance(part, StepLoop) else 1)
    assert trace.prompt_tokens > 100
    assert trace.completion_tokens > 0
    assert trace.cost_usd == pytest.approx(
        (trace.prompt_tokens + 2 * trace.completion_tokens) / 1e6
    )


@pytest.mark.parametrize(("outcome", "why"), OUTCOMES.items())
@pytest.mark.parametrize("part", PARTS, ids=named)
def test_whatever_goes_wrong_the_counterpart_answers_and_the_trace_says_why(
    desk, context, part, outcome, why
):
    came, trace = worked(part, desk, context(outcome))

    assert came == without(part, desk)
    assert trace.fallback_reason.startswith(why)
    assert trace.llm_calls >= 1
    paid = outcome in ("not-json", "refusal", "unfinished", "filtered", "empty")
    assert (trace.prompt_tokens > 0) == paid


@pytest.mark.parametrize(
    "part", [ListwiseRerank(), Grade(), PostSelection(), StepLoop()], ids=named
)
def test_a_tool_that_was_not_offered_is_not_taken(desk, context, part):
    came, trace = worked(part, desk, context("wrong-tool"))

    assert came == UNION
    assert trace.fallback_reason == "the reply names only tools that it was not shown"


def test_a_missing_key_is_said_and_nothing_is_asked(desk, server, monkeypatch):
    monkeypatch.delenv("HARBOUR_KEY", raising=False)
    llm = completer_of("openai/always-good", api_base=server, api_key_env="HARBOUR_KEY")

    came, trace = worked(Rewrite(), desk, desk.context(REQUEST, llm=llm))

    assert came == without(PARTS[0], desk)
    assert trace.fallback_reason.startswith("no key: ")
    assert "HARBOUR_KEY" in trace.fallback_reason
