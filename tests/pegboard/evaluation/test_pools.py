"""Pools: which tools they hold, and what a query finds among them."""

import random

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import differences, evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.pools import (
    ALL,
    Pool,
    PoolDrawer,
    nearest_tools,
    parse_noise,
    parse_sizes,
    pool_searchers,
    random_order,
)
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.llm.caller import open_caller
from tests.pegboard.retrieval.stubs import ScriptedCompleter

BOOK = "Books a room for a meeting"
TEXTS = {
    "book_room": f"{BOOK}.",
    "book_hall": f"{BOOK} in the hall.",
    "book_cabin": f"{BOOK} in a cabin by the lake.",
    "send_parcel": "Sends a parcel to a person.",
    "send_letter": "Sends a letter to a person.",
    **{f"measure_{number}": f"Reads sensor number {number}." for number in range(20)},
}
QUERIES = [
    GoldenQuery("book a room for a meeting", ("book_room",)),
    GoldenQuery("send a parcel and a letter", ("send_parcel", "send_letter")),
]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("pools"))
    tools = [workshop.tool(name, text) for name, text in TEXTS.items()]
    workshop.servers({"office": tools, "annex": [workshop.tool("send_letter", "Sends post.")]})
    workshop.run(workshop.configure(), encoder=hashing(256))
    return Searcher.open(workshop.uri, encoder=hashing(256))


@pytest.fixture
def drawer(searcher):
    return PoolDrawer(searcher.loaded, searcher.names, QUERIES, 10)


def short(tools):
    return {tool.partition("/")[2] for tool in tools}


def test_the_options_of_commands_are_pools_that_print_as_they_are_given():
    sizes = parse_sizes("10, 25,all,10")
    noise = parse_noise("random:30,near:10,random:0")

    assert sizes == (Pool("sample", 10), Pool("sample", 25), ALL)
    assert [*map(str, sizes), *map(str, noise)] == [
        *("10", "25", "all", "random:30", "near:10", "random:0")
    ]
    for parse, text in (
        (parse_sizes, "10,few"),
        (parse_sizes, "0"),
        (parse_noise, "close:3"),
        (parse_noise, "near"),
    ):
        with pytest.raises(ConfigurationError, match="expected"):
            parse(text)


def test_a_random_order_has_every_id_once_and_begins_alike_however_much_is_drawn():
    ids = [str(number) for number in range(50)]

    drawn = list(random_order(ids, random.Random(1)))
    first = [tool for tool, _ in zip(random_order(ids, random.Random(1)), range(5), strict=False)]

    assert sorted(drawn) == sorted(ids)
    assert drawn != ids
    assert first == drawn[:5]


def test_a_sample_holds_all_needed_tools_and_every_smaller_sample(drawer):
    small, large = (drawer.tools(Pool("sample", count), QUERIES[0]) for count in (5, 12))

    assert (len(small), len(large)) == (5, 12)
    assert {"office/book_room", "office/send_parcel"} <= short(small)
    assert small < large
    assert drawer.tools(Pool("sample", 5), QUERIES[1]) == small
    assert drawer.tools(ALL, QUERIES[0]) == drawer.names.catalogs.keys()


def test_random_noise_is_drawn_for_each_query_without_other_tools_of_a_needed_name(drawer):
    pools = [[drawer.tools(Pool("random", count), query) for query in QUERIES] for count in (3, 9)]
    everything = drawer.tools(Pool("random", 1_000), QUERIES[1])

    (room, post), (more_room, more_post) = pools
    assert (len(room), len(post), len(more_room)) == (1 + 3, 2 + 3, 1 + 9)
    assert room < more_room
    assert post < more_post
    assert "office/send_parcel" in short(post)
    # One of the two tools that are named send_letter is needed, the other is no distractor.
    assert len(everything) == len(drawer.names.catalogs) - 1


def test_near_noise_has_the_nearest_others_of_each_needed_tool(searcher, drawer):
    nearest = short(drawer.tools(Pool("near", 2), QUERIES[0]))
    both = drawer.tools(Pool("near", 1), QUERIES[1])

    assert nearest == {"office/book_room", "office/book_hall", "office/book_cabin"}
    assert 3 <= len(both) <= 4
    assert drawer.tools(Pool("near", 1), QUERIES[0]) < drawer.tools(Pool("near", 2), QUERIES[0])
    [order] = nearest_tools(searcher.loaded, ["kit/office/book_room"], 30).values()
    assert len(order) == len(searcher.names.catalogs) - 1


def test_a_sample_that_cannot_hold_what_the_queries_need_is_refused(searcher):
    with pytest.raises(ConfigurationError) as caught:
        pool_searchers(searcher, QUERIES, parse_sizes("2,900,all"))

    message = str(caught.value)
    assert "2 tools: expected 3 to 26" in message
    assert "900 tools: expected 3 to 26" in message
    assert "--noise random:N" in message


def evaluations(searcher, strategy, pools):
    return [
        evaluate(ReleaseSystem.resolve(each, strategy), QUERIES, ["Recall@1", "Recall"])
        for each in pool_searchers(searcher, QUERIES, pools)
    ]


@pytest.mark.parametrize("strategy", ["search", "clauses", "dependencies"])
def test_queries_find_nothing_outside_their_pool(searcher, drawer, strategy):
    pools = (Pool("sample", 8), Pool("random", 4), Pool("near", 2), Pool("random", 0))

    for pool, evaluation in zip(pools, evaluations(searcher, strategy, pools), strict=True):
        for result in evaluation.results:
            retrieved = {tool.id for tool in result.retrieved}
            assert retrieved
            assert retrieved <= drawer.tools(pool, result.query)
            assert result.needed == searcher.names.resolve(result.query.tools)
    assert evaluation.interval("Recall").value == 1.0  # there is nothing else in the last


def test_rows_have_the_pool_and_its_size_and_are_compared_with_the_first_pool(searcher):
    every, sample, near = evaluations(
        searcher, "search", (ALL, Pool("sample", 10), Pool("near", 3))
    )

    assert [row["pool"] for row in every.rows()] == ["all", "all"]
    assert sample.rows()[0]["pool_size"] == 10
    assert 4 <= near.rows()[0]["pool_size"] <= 8
    gaps = differences([every, sample, near])
    assert [(row["pool"], row["against"]) for row in gaps[:2]] == [("10", "all"), ("near:3", "all")]
    assert len(gaps) == 2 * 2
    whole = evaluate(ReleaseSystem.resolve(searcher, "search"), QUERIES, ["Recall@1", "Recall"])
    assert [result.retrieved for result in every.results] == [
        result.retrieved for result in whole.results
    ]
    assert "pool" not in whole.rows()[0]


def test_an_llm_sees_the_tools_of_the_pool_alone(searcher):
    completer = ScriptedCompleter({"tools": [1]})
    asking = Searcher(searcher.loaded, searcher.vectors, open_caller(completer))
    strategy = {"name": "rerank", "refine": [{"part": "listwise-rerank"}]}

    [noise] = pool_searchers(asking, QUERIES[:1], [Pool("near", 1)])
    result = evaluate(ReleaseSystem.resolve(noise, strategy), QUERIES[:1], ["Recall"])

    [request] = completer.requests
    prompt = "\n".join(message.content for message in request.messages)
    assert {name for name in TEXTS if name in prompt} == {"book_room", "book_hall"}
    assert len(result.results[0].retrieved) == 2
