"""Which tools an agent is given for a golden query, and how it is asked."""

from dataclasses import replace

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_evaluation import AgentSpec, cases_of, given_tools, prepare
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher

LUNCH = GoldenQuery(
    "order soup and list today's rates",
    tools=("order_lunch",),
    calls=({"tool": "order_lunch", "arguments": {"dish": "soup"}}, {"tool": "list_rates"}),
)
TIDES = GoldenQuery(
    "when is high tide?",
    tools=("getTides_v2",),
    history=(
        {"role": "user", "content": "I am in Faro"},
        {"role": "assistant", "content": "How nice."},
    ),
    calls=({"tool": "getTides_v2", "arguments": {"harbour": "Faro"}},),
)
WITHOUT_CALLS = GoldenQuery("?", ("list_rates",))
WITHOUT_TOOL = GoldenQuery("fly", ("fly",), calls=({"tool": "fly"},))


@pytest.fixture(scope="module")
def searcher(board_uri, encoder):
    return Searcher.open(board_uri, encoder=encoder)


@pytest.fixture(scope="module")
def lunch(searcher):
    [case], _ = cases_of(searcher, [LUNCH])
    return case


@pytest.fixture(scope="module")
def tools(searcher):
    return sorted(searcher.names.catalogs)


def test_a_case_needs_all_tools_of_its_query_and_calls_and_others_are_left_out(searcher):
    [case], skipped = cases_of(searcher, [LUNCH, WITHOUT_CALLS, WITHOUT_TOOL])

    assert case.query.tools == ("order_lunch", "list_rates")
    assert [tool.rpartition("/")[2] for tool in case.needed] == ["order_lunch", "list_rates"]
    assert [len(call.arguments) for call in case.calls] == [1, 0]
    assert skipped == [
        "1 of 3 golden queries: no right calls",
        "1 of 3 golden queries: the release lacks tools that they need: fly",
    ]
    reasons = r"(?s)1 of 2 golden queries: no right calls.*lacks tools.*fly.*\"calls\""
    with pytest.raises(ConfigurationError, match=reasons):
        prepare(searcher, [WITHOUT_CALLS, WITHOUT_TOOL], AgentSpec())


def test_sets_of_tools_are_nested_and_the_same_in_every_run(lunch, tools):
    given = given_tools(lunch, (1, 2, 5, 14), tools)

    assert {size: len(ids) for size, ids in given.items()} == {1: 2, 2: 2, 5: 5, 14: 14}
    assert set(lunch.needed) == set(given[2]) < set(given[5]) < set(given[14])
    assert [tool for tool in given[14] if tool in given[5]] == list(given[5])
    assert given == given_tools(lunch, (1, 2, 5, 14), tools)
    others = [replace(lunch, query=replace(LUNCH, id=str(number))) for number in range(6)]
    drawn = {given_tools(other, (6,), tools)[6] for other in others}
    assert len({frozenset(ids) for ids in drawn}) > 1
    assert len({ids.index(lunch.needed[0]) for ids in drawn}) > 1


def test_a_request_has_the_conversation_and_the_tools(searcher):
    [trial] = prepare(searcher, [TIDES], AgentSpec(sizes=(1,))).trials()
    request = trial.request

    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert request.messages[-1].content == TIDES.query
    [tool] = request.tools
    assert tool["function"]["name"] == "getTides_v2"
    assert list(tool["function"]["parameters"]["properties"]) == ["harbour"]
    assert (request.tool_choice, request.schema, request.temperature) == ("auto", None, 0.0)
    assert list(trial.names) == ["getTides_v2"]
