"""The reader: what a search finds, what it refuses, and how it follows the channel."""

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

import pegboard
from pegboard.errors import (
    BoardNotFound,
    ConfigurationError,
    ContractMismatch,
    EncoderError,
    FingerprintMismatch,
    QueryError,
)
from pegboard.ranker.model import default_ranker
from pegboard.serve.settings import load_gateway_settings
from pegboard.store.contract import CONTRACT
from tests.conftest import tool

MODES = ["hybrid", "vector", "text"]


@pytest.fixture(scope="module")
def board(board_uri, encoder):
    return pegboard.open(board_uri, encoder=encoder)


@pytest.fixture(scope="module")
def other_encoder(encoder):
    """An encoder of as many dimensions whose vectors mean something else."""
    return SimpleNamespace(
        name="other/encoder",
        fingerprint="other-weights",
        dimensions=encoder.dimensions,
        encode=lambda texts: encoder.encode(texts)[:, ::-1],
    )


def names(hits):
    return [hit.tool.name for hit in hits]


def forge(uri, **changes):
    """A release like the live one, but for a few things in it; returns its id."""
    store = pegboard.ReleaseStore(uri)
    live = store.get(store.channel().release)
    digest = f"{len(store.all()):064x}"
    index = {**live.manifest["indexes"]["full"], **changes.pop("index", {})}
    manifest = {**live.manifest, "indexes": {"full": index}}
    store.add(replace(live, id=digest[-12:], digest=digest, manifest=manifest, **changes))
    return digest[-12:]


@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("convert an amount of dollars to another currency", "convert_currency"),
        ("forecast of the weather for a city", "get_forecast"),
        ("open an issue in the repository", "create_issue"),
        ("東京の天気予報", "天気予報"),
    ],
)
def test_a_request_finds_its_tool(board, mode, index, query, expected):
    hits = board.search(query, 3, mode=mode, index=index)

    assert names(hits)[0] == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_without_a_mode_and_an_index_a_search_is_hybrid_on_the_default_index(board):
    query = "who ordered lunch?"

    assert board.search(query) == board.search(query, 5, mode="hybrid", index="full")
    assert len(board.search(query)) == 5
    assert set(board.search(query)[0].why) == {"vector", "text", "ranker"}


def test_hits_say_why(board):
    for mode in ("vector", "text"):
        for rank, hit in enumerate(
            board.search("list the commits of a branch", 3, mode=mode), start=1
        ):
            assert hit.why == {mode: {"rank": rank, "score": hit.score, "part": "document"}}
    (best,) = board.search("the ferns look thirsty", 1, index="fine", mode="vector")
    assert (best.tool.name, best.why["vector"]["part"]) == ("water_plants", "question")


def test_a_hybrid_search_ranks_all_that_vectors_and_words_find_by_the_ranker(board):
    hits = board.search("book a room for lunch", 14)
    both = {
        hit.tool.id
        for mode in ("vector", "text")
        for hit in board.search("book a room for lunch", 14, mode=mode)
    }

    assert {hit.tool.id for hit in hits} == both
    for rank, hit in enumerate(hits, start=1):
        assert hit.why["ranker"]["rank"] == rank
        assert hit.why["ranker"]["score"] == hit.score
        assert hit.probability == default_ranker().probability(hit.score)


def test_the_action_of_a_request_decides_between_tools_of_the_same_words(workshop, encoder):
    text = "An issue of a repository."
    workshop.publish({"git": [tool(f"{verb}_issue", text) for verb in ("remove", "create", "get")]})
    board = pegboard.open(workshop.uri, encoder=encoder)

    for request, name in (
        ("open an issue", "create_issue"),
        ("delete the issue", "remove_issue"),
        ("show me an issue", "get_issue"),
    ):
        assert names(board.search(request, 1)) == [name]


def test_a_hit_carries_the_whole_tool_and_its_agent(board):
    (hit,) = board.search("convert currency", 1, mode="text")

    assert (hit.tool.id, hit.agent.id, hit.agent.kind, hit.tool.tags) == (
        "finance/finance/convert_currency",
        "finance/finance",
        "library",
        ("money", "office"),
    )
    assert hit.tool.input_schema["properties"]["amount"] == {"type": "number"}
    assert board.tool(hit.tool.id) == hit.tool
    assert board.tool("kit/git/unknown") is None
    assert [agent.name for agent in board.list_agents()] == [
        *("desk", "finance", "git", "o'brien's", "weather", "天気"),
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 3, 14, 1000])
def test_as_many_hits_come_back_as_are_wanted_and_there(board, mode, k):
    hits = board.search("the", k, mode=mode)

    assert len(hits) == min(
        k, 14 if mode != "text" else len(board.search("the", 1000, mode="text"))
    )
    assert hits == board.search("the", 1000, mode=mode)[:k]


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000"])
def test_a_blank_query_finds_nothing(board, query):
    assert [board.search(query, mode=mode) for mode in MODES] == [[], [], []]


@pytest.mark.parametrize("query", ["🙂", "—", "_", "\x00"])
def test_a_query_without_words_is_searched_by_vector_alone(board, query):
    assert board.search(query, mode="text") == []
    assert len(board.search(query, 3, mode="vector")) == 3
    assert [set(hit.why) for hit in board.search(query, 3)] == [{"vector", "ranker"}] * 3


def test_a_query_with_a_lone_surrogate_is_refused_by_the_encoder_and_harmless_in_text(board):
    assert board.search("\ud800 tides", 1, mode="text")[0].tool.name == "getTides_v2"
    with pytest.raises(EncoderError, match="not valid Unicode"):
        board.search("\ud800 tides")


@pytest.mark.parametrize(
    ("query", "options", "kind", "message"),
    [
        ("anything", {"k": 0}, QueryError, "k is 0, expected the number of results"),
        ("a", {"k": "5"}, QueryError, "k is '5', expected the number of results, 1 or more"),
        (None, {}, QueryError, "the requests are (None,), expected a list of texts"),
        ([["x"]], {}, QueryError, "expected a text, or a vector of 256 numbers"),
        (
            "anything",
            {"mode": "fuzzy"},
            QueryError,
            "'fuzzy'. Expected one of: hybrid, vector, text",
        ),
        ("anything", {"index": "small"}, BoardNotFound, "has no index 'small'. It has: fine, full"),
        ("anything", {"where": {"owner": "git"}}, QueryError, "no field 'owner'"),
        ([0.5] * 256, {"mode": "text"}, QueryError, "Give it as text"),
        ([0.0] * 256, {}, QueryError, "zero or not finite"),
        ([-math.inf] * 256, {}, QueryError, "zero or not finite"),
    ],
    ids=str,
)
def test_invalid_arguments_are_refused(board, query, options, kind, message):
    with pytest.raises(kind) as error:
        board.search(query, **options)

    assert message in str(error.value)


def test_a_nul_in_the_address_is_refused():
    with pytest.raises(ConfigurationError, match="has a NUL character"):
        pegboard.open("a\0board")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"agent": "git"}, {"create_issue", "list_commits", "merge_branch", "delete_repository"}),
        ({"agent": "kit/weather"}, {"get_forecast", "getTides_v2"}),
        ({"agent": ["o'brien's", "天気"]}, {"order_lunch", "天気予報"}),
        ({"catalog": "desk"}, {"book_room", "call_taxi", "water_plants"}),
        ({"kind": ["library", "api"]}, {"convert_currency", "list_rates", "close_ledger"}),
        ({"tags": "office", "kind": "agent"}, {"book_room", "call_taxi", "water_plants"}),
        ({"tags": "x' OR 1=1 --"}, set()),
        ({"tool": ["desk/desk/book_room", "no/such/tool"]}, {"book_room"}),
        ({"tool": []}, set()),
        ({"agent": []}, set()),
    ],
)
def test_a_filter_narrows_every_mode(board, mode, where, expected):
    # Words of a tool in every answer, so that the text search finds some that pass.
    words = "lists lunch 東京の天気予報 repository city room currency"
    found = set(names(board.search(words, 1000, mode=mode, where=where)))

    assert found <= expected
    assert found == expected or mode == "text"
    assert found or not expected


@pytest.mark.parametrize(
    "as_given", [lambda vector: vector, list, tuple, lambda vector: vector.astype(np.float64) * 7]
)
def test_a_vector_may_stand_in_place_of_the_text(board, encoder, as_given):
    query = "will it rain in Oslo?"
    vector = as_given(encoder.encode([query])[0])

    by_text = board.search(query, mode="vector")
    for hits in (
        board.search(vector),
        board.search(vector, mode="vector"),
        board.search(query, mode="vector", vector=vector),
    ):
        assert names(hits) == names(by_text)
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in by_text], abs=2e-5
        )


def test_a_board_without_tools_finds_nothing(workshop, encoder):
    workshop.publish({"git": [workshop.tool("log")]})
    workshop.publish({"git": []}, allow_removal=True)
    board = pegboard.open(workshop.uri, encoder=encoder)

    assert [board.search("anything", mode=mode) for mode in MODES] == [[], [], []]
    assert [agent.name for agent in board.list_agents()] == ["git"]


def test_a_missing_board_channel_or_contract_is_refused(own_board_uri, tmp_path):
    later = forge(own_board_uri, contract=CONTRACT + 1)
    message = f"contract {CONTRACT + 1}; this version of pegboard reads {CONTRACT}"

    with pytest.raises(BoardNotFound, match=r"no board at .*pegboard build"):
        pegboard.open(str(tmp_path / "none"))
    with pytest.raises(BoardNotFound, match="no channel 'canary'; it has: live"):
        pegboard.open(own_board_uri, channel="canary")
    with pytest.raises(ContractMismatch, match=message):
        pegboard.open(own_board_uri, release=later)


def test_an_encoder_of_another_fingerprint_is_refused_and_text_still_works(
    own_board_uri, encoder, other_encoder
):
    changed = forge(own_board_uri, index={"fingerprint": "other-weights"})

    for board in (
        pegboard.open(own_board_uri, encoder=other_encoder),
        pegboard.open(own_board_uri, release=changed),
    ):
        for mode in ("hybrid", "vector"):
            with pytest.raises(FingerprintMismatch) as error:
                board.search("anything", mode=mode)
            assert "other-weights" in str(error.value)
            assert encoder.fingerprint in str(error.value)
        assert names(board.search("high tide", 1, mode="text")) == ["getTides_v2"]


def test_the_encoder_that_the_release_names_is_loaded_where_none_is_given(board_uri, board):
    assert pegboard.open(board_uri).search("high tide") == board.search("high tide")


def test_what_a_manifest_says_beyond_vectors_never_reaches_the_encoder(own_board_uri, board):
    hostile = {
        "api_base": "http://127.0.0.1:9/",
        "folder": "/nowhere",
        "api_key_env": "HOME",
        "threads": 0,
    }
    reader = pegboard.open(own_board_uri, release=forge(own_board_uri, index={"options": hostile}))

    # Any of the four would end in an error: the hashing encoder has no options.
    assert reader.search("high tide") == board.search("high tide")


def test_no_request_goes_to_a_hosted_encoder_that_only_the_release_names(
    own_board_uri, server, openai_key, tmp_path
):
    model = "openai/of-the-release"
    release = forge(own_board_uri, index={"encoder": model})
    options = {"release": release, "encoder_options": {"api_base": server.url}}

    def search(**more):
        return pegboard.open(own_board_uri, **options, **more).search("high tide")

    for others in ((), ("openai/another",)):
        with pytest.raises(EncoderError, match=r"hosted encoder 'openai/of-the-.*hosted_encoders"):
            search(hosted_encoders=others)
    loaded = (
        r"the encoder at hand is openai/of-the-release"  # its fingerprint is not the forged one
    )
    with pytest.raises(FingerprintMismatch, match=loaded):
        search(hosted_encoders=[model])
    file = tmp_path / "pegboard.toml"
    file.write_text(f'[[indexes]]\nencoder = "{model}"\n', "utf-8")
    load_gateway_settings(file)
    with pytest.raises(FingerprintMismatch, match=loaded):
        search()
    assert server.bodies == []


def test_a_name_that_is_an_address_is_refused_even_where_it_is_allowed(own_board_uri, server):
    name = f"huggingface/{server.url}"
    reader = pegboard.open(
        own_board_uri,
        release=forge(own_board_uri, index={"encoder": name}),
        hosted_encoders=[name],
    )

    with pytest.raises(ConfigurationError, match="is an address"):
        reader.search("high tide")
    assert server.bodies == []


def test_options_of_the_reader_itself_reach_the_encoder(own_board_uri):
    release = forge(own_board_uri, index={"encoder": "local/minilm-tools-v1"})

    def search(**options):
        return pegboard.open(own_board_uri, release=release, encoder_options=options).search(
            "anything"
        )

    with pytest.raises(EncoderError, match="/nowhere"):
        search(folder="/nowhere")
    with pytest.raises(ConfigurationError, match="no option api_base"):
        search(api_base="http://127.0.0.1:9/")


def test_a_reader_stays_on_its_release_follows_its_channel_and_looks_no_sooner_than_refresh(
    two_releases, encoder
):
    workshop, first, second = two_releases
    workshop.store.promote(second.id, "canary")

    def opened(*channel, **options):
        return pegboard.open(workshop.uri, *channel, encoder=encoder, **options)

    slow = opened(refresh=3600)
    fixed = opened(release=second.id[:8], refresh=0)
    canary = opened("canary", refresh=0)
    assert (slow.release, fixed.release, canary.release) == (first, second, second)

    workshop.store.promote(second.id)
    workshop.store.promote(first.id, "canary")

    assert (slow.release, fixed.release, canary.release) == (first, second, first)
    assert names(fixed.search("task", 1))[0].startswith("new")


@pytest.mark.parametrize("rows", [50_000, 0])
def test_threads_share_a_board_and_every_answer_is_of_one_release(two_releases, encoder, rows):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0, in_memory_rows=rows)
    vector = encoder.encode(["task"])[0]
    stop = Event()
    seen = set()

    def ask(number):
        while not stop.is_set():
            hits = board.search("task", 24, mode=MODES[number % 3], vector=vector)
            prefixes = {(hit.tool.name[:3], hit.agent.name) for hit in hits}
            assert prefixes in ({("old", "old")}, {("new", "new")})
            assert len(hits) == 12
            seen.update((number, *prefix) for prefix in prefixes)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(8) as pool:
            asking = [pool.submit(ask, number) for number in range(8)]
            for promotion in range(4):
                release, name = ((second, "new"), (first, "old"))[promotion % 2]
                workshop.store.promote(release.id)
                seen.clear()
                answers = {(number, name, name) for number in range(8)}
                while not answers <= seen and not any(
                    each.done() for each in asking
                ):  # one that failed is done
                    time.sleep(0.001)
            stop.set()
            for each in asking:
                each.result()
    finally:
        stop.set()
        sys.setswitchinterval(switch)

    assert answers <= seen
