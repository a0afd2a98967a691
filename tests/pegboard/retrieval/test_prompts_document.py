"""docs/reference/prompts.md has every prompt of a strategy as it is sent. After a change

    python -m tests.pegboard.retrieval.test_prompts_document

writes the page again.
"""

import asyncio
import json
from pathlib import Path

from pegboard.llm import Message
from pegboard.records import Enrichment, Tool
from pegboard.retrieval.llm.caller import LlmCaller, completer_of
from pegboard.retrieval.llm.questions import FORMATS
from pegboard.retrieval.llm.refinements import Grade, ListwiseRerank, PostSelection, Reflect
from pegboard.retrieval.llm.step_loop import StepLoop
from pegboard.retrieval.llm.transforms import (
    ContextDecompose,
    Decompose,
    Expand,
    Rewrite,
    StepBackPrompting,
)
from pegboard.retrieval.parts import Candidates, Query, Request
from tests.openai_server import LITELLM_WARNINGS, chat, serve_openai
from tests.pegboard.retrieval.stubs import AGENTS, TOOLS, StubContext, ranking

pytestmark = LITELLM_WARNINGS

PAGE = Path(__file__).parents[3] / "docs/reference/prompts.md"
INTRODUCTION = """\
# Prompts of strategies

What every part of a strategy that asks an LLM sends, with the \
[built-in prompts](strategies.md#refinements), as a server on loopback \
received it. A test makes this page, so it is what the current version \
sends. The requests are those of one conversation: \
"I sail to Whitby on Friday." and then "and the tides there? also 90 dollars in euros". \
The replies that lead from one to the next were scripted.

The sections `system` and `user` are the messages, `schema` is the JSON Schema of the reply. \
All are sent with temperature 0 and at most 600 tokens for the reply (`reply_tokens`).
"""
REQUEST = "and the tides there? also 90 dollars in euros"
REWRITTEN = "Get the tides at Whitby on Friday and convert 90 dollars to euros"
STEPS = {1: "Get the tides at Whitby on Friday", 2: "Convert 90 dollars to euros"}
HISTORY = (
    Message("user", "I sail to Whitby on Friday."),
    Message("assistant", "Shall I look for a berth?"),
)
REPLIES = {
    "rewrite": {"query": REWRITTEN},
    "decompose": {"steps": [*STEPS.values()]},
    "context_decompose": {"steps": [*STEPS.values()]},
    "expand": {"queries": ["Tide table of a harbour"]},
    "step_back": {"query": "Look up the tides of a place"},
    "rerank": {"ranking": ["list_tides"]},
    "rerank_steps": {"ranking": ["list_tides", "convert_currency"]},
    "select": {"tools": []},
    "post_select": {"tools": ["list_tides"]},
    "grade": {"relevant": ["list_tides"]},
    "reflect": {"missing": []},
}
SEA, BANK = ["sea/list_tides", "sea/find_berth"], ["bank/convert_currency", "bank/list_rates"]


def schema(*required, **optional):
    properties = {name: {"type": "string"} for name in required} | optional
    return {"type": "object", "properties": properties, "required": list(required)}


CATALOG = TOOLS | {
    SEA[0]: Tool(
        SEA[0],
        "kit",
        "sea",
        "list_tides",
        "",
        schema("harbour", date={"type": "string"}),
        enrichment=Enrichment(
            description="Lists high and low tide at a harbour, with times and heights.",
            avoid="Not for the times at which mail is sorted: use list_tides of the post instead.",
        ),
    ),
    BANK[0]: Tool(
        BANK[0],
        "kit",
        "bank",
        "convert_currency",
        TOOLS[BANK[0]].description,
        schema("from", "to", amount={"type": "number"}),
    ),
}
ONE = Candidates(
    {1: ranking(SEA)},
    ranking(SEA),
    {1: STEPS[1]},
    {1: {STEPS[1]: ranking(SEA), "Tide table of a harbour": ranking(SEA[:1])}},
)
TWO = Candidates(
    {1: ranking(SEA), 2: ranking(BANK)}, ranking([SEA[0], BANK[0], SEA[1], BANK[1]]), STEPS
)
QUERIES = [Query(REQUEST)]
FOUND = [Query(text, step, "step") for step, text in STEPS.items()]
PARTS = [
    (Rewrite(), QUERIES, "rewrites the request"),
    (Decompose(), QUERIES, "writes the steps"),
    (ContextDecompose(m=3), QUERIES, "writes the steps, with the best tools in view"),
    (Expand(), FOUND[:1], "writes variations of a step"),
    (StepBackPrompting(), FOUND[:1], "writes a more general query"),
    (ListwiseRerank(), ONE, "orders the tools of a step, with what each query found in view"),
    (ListwiseRerank(), TWO, "orders the tools over several steps"),
    (Grade(), TWO, "drops irrelevant tools"),
    (Reflect(), TWO, "names what is missing"),
    (StepLoop(rounds=3, k=1), ONE, "selects for a step; searches again; selects"),
    (PostSelection(), TWO, "selects from the union"),
]


def answered(handler):
    name = handler.body["response_format"]["json_schema"]["name"]
    handler.answer(*chat(json.dumps(REPLIES[name])))


def sent(part, subject, server):
    """The bodies of the requests of one part, in their order."""
    server.bodies.clear()
    server.script = [answered] * 9
    llm = completer_of("hosted_vllm/harbour", api_base=server.url, price=(1, 1))
    rewritten = not isinstance(part, (Rewrite, Decompose, ContextDecompose))
    request = Request(REWRITTEN if rewritten else REQUEST, 4, () if rewritten else HISTORY)
    caller = LlmCaller(llm, timeout=600, concurrency=1)
    context = StubContext(request, None, caller, CATALOG, AGENTS)
    work = part.refine if isinstance(subject, Candidates) else part.transform
    asyncio.run(work(subject, context))
    caller.close()
    assert context.trace.fallback_reason is None, context.trace
    return list(server.bodies)


def written(body):
    """One request as the page shows it."""
    parts = [(message["role"], message["content"]) for message in body["messages"]]
    values = body["response_format"]["json_schema"]["schema"]["properties"]
    parts.append(("schema", json.dumps(values, ensure_ascii=False)))
    return "\n".join(f"**{name}**\n\n````text\n{text}\n````\n" for name, text in parts)


def page(server):
    """The page, and the names of the prompts on it."""
    text, names = INTRODUCTION, set()
    for part, subject, what in PARTS:
        bodies = sent(part, subject, server)
        text += f"\n## {part.part}: {what}\n"
        for number, body in enumerate(bodies, start=1):
            if len(bodies) > 1:
                text += f"\n### {part.part}, request {number} of {len(bodies)}\n"
            text += f"\n{written(body)}"
            names.add(body["response_format"]["json_schema"]["name"].replace("_", "-"))
    return text, names


def test_the_page_of_prompts_has_every_prompt_as_it_is_sent():
    with serve_openai() as server:
        text, names = page(server)

    assert names == FORMATS.keys()
    assert PAGE.read_text("utf-8") == text, "write the page again, as this module says"


if __name__ == "__main__":
    with serve_openai() as server:
        PAGE.write_text(page(server)[0], "utf-8")
