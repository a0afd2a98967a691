"""`find(called=...)`: what uses the results of the last calls, or follows them, moves up."""

import asyncio
from dataclasses import replace

import pytest

import pegboard
from pegboard import AsyncBoard
from pegboard.cli.main import main
from pegboard.errors import QueryError
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge
from pegboard.retrieval.called import evidence_of

NEEDS = "tool-directly-depends-on"
REQUEST = "what happens at the harbour today?"


def ids(hits):
    return [hit.tool.id for hit in hits]


@pytest.fixture
def board(own_board_uri):
    """A board whose release has learned that one tool follows another."""
    store = pegboard.ReleaseStore(own_board_uri)
    live = store.get(store.channel().release)
    tools = ids(pegboard.open(own_board_uri).find(REQUEST, 30))
    sequences = {tools[0]: {tools[6]: 0.667}, tools[1]: {tools[1]: 0.667}}
    manifest = {**live.manifest, "sequences": sequences}
    store.add(replace(live, id="e" * 12, digest="e" * 64, manifest=manifest))
    return pegboard.open(own_board_uri, release="e" * 12)


def test_what_usually_follows_a_called_tool_moves_up(board):
    before = board.find(REQUEST, 10)
    first = before[0].tool.id
    follower = before[6].tool.id

    result = board.find(REQUEST, 10, called=["old/kit/gone", first], explain=True)

    assert ids(result).index(follower) < 6
    assert [tool for tool in ids(result) if tool != follower] == [
        tool for tool in ids(before) if tool != follower
    ]
    [hit] = [hit for hit in result if hit.tool.id == follower]
    assert hit.why["called"] == {"evidence": 0.667}
    assert hit.probability == before[6].probability
    assert [part.note for part in result.trace.parts if part.part == "called"] == [
        "1 tools raised, 0 of them added"
    ]
    again = asyncio.run(AsyncBoard(board).find(REQUEST, 10, called=[first]))
    assert ids(again) == ids(result)


@pytest.mark.parametrize("called", [[], ["old/kit/gone"]])
def test_without_evidence_a_result_is_as_without_calls(board, called):
    before = board.find(REQUEST, 10)
    after = board.find(REQUEST, 10, called=called)

    assert [(hit.tool.id, hit.score, hit.why) for hit in after] == [
        (hit.tool.id, hit.score, hit.why) for hit in before
    ]


def test_a_tool_that_no_search_found_is_added_if_it_passes_the_filter(board):
    strategy = {"depth": 2, "modes": ["text"]}
    found = board.find(REQUEST, 1, strategy=strategy)
    first, follower = ids(board.find(REQUEST, 10))[0:7:6]
    agent = follower.rpartition("/")[0]

    added = board.find(REQUEST, 10, strategy=strategy, called=[first])
    filtered = board.find(
        REQUEST, 10, strategy=strategy, called=[first], where={"agent": first.rpartition("/")[0]}
    )

    assert follower in ids(added)
    assert follower not in ids(found)
    assert (follower in ids(filtered)) == (agent == first.rpartition("/")[0])


def test_an_edge_counts_less_where_many_tools_use_a_result():
    one = ToolGraph([Edge("pay", "cart", NEEDS)])
    many = ToolGraph([Edge(user, "cart", NEEDS) for user in ("pay", "show", "empty")])
    inferred = ToolGraph([Edge("pay", "cart", NEEDS, origin="inferred", confidence=0.6)])

    assert evidence_of(["cart"], one, {}) == {"pay": 1.0}
    assert evidence_of(["cart"], many, {})["pay"] == 0.5
    assert evidence_of(["cart"], inferred, {}) == {"pay": 0.6}
    assert evidence_of(["cart", "a", "b"], one, {"b": {"pay": 0.5}}) == {"pay": 1.5}
    assert evidence_of(["cart", "a", "b", "c"], one, {}) == {}


@pytest.mark.parametrize("called", ["kit/sea/tides", ["tides"], [7], None])
def test_called_tools_are_given_by_their_ids(board, called):
    with pytest.raises(QueryError, match=r"The called tools are .* expected a list of ids"):
        board.find(REQUEST, called=called)


def test_the_command_takes_called_tools(board, own_board_uri, capsys):
    first = board.find(REQUEST, 1)[0].tool.id
    words = ["find", REQUEST, "-k", "10", "--json", "--board", own_board_uri]

    assert main([*words, "--release", "e" * 12, "--called", first]) == 0

    assert '"evidence": 0.667' in capsys.readouterr().out
