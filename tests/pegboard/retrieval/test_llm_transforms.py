"""What transforms make of the replies of an LLM."""

import pytest

from pegboard.llm import Message
from pegboard.retrieval.llm import transforms
from pegboard.retrieval.requests import Query
from tests.pegboard.retrieval.stubs import context, prompt_text, shown_names, transformed

REQUEST = "what are the tides at Whitby, and then send Anna an email about it"
ASKED = [Query(REQUEST)]
TWO = [Query("tides at Whitby", 1, "step"), Query("email to Anna", 2, "step")]
STEPS = {"steps": ["Get the tides at Whitby", "Send an email to Anna"]}


def test_a_request_is_rewritten_with_the_conversation_in_view():
    history = [Message("user", "I am sailing to Whitby"), Message("assistant", "Fair winds!")]
    scripted = context(
        "and teh tides ther?", {"query": "Get the tides at\nWhitby "}, history=history
    )

    queries = transformed(transforms.Rewrite(), [Query("and teh tides ther?")], scripted)

    assert queries == [Query("Get the tides at Whitby", 0, "rewrite")]
    assert '"I am sailing to Whitby"' in prompt_text(scripted)
    assert '"and teh tides ther?"' in prompt_text(scripted)


@pytest.mark.parametrize("part", [transforms.Decompose, transforms.ContextDecompose])
def test_a_request_becomes_steps_unless_it_is_one_or_in_steps_already(part):
    steps = [Query("Get the tides at Whitby", 1, "step"), Query("Send an email to Anna", 2, "step")]
    single = context(REQUEST, {"steps": ["Get the tides"]})
    done = context(REQUEST, STEPS)

    assert transformed(part(), ASKED, context(REQUEST, STEPS)) == steps
    assert transformed(part(limit=1), ASKED, context(REQUEST, STEPS)) == ASKED
    assert transformed(part(), ASKED, single) == ASKED
    assert (single.trace.note, single.trace.fallback_reason) == ("one step", None)
    assert transformed(part(), TWO, done) == TWO
    assert done.trace.llm_calls == 0


def test_one_query_of_an_agent_takes_the_place_of_the_request_and_several_are_steps():
    one = context(REQUEST, {"queries": ["get tide times"]})
    two = context(REQUEST, {"queries": ["get tide times", "send a message"]})
    done = context(REQUEST, {"queries": ["get tide times"]})

    assert transformed(transforms.AgentQuery(), ASKED, one) == [
        Query("get tide times", 0, "agent-query")
    ]
    assert transformed(transforms.AgentQuery(), ASKED, two) == [
        Query("get tide times", 1, "agent-query"),
        Query("send a message", 2, "agent-query"),
    ]
    assert transformed(transforms.AgentQuery(), TWO, done) == TWO
    assert done.trace.llm_calls == 0
    assert one.searched == []


def test_the_request_is_searched_beside_the_query_of_an_agent_by_its_weight():
    part = transforms.AgentQuery(background=0.5)
    one = context(REQUEST, {"queries": ["get tide times"]})
    two = context(REQUEST, {"queries": ["get tide times", "send a message"]})

    assert transformed(part, ASKED, one) == [
        Query("get tide times", 0, "agent-query"),
        Query(REQUEST, 0, "request", 0.5),
    ]
    assert [(query.text, query.step, query.weight) for query in transformed(part, ASKED, two)] == [
        ("get tide times", 1, 1.0),
        (REQUEST, 1, 0.5),
        ("send a message", 2, 1.0),
        (REQUEST, 2, 0.5),
    ]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("english", "Write in English, whatever the language of the request."),
        ("german", "Write in German, whatever the language of the request."),
        ("none", "Write in the language of the request."),
    ],
)
def test_the_query_of_an_agent_is_in_the_language_of_the_index(language, sentence):
    scripted = context(REQUEST, {"queries": ["get tide times"]}, language=language)

    transformed(transforms.AgentQuery(limit=4), ASKED, scripted)

    system = scripted.completer.requests[0].messages[0].content
    assert sentence in system
    assert "at most 4." in system
    assert shown_names(scripted.completer.requests[0]) == []


def test_a_decomposition_in_context_sees_the_tools_of_a_first_search():
    scripted = context("tide at a harbour", STEPS)

    transformed(transforms.ContextDecompose(m=2), [Query("tide at a harbour")], scripted)

    assert scripted.searched == ["tide at a harbour"]
    assert shown_names(scripted.completer.requests[0]) == ["list_tides", "book_berth"]
    assert "High and low tide at a harbour." in prompt_text(scripted)


def test_every_step_is_varied_in_one_round():
    def by(request):
        which = "tides" if "tides" in request.messages[-1].content else "email"
        return {"queries": [f"{which} {number}" for number in range(9)]}

    scripted = context(REQUEST, by=by)

    queries = transformed(transforms.Expand(variations=2), TWO, scripted)

    assert queries == [
        TWO[0], Query("tides 0", 1, "variation"), Query("tides 1", 1, "variation"),
        TWO[1], Query("email 0", 2, "variation"), Query("email 1", 2, "variation"),
    ]  # fmt: skip
    assert scripted.trace.llm_calls == 2
    assert "Write 2 variations" in prompt_text(scripted)


def test_every_step_gets_a_more_general_query():
    scripted = context(REQUEST, by=lambda request: {"query": "Look something up"})

    queries = transformed(transforms.StepBackPrompting(), TWO, scripted)

    general = [Query("Look something up", step, "step-back") for step in (1, 2)]
    assert queries == [TWO[0], general[0], TWO[1], general[1]]


def test_a_step_without_an_answer_is_searched_alone():
    def by(request):
        return "no idea" if "email" in request.messages[-1].content else {"queries": ["tide table"]}

    scripted = context(REQUEST, by=by)

    queries = transformed(transforms.Expand(), TWO, scripted)

    assert queries == [TWO[0], Query("tide table", 1, "variation"), TWO[1]]
    assert scripted.trace.fallback_reason == "for 1 of 2: the reply holds no JSON object"


def test_a_reply_that_repeats_an_example_of_the_prompt_is_unusable():
    copied = ["Send mail", "Find a free berth in Calais on Friday"]
    scripted = context(REQUEST, {"steps": copied})

    assert transformed(transforms.Decompose(), ASKED, scripted)
    assert scripted.trace.fallback_reason == "the reply repeats an example of its prompt"
