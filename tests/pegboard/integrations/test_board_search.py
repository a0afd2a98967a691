"""What adapters share: exact names first, budgets, reasons, filters."""

import pytest

from pegboard.errors import QueryError
from pegboard.integrations.board_search import BLANK, NO_TOOL, BoardSearch, query_of
from pegboard.tokens import definition_tokens
from tests.pegboard.integrations.boards import Shelf
from tests.pegboard.retrieval.stubs import ScriptedCompleter

DESK = "kit/desk/search"
GIT = "kit/git/search"


@pytest.fixture(scope="module")
def board():
    return Shelf().board


def ids(findings):
    return [hit.tool.id for hit in findings.hits]


def test_a_query_of_nothing_but_a_name_finds_the_tools_of_that_name_alone(board):
    search = BoardSearch(board)

    assert set(ids(search.find("search"))) == {DESK, GIT}
    assert ids(search.find("git__search")) == [GIT]
    assert ids(search.find("kit/desk/search")) == [DESK]


def test_a_name_within_a_request_comes_first_and_the_rest_follows(board):
    found = ids(BoardSearch(board, k=3).find("the weather forecast, then book_room"))

    assert found[0] == "kit/desk/book_room"
    assert "kit/weather/get_forecast" in found
    assert len(found) == 3


def test_a_name_that_the_filter_excludes_is_not_found_by_it(board):
    search = BoardSearch(board, where={"agent": "git"})

    assert "kit/desk/book_room" not in ids(search.find("book_room"))
    assert "kit/desk/book_room" not in ids(search.find("please call book_room"))


def test_only_tools_among_those_given_are_found_and_as_many_as_there_are(board):
    search = BoardSearch(board, k=2)
    among = ["kit/desk/order_lunch", "kit/weather/get_forecast", "no/such/tool"]

    found = search.find("order lunch and get the weather forecast", among=among)

    assert sorted(ids(found)) == sorted(among[:2])
    assert ids(search.find("book_room", among=among)) != ["kit/desk/book_room"]
    assert search.find("book a meeting room", among=[]).reason == NO_TOOL


def test_a_filter_by_tool_and_tools_among_those_given_must_both_pass(board):
    search = BoardSearch(board, where={"tool": [GIT, DESK]})

    assert ids(search.find("search", among=[GIT, "kit/desk/book_room"])) == [GIT]
    assert search.find("search", among=["kit/desk/book_room"]).reason == NO_TOOL


def test_definitions_stay_within_the_tokens(board):
    whole = BoardSearch(board).find("book a meeting room in the office")
    budget = sum(definition_tokens(hit) for hit in whole.hits[:2])
    found = BoardSearch(board, max_tokens=int(budget) + 1).find("book a meeting room in the office")

    assert ids(found)[0] == ids(whole)[0]
    assert sum(definition_tokens(hit) for hit in found.hits) <= budget + 1


def test_an_empty_result_says_why(board):
    unknown = BoardSearch(board, where={"catalog": "unknown"})
    reasons = {
        "blank": BoardSearch(board).find(" \n").reason,
        "nothing fits": BoardSearch(board).find("thanks!").reason,
        "too long": BoardSearch(board, max_tokens=1).find("book a meeting room").reason,
        "filtered": unknown.find("book a meeting room").reason,
    }

    assert reasons["blank"] == BLANK
    assert reasons["filtered"] == NO_TOOL
    assert "No tool fits: the best of them does with" in reasons["nothing fits"]
    assert "too long: 1 tokens are allowed" in reasons["too long"]


def test_a_request_that_an_llm_finds_no_tool_for_gets_none_and_says_who_judged():
    llm = ScriptedCompleter(by=lambda request: {"tools": []})
    search = BoardSearch(Shelf(llm=llm).board, strategy="look-at-fifteen")

    findings = search.find("book a meeting room in the office")

    assert findings.hits == ()
    assert findings.reason.startswith("No tool fits, as an LLM judged. ")


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({"query": "rain"}, "rain"),
        ('{"query": "rain"}', "rain"),
        ("rain", "rain"),
        ('"rain"', "rain"),
        ({"query": ["rain"]}, ""),
        ('{"query": {"query": "rain"}}', ""),
        ("[" * 100_000, ""),
        ('{"query": ' * 100_000, ""),
        *(({}, ""), (None, ""), ([], ""), (5, "")),
    ],
)
def test_whatever_a_model_sends_is_a_query_or_a_blank_one(arguments, query):
    assert query_of(arguments) == query


def test_no_tokens_are_refused(board):
    with pytest.raises(QueryError, match="max_tokens is 0"):
        BoardSearch(board, max_tokens=0)
