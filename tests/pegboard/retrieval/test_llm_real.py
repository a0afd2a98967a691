"""Every part that asks an LLM, with a real one: 135M parameters on loopback. Its replies are poor;
each is used, or it is said why not.
"""

from dataclasses import replace

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

pytestmark = [
    pytest.mark.slow,
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
]

REQUEST = "list the tides of the harbour, and convert 200 pounds to euros"
STEPS = {1: ["sea/find_berth", "sea/list_tides"], 2: ["bank/list_rates", "bank/convert_currency"]}
TEXTS = {1: "list the tides of the harbour", 2: "convert 200 pounds to euros"}
TRANSFORMS = [Rewrite(), Decompose(), ContextDecompose(m=3), Expand(), StepBackPrompting()]
REFINEMENTS = [ListwiseRerank(), Grade(), PostSelection(), StepLoop(rounds=2), Reflect()]


class Short:
    """The model, kept short: where a list has no end by itself, this one writes on to the last
    token.
    """

    def __init__(self, completer):
        self.name, self.completer = completer.name, completer

    async def complete(self, request):
        return await self.completer.complete(replace(request, max_tokens=120))

    async def aclose(self):
        await self.completer.aclose()


@pytest.fixture
def llm(local_llm):
    return Short(completer_of("hosted_vllm/smollm2", api_base=local_llm, timeout=200, price=(1, 1)))


@pytest.mark.parametrize("part", [*TRANSFORMS, *REFINEMENTS], ids=lambda part: part.part)
def test_a_real_reply_is_used_or_it_is_said_why_not(desk, llm, part):
    context = desk.context(REQUEST, llm=llm, timeout=200.0)

    if hasattr(part, "transform"):
        queries = desk.transform(part, [Query(REQUEST)], context)
        assert 1 <= len(queries) <= 10
        assert all(query.text.strip() and len(query.text) <= 300 for query in queries)
        used = queries != [Query(REQUEST)]
    else:
        found = desk.refine(part, desk.candidates(STEPS, TEXTS), context)
        assert found
        used = {f"kit/{one}" for one in found} <= desk.tools.keys()

    trace = context.trace
    assert trace.llm_calls >= 1
    assert trace.prompt_tokens > 150
    assert trace.completion_tokens > 0
    assert trace.cost_usd == pytest.approx((trace.prompt_tokens + trace.completion_tokens) / 1e6)
    assert used or trace.fallback_reason or trace.note
