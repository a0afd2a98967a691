"""Names for calls: valid, unique, and the same whatever the order of the tools."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.naming import CallNames, valid_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
GIT = ("kit/git/search", "search", "git")
DESK = ("kit/desk/search", "search", "desk")
BOOK = ("kit/desk/book_room", "book_room", "desk")


def test_a_true_name_stays_and_a_shared_one_names_the_agent():
    assert CallNames([GIT, DESK, BOOK]).names == {
        "kit/git/search": "git__search",
        "kit/desk/search": "desk__search",
        "kit/desk/book_room": "book_room",
    }


def test_a_tool_that_joins_cannot_take_another_tools_name():
    before = CallNames([GIT, BOOK])
    after = CallNames([("a/evil/search", "search", "evil"), GIT, BOOK])

    assert before.ids["search"] == "kit/git/search"
    assert after.ids.get("search") is None
    assert after.ids["git__search"] == "kit/git/search"


def test_a_reserved_name_is_given_to_no_tool():
    assert CallNames([GIT], reserved=["search"]).names == {"kit/git/search": "git__search"}
    assert CallNames([GIT], reserved=["search", "git__search"]).names["kit/git/search"] not in (
        "search",
        "git__search",
    )


def test_names_that_differ_by_case_only_are_told_apart():
    assert list(CallNames([GIT, ("kit/desk/Search", "Search", "desk")]).ids) == [
        "desk__Search",
        "git__search",
    ]


def test_tools_of_two_catalogs_whose_agents_have_one_name_have_a_hash():
    names = CallNames([GIT, ("other/git/search", "search", "git")]).names

    assert len(set(names.values())) == 2
    assert all(re.fullmatch(r"search_[0-9a-f]{8}", name) for name in names.values())


def test_a_tool_cannot_be_named_as_the_hash_of_another():
    twins = [GIT, ("other/git/search", "search", "git")]
    hashed = CallNames(twins).names["kit/git/search"]
    squatter = ("a/evil/x", hashed, "evil")
    names = CallNames([*twins, squatter])

    assert names.ids[hashed] == "a/evil/x"
    assert names.names["kit/git/search"].startswith(hashed)


@pytest.mark.parametrize(
    ("name", "call_name"),
    [
        ("天气查询", "TianQiChaXun"),
        ("日本語検索", "RiBenYuJianSuo"),
        ("검색", "GeomSaeg"),
        ("поиск_писем", "poisk_pisem"),
        ("بحث", "bhth"),
        ("get_天气", "get_TianQi"),
        ("检索 文档", "JianSuo_WenDang"),
        ("天" * 40, ("Tian" * 40)[:64]),
    ],
)
def test_words_of_other_scripts_can_be_read(name, call_name):
    assert valid_name(name) == call_name
    assert CallNames([("kit/a/x", name, "a")]).names == {"kit/a/x": call_name}


@pytest.mark.parametrize(
    ("name", "call_name"),
    [
        ("größe.suchen", "gr__e_suchen"),
        ("überprüfen", "_berpr_fen"),
        ("search。", "search_"),
        ("🔍search", "_search"),
        ("🔍", "_"),
        ("a/b:c", "a_b_c"),
    ],
)
def test_names_that_could_be_read_stay_as_they_were(name, call_name):
    assert valid_name(name) == call_name


def test_tools_of_one_name_in_another_script_name_their_agents():
    names = CallNames([(f"kit/{agent}/天气", "天气", agent) for agent in ("气象", "desk")]).names

    assert names == {"kit/气象/天气": "QiXiang__TianQi", "kit/desk/天气": "desk__TianQi"}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["search", "search.", "天気", "x" * 70, "git__search", "e/f"]),
            st.sampled_from(["git", "天", "g" * 70]),
            st.integers(0, 2),
        ),
        max_size=20,
    ),
    st.randoms(),
)
def test_names_are_valid_unique_and_independent_of_the_order(drawn, shuffle: random.Random):
    tools = [(f"c{number}/{agent}/{name}", name, agent) for name, agent, number in drawn]
    names = CallNames(tools).names
    shuffle.shuffle(tools)

    assert CallNames(tools).names == names
    assert names.keys() == {identity for identity, _, _ in tools}
    assert len(set(names.values())) == len(names)
    assert all(VALID.fullmatch(name) for name in names.values())


@pytest.mark.parametrize(
    ("request_text", "named"),
    [
        ("search", ["kit/desk/search", "kit/git/search"]),
        ("git__search", ["kit/git/search"]),
        ("use git/search", []),
        ("kit/git/search", ["kit/git/search"]),
        ("call book_room, please", ["kit/desk/book_room"]),
        ("first git__search then book_room", ["kit/git/search", "kit/desk/book_room"]),
        ("getForecast for Oslo", ["w/w/getForecast"]),
        ("search for a room", []),
        ("send an e-mail about GitHub on my iPhone", []),
        ("", []),
    ],
)
def test_a_name_in_a_request_is_exact_where_it_can_be_no_plain_word(request_text, named):
    squatters = [(f"a/evil/{name}", name, "evil") for name in ("e-mail", "GitHub", "iPhone")]
    forecast = ("w/w/getForecast", "getForecast", "w")

    assert CallNames([GIT, DESK, BOOK, forecast, *squatters]).named_in(request_text) == named
