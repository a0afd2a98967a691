"""What all parts that ask an LLM do without one, and with a reply that cannot be used."""

import pytest

from pegboard.retrieval.llm.refinements import (
    Grade,
    ListwiseRerank,
    Look,
    PostSelection,
    Reflect,
    StepLoop,
)
from pegboard.retrieval.llm.transforms import (
    AgentQuery,
    ContextDecompose,
    Decompose,
    Expand,
    Rewrite,
    StepBackPrompting,
)
from pegboard.retrieval.requests import Candidates, Query
from pegboard.retrieval.rules.clauses import Clauses
from tests.pegboard.retrieval.stubs import candidates, context, offered_names, refined, transformed

REQUEST = "tides at Whitby, and 200 pounds in euros"
STEPS = {1: ["sea/list_tides", "sea/find_berth"], 2: ["bank/list_rates", "bank/convert_currency"]}
UNION = ["sea/list_tides", "bank/list_rates", "sea/find_berth", "bank/convert_currency"]
TWO_STEPS = candidates(STEPS, {1: "tides at Whitby", 2: "200 pounds in euros"})
FALLBACKS = {AgentQuery(): Clauses(6), Decompose(): Clauses(6), ContextDecompose(): Clauses(8)}
TRANSFORMS = [Rewrite(), *FALLBACKS, Expand(), StepBackPrompting()]
SELECTING = [ListwiseRerank(), Look(), Grade(), PostSelection(), StepLoop()]
REFINEMENTS = [*SELECTING, Reflect()]
PARTS = [*TRANSFORMS, *REFINEMENTS]
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
]


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


@for_each(PARTS)
def test_every_part_shows_the_domain_and_the_examples_of_the_release(part):
    shots = [
        {"query": "a berth for the night", "tools": ["find_berth"]},
        {"query": f"{REQUEST}!", "tools": ["list_rates"]},
    ]
    manifest = {"context": "Harbours of the North Sea.", "few_shots": shots}
    scripted = context(REQUEST, by=lambda request: {}, manifest=manifest)

    result(part, scripted)

    systems = [request.messages[0].content for request in scripted.completer.requests]
    assert systems
    for system in systems:
        assert "Harbours of the North Sea." in system
        assert '[{"request": "a berth for the night", "tools": ["find_berth"]}]' in system


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


@for_each(SELECTING)
def test_a_reply_of_tools_that_were_not_offered_changes_nothing(part):
    scripted = context(REQUEST, by=lambda _: {field: ["drop_tables"] for field in FIELDS})

    assert result(part, scripted) == UNION
    assert scripted.trace.fallback_reason == "the reply names only tools that it was not shown"
