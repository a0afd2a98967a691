"""Tools that an application holds, ranked by a board that may know more, fewer or other tools."""

import pytest

from pegboard.integrations.board_search import BoardSearch, Selected
from pegboard.integrations.own_tools import OwnTools
from tests.pegboard.integrations.boards import TOOLS, Shelf, many

HELD = {each.name: each.description for each in TOOLS}


@pytest.fixture
def shelf():
    return Shelf()


@pytest.mark.parametrize(
    "name", ["git__create_issue", "git_create_issue", "create_issue", "git/create_issue"]
)
def test_a_held_tool_may_be_named_with_its_agent(shelf, name):
    own = OwnTools(BoardSearch(shelf.board, k=1))

    assert own.find("report a bug", {name: "", "book_room": ""}).names == (name,)


def test_tools_of_one_true_name_are_told_apart_by_their_agent(shelf):
    own = OwnTools(BoardSearch(shelf.board, k=1))
    held = {"git_search": "", "desk_search": ""}

    assert own.find("employees of the company by department", held).names == ("desk_search",)
    assert own.find("code of a repository for a word", held).names == ("git_search",)


def test_a_tool_that_the_release_does_not_know_is_found_by_its_words(shelf):
    own = OwnTools(BoardSearch(shelf.board, k=3))
    held = {**HELD, "water_plants": "Waters the plants of the office."}

    assert "water_plants" in own.find("water the plants", held).names
    assert "water_plants" not in own.find("report a bug", held).names
    assert len(own.find("plants, room and lunch in the office", held).names) == 3


def test_a_board_of_other_tools_leaves_the_search_to_words():
    own = OwnTools(BoardSearch(Shelf(many(5)).board, k=2))

    assert own.find("weather forecast", HELD).names[0] == "get_forecast"
    assert own.find("zebra", HELD) == Selected((), own.find("zebra", HELD).reason)
    assert "No tool" in own.find("zebra", HELD).reason
