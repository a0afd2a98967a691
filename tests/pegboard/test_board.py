"""The reader: what a search finds, what it refuses, and how it follows the channel."""

import math
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
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
    assert set(board.search(query)[0].why) == {"vector", "text"}


def test_hits_say_why(board):
    for mode in ("vector", "text"):
        for rank, hit in enumerate(
            board.search("list the commits of a branch", 3, mode=mode), start=1
        ):
            assert hit.why == {mode: {"rank": rank, "score": hit.score, "part": "document"}}
    (best,) = board.search("the ferns look thirsty", 1, index="fine", mode="vector")
    assert (best.tool.name, best.why["vector"]["part"]) == ("water_plants", "question")


def test_the_hybrid_score_is_a_convex_combination_of_both(board):
    hits = board.search("book a room for lunch", 14)
    best = {
        mode: max(hit.why[mode]["score"] for hit in hits if mode in hit.why)
        for mode in ("vector", "text")
    }

    assert len(hits) == 14
    for hit in hits:
        words = hit.why["text"]["score"] / best["text"] if "text" in hit.why else 0
        cosine = (hit.why["vector"]["score"] + 1) / (best["vector"] + 1)
        assert hit.score == pytest.approx(0.8 * cosine + 0.2 * words, abs=1e-5)


def test_a_hit_carries_the_whole_tool_and_its_agent(board):
    (hit,) = board.search("convert currency", 1, mode="text")

    assert (hit.tool.id, hit.agent.id, hit.agent.kind) == (
        "finance/finance/convert_currency",
        "finance/finance",
        "library",
    )
    assert hit.tool.input_schema["properties"]["amount"] == {"type": "number"}
    assert hit.tool.tags == ("money", "office")
    assert board.tool(hit.tool.id) == hit.tool


def test_agents_and_tools_are_there_by_id(board):
    assert [agent.id for agent in board.list_agents()] == [
        "desk/desk", "finance/finance", "kit/git", "kit/o'brien's", "kit/weather", "kit/天気",
    ]  # fmt: skip
    assert board.tool("kit/git/create_issue").name == "create_issue"
    assert board.tool("kit/git/unknown") is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 3, 14, 1000])
def test_as_many_hits_come_back_as_are_wanted_and_there(board, mode, k):
    hits = board.search("the", k, mode=mode)

    assert len(hits) == min(
        k, 14 if mode != "text" else len(board.search("the", 1000, mode="text"))
    )
    assert hits == board.search("the", 1000, mode=mode)[:k]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000"])
def test_a_blank_query_finds_nothing(board, mode, query):
    assert board.search(query, mode=mode) == []


@pytest.mark.parametrize("query", ["🙂", "—", "_", "\x00"])
def test_a_query_without_words_finds_nothing_by_text_and_still_something_by_vector(board, query):
    assert board.search(query, mode="text") == []
    assert len(board.search(query, 3, mode="vector")) == 3
    assert names(board.search(query, 3)) == names(board.search(query, 3, mode="vector"))


def test_a_query_with_a_lone_surrogate_is_refused_by_the_encoder_and_harmless_in_text(board):
    assert board.search("\ud800 tides", 1, mode="text")[0].tool.name == "getTides_v2"
    with pytest.raises(EncoderError, match="not valid Unicode"):
        board.search("\ud800 tides")


@pytest.mark.parametrize("k", [0, -1])
def test_an_impossible_k_is_refused(board, k):
    with pytest.raises(QueryError, match=f"k is {k}; expected the number of tools"):
        board.search("anything", k)


def test_an_unknown_mode_is_refused_with_those_there_are(board):
    with pytest.raises(
        QueryError, match=r"Unknown mode 'fuzzy'. Expected one of: hybrid, vector, text"
    ):
        board.search("anything", mode="fuzzy")


def test_an_unknown_index_is_refused_with_those_there_are(board):
    with pytest.raises(BoardNotFound, match=r"has no index 'small'. It has: fine, full"):
        board.search("anything", index="small")


@pytest.mark.parametrize("query", ["anything", ""])
def test_an_unknown_filter_is_refused_even_for_a_blank_query(board, query):
    with pytest.raises(QueryError, match="no field 'owner'"):
        board.search(query, where={"owner": "git"})


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
        ({"agent": []}, set()),
    ],
)
def test_a_filter_narrows_every_mode(board, mode, where, expected):
    # Every word of every document, so that the text search finds all that pass.
    words = (
        "the a an of from to for its lists lunch 東京の天気予報 into another what you i repository"
    )
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


def test_words_and_a_vector_of_ones_own_are_searched_together(board_uri, encoder, other_encoder):
    # The encoder of another fingerprint is never asked: the caller encoded the request.
    board = pegboard.open(board_uri, encoder=other_encoder)
    vector = encoder.encode(["high tide"])[0]

    hits = board.search("deletes", 2, vector=vector)

    assert {name for hit in hits for name in hit.why} == {"vector", "text"}
    assert set(names(hits)) == {"delete_repository", "getTides_v2"}
    assert names(board.search("", 1, vector=vector)) == ["getTides_v2"]


@pytest.mark.parametrize(
    "shape",
    [(0,), (1,), (255,), (257,), (1, 256), (2, 256), (256, 1)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_a_vector_of_another_shape_is_refused_with_both_shapes(board, encoder, shape):
    assert encoder.dimensions == 256
    with pytest.raises(QueryError) as error:
        board.search(np.full(shape, 0.5).tolist())

    assert str(shape) in str(error.value)
    assert "256 dimensions" in str(error.value)
    assert encoder.name in str(error.value)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_a_vector_without_a_direction_is_refused(board, encoder, value):
    with pytest.raises(QueryError, match="zero or not finite"):
        board.search([value] * encoder.dimensions)


def test_a_vector_cannot_be_searched_as_text(board, encoder):
    with pytest.raises(QueryError, match="Give it as text"):
        board.search([0.5] * encoder.dimensions, mode="text")


def test_a_board_without_tools_finds_nothing(workshop, encoder):
    workshop.publish({"git": []})
    board = pegboard.open(workshop.uri, encoder=encoder)

    assert [board.search("anything", mode=mode) for mode in MODES] == [[], [], []]
    assert [agent.name for agent in board.list_agents()] == ["git"]


def test_an_address_without_a_board_is_refused(tmp_path):
    with pytest.raises(BoardNotFound, match=r"no board at .*pegboard build"):
        pegboard.open(str(tmp_path))


def test_an_unknown_channel_is_refused_with_those_there_are(board_uri):
    with pytest.raises(BoardNotFound, match="no channel 'canary'; it has: live"):
        pegboard.open(board_uri, channel="canary")


def test_a_release_of_a_later_contract_is_refused(own_board_uri):
    with pytest.raises(ContractMismatch, match="contract 99; this version of pegboard reads 1"):
        pegboard.open(own_board_uri, release=forge(own_board_uri, contract=99))


def test_another_encoder_is_refused_with_both_fingerprints_and_text_still_works(
    board_uri, encoder, other_encoder
):
    board = pegboard.open(board_uri, encoder=other_encoder)

    for mode in ("hybrid", "vector"):
        with pytest.raises(FingerprintMismatch) as error:
            board.search("anything", mode=mode)
        assert other_encoder.fingerprint in str(error.value)
        assert encoder.fingerprint in str(error.value)
    assert names(board.search("high tide", 1, mode="text")) == ["getTides_v2"]


def test_a_release_that_an_other_version_of_the_encoder_made_is_refused(own_board_uri, encoder):
    board = pegboard.open(
        own_board_uri, release=forge(own_board_uri, index={"fingerprint": "other-weights"})
    )

    with pytest.raises(FingerprintMismatch) as error:
        board.search("anything")
    assert "other-weights" in str(error.value)
    assert encoder.fingerprint in str(error.value)


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


def test_options_of_the_reader_itself_reach_the_encoder(own_board_uri):
    release = forge(own_board_uri, index={"encoder": "local/all-MiniLM-L6-v2"})

    def search(**options):
        return pegboard.open(own_board_uri, release=release, encoder_options=options).search(
            "anything"
        )

    with pytest.raises(EncoderError, match="/nowhere"):
        search(folder="/nowhere")
    with pytest.raises(ConfigurationError, match="no option api_base"):
        search(api_base="http://127.0.0.1:9/")


@pytest.mark.parametrize("rows", [50_000, 0])
def test_a_reader_follows_a_promotion_by_itself_and_swaps_whole(two_releases, encoder, rows):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0, in_memory_rows=rows)

    for release, prefix in ((first, "old"), (second, "new"), (first, "old")):
        workshop.store.promote(release.id)
        for mode in MODES:
            assert all(
                name.startswith(prefix) for name in names(board.search("task", 24, mode=mode))
            )
        assert len(board.search("task", 24)) == 12
        assert board.release.id == release.id
        assert [agent.name for agent in board.list_agents()] == [prefix]


def test_a_reader_looks_no_sooner_than_it_was_told(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600)
    workshop.store.promote(second.id)

    assert board.release.id == first.id


def test_a_reader_of_a_release_stays_on_it(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, release=second.id[:8], encoder=encoder, refresh=0)
    workshop.store.promote(second.id)
    workshop.store.promote(first.id)

    assert board.release == second
    assert names(board.search("task", 1))[0].startswith("new")


def test_a_reader_follows_the_channel_that_it_was_given(two_releases, encoder):
    workshop, first, second = two_releases
    workshop.store.promote(second.id, "canary")
    board = pegboard.open(workshop.uri, "canary", encoder=encoder, refresh=0)

    assert board.release == second
    workshop.store.promote(first.id, "canary")
    assert board.release == first


def test_a_reader_goes_on_while_the_store_is_away_and_follows_again_when_it_is_back(
    two_releases, encoder
):
    workshop, _, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    before = board.search("task", 12)
    away = Path(shutil.move(workshop.uri, f"{workshop.uri}-away"))

    assert board.search("task", 12) == before
    assert board.tool(before[0].tool.id) == before[0].tool

    away.rename(workshop.uri)
    workshop.store.promote(second.id)
    assert board.release.id == second.id


@pytest.mark.parametrize("rows", [50_000, 0])
def test_threads_share_a_board_and_every_answer_is_of_one_release(two_releases, encoder, rows):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0, in_memory_rows=rows)
    vector = encoder.encode(["task"])[0]
    stop, seen = Event(), set()

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
