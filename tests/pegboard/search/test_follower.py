"""A board that is read all day: what it does while the store is away, after a release was pruned,
and within an event loop.
"""

import asyncio
import logging
import shutil
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import lance
import pytest

import pegboard
from pegboard import opening
from pegboard.errors import BoardNotFound, StoreError
from pegboard.ranker.model import default_ranker
from pegboard.search.follower import ChannelFollower


@pytest.fixture
def board(two_releases, encoder):
    """A reader of the board that looks at the channel in every call and was searched once."""
    workshop, _, _ = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    assert names(board) == {"old"}
    return board


def names(board):
    return {hit.tool.name[:3] for hit in board.search("task", 12)}


def until(condition):
    """Wait for something that another thread does; the test's own limit ends it."""
    while not condition():
        time.sleep(0.01)


def move_away(uri):
    """Take a board away; returns where it is, to be renamed back."""
    return Path(shutil.move(uri, f"{uri}-away"))


def test_a_board_reports_its_release_and_its_age(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)

    opened = board.status()
    assert (opened.release, opened.channel, opened.generation) == (first.id, "live", 3)
    assert opened.error is None
    assert opened.checked_at >= opened.loaded_at
    assert 0 <= opened.age_seconds < board.status().age_seconds
    workshop.store.promote(second.id)
    assert board.status().release == first.id  # status() does not look by itself
    assert board.release.id == board.status().release == second.id
    assert board.status().generation == 4
    assert board.status().loaded_at > opened.loaded_at
    fixed = pegboard.open(workshop.uri, release=first.id, encoder=encoder, refresh=0).status()
    assert (fixed.release, fixed.channel, fixed.generation) == (first.id, None, None)
    assert fixed.age_seconds == 0.0


def test_an_outage_and_its_end_are_logged_once(two_releases, board, caplog):
    workshop, first, second = two_releases
    checked = board.status().checked_at
    with caplog.at_level(logging.INFO, "pegboard"):
        for _ in range(2):
            caplog.clear()
            away = move_away(workshop.uri)
            for _ in range(5):
                assert names(board) == {"old"}
            assert "There is no board at" in board.status().error
            assert board.status().checked_at >= checked
            (warning,) = caplog.records
            assert warning.levelname == "WARNING"
            assert first.id in warning.getMessage()
            assert "There is no board at" in warning.getMessage()

            away.rename(workshop.uri)
            until(lambda: board.release.id == first.id and board.status().error is None)
            assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    workshop.store.promote(second.id)
    assert board.release.id == second.id


def test_a_new_release_is_swapped_in_once_it_can_be_loaded(two_releases, board):
    workshop, first, second = two_releases
    workshop.store.promote(second.id)
    manifests = Path(workshop.uri, "tables", "agents.lance", "_versions")
    away = move_away(manifests)

    assert names(board) == {"old"}
    assert "is recorded with version" in board.status().error
    assert board.status().release == first.id
    away.rename(manifests)
    until(lambda: names(board) == {"new"})
    assert board.status().error is None


def move_to(workshop, release, manifest=None, **index):
    """Move the channel, as a writer that checks nothing, to a release with another manifest."""
    entry = {**release.manifest["indexes"]["full"], **index}
    manifest = {**release.manifest, "indexes": {"full": entry}, **(manifest or {})}
    workshop.store.add(replace(release, id="f" * 12, digest="f" * 64, manifest=manifest))
    live = workshop.store.channel()
    moved = replace(live, release="f" * 12, generation=live.generation + 1)
    assert workshop.store._compare_and_set(moved, live.generation)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"encoder": "openai/of-a-new-release"}, "names the hosted encoder"),
        ({"encoder": "hashing/8"}, "with fingerprint hashing-8/1"),
        ({"encoder": "hashing/8", "fingerprint": "hashing-8/1"}, "has the shape (8,)"),
        ({"ranker": {**default_ranker().to_dict(), "version": 99}}, "ranker is of version 99"),
        ({"ranker": None}, "indexes.full.ranker is None, expected an object"),
        ({"language": "klingon"}, "indexes.full.language is 'klingon', expected one of"),
        ({"dimensions": 300}, "expected fixed_size_list"),
        ({"manifest": {"strategy": {"name": "x", "refine": ["no-part"]}}}, "names the part"),
    ],
)
def test_a_reader_keeps_its_release_if_the_new_one_cannot_answer(
    two_releases, caplog, changes, why
):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, refresh=0)
    move_to(workshop, second, **changes)

    with caplog.at_level(logging.WARNING, "pegboard"):
        for _ in range(3):
            assert {hit.tool.name[:3] for hit in board.find("task", 12)} == {"old"}
    assert board.status().release == first.id
    assert why in board.status().error
    (warning,) = caplog.records
    assert why in warning.getMessage()
    workshop.store.promote(second.id)
    until(lambda: names(board) == {"new"})
    assert board.status().error is None


@pytest.mark.parametrize("rows", [50_000, 0])
def test_a_reader_of_a_pruned_release_swaps_at_once(two_releases, encoder, rows):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600, in_memory_rows=rows)
    workshop.store.promote(second.id)
    pruned = data_files(workshop, first) - data_files(workshop, second)
    assert pruned
    for path in pruned:
        path.unlink()

    assert names(board) == {"new"}
    assert board.status().release == second.id
    assert [agent.name for agent in board.list_agents()] == ["new"]


def data_files(workshop, release):
    paths = set()
    for pin in release.tables.values():
        folder = Path(workshop.uri, "tables", f"{pin.table}.lance")
        for fragment in lance.dataset(str(folder), version=pin.version).get_fragments():
            paths |= {folder / "data" / file.path for file in fragment.data_files()}
    return paths


def test_a_board_pinned_to_a_pruned_release_reports_it(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, release=first.id, encoder=encoder, in_memory_rows=0)
    workshop.store.promote(second.id)
    for path in data_files(workshop, first):
        path.unlink()
    with pytest.raises(StoreError, match="cannot be read: a file of it is damaged or missing"):
        board.search("task")
    workshop.store.database.open_table("releases").delete(f"release = '{first.id}'")

    with pytest.raises(BoardNotFound, match=f"no release '{first.id}'. It has: {second.id}"):
        board.search("task")


@pytest.fixture
def slow():
    """A channel that answers at once the first time, then when `answer` is set, and its reads."""
    entered = threading.Event()
    answer = threading.Event()
    reads = []
    loaded = SimpleNamespace(release=SimpleNamespace(id="a"))

    def read():
        reads.append(threading.get_ident())
        if len(reads) > 1:
            entered.set()
            answer.wait()
        if len(reads) in (2, 3):
            raise StoreError("away")
        return pegboard.Channel("live", "a", 1, datetime.now(UTC), ())

    yield ChannelFollower(read, lambda _: loaded, lambda _: None, refresh=0), entered, answer, reads
    answer.set()


def test_one_of_many_threads_checks_and_the_others_do_not_wait(slow):
    follower, entered, answer, reads = slow
    looker = threading.Thread(target=follower.current)
    looker.start()
    entered.wait()

    for _ in range(100):
        assert follower.current() is not None  # returns while the other thread still looks
    assert len(reads) == 2
    answer.set()
    looker.join()


def test_no_call_waits_for_a_store_that_is_known_to_be_unreachable(slow):
    follower, _, answer, reads = slow
    answer.set()
    follower.current()
    assert follower.status().error == "away"
    answer.clear()

    for _ in range(100):
        assert follower.current() is not None  # returns, though the store does not answer
    assert len(reads) == 3
    answer.set()
    until(lambda: follower.current() and follower.status().error is None)


@pytest.mark.parametrize("rows", [50_000, 0])
def test_opening_and_searching_boards_does_not_block_the_event_loop(
    two_releases, encoder, rows, monkeypatch
):
    workshop, _, _ = two_releases
    goes_on = threading.Event()  # set by the event loop: what blocks the loop would wait forever

    def after_the_loop(function):
        def wait(*arguments, **options):
            goes_on.wait()
            return function(*arguments, **options)

        return wait

    monkeypatch.setattr(opening, "open_board", after_the_loop(opening.open_board))
    fields = {name: getattr(encoder, name) for name in ("name", "fingerprint", "dimensions")}
    waiting = SimpleNamespace(encode=after_the_loop(encoder.encode), **fields)

    async def serve():
        opening = pegboard.open_async(workshop.uri, encoder=waiting, refresh=0, in_memory_rows=rows)
        opened = asyncio.create_task(opening)
        await asyncio.sleep(0.01)
        goes_on.set()
        async with await opened as board:
            goes_on.clear()
            modes = ("hybrid", "vector", "text") * 10
            tasks = [asyncio.create_task(board.search("task", 12, mode=mode)) for mode in modes]
            await asyncio.sleep(0.01)
            goes_on.set()
            return [hit.tool.name[:3] for hits in await asyncio.gather(*tasks) for hit in hits]

    assert asyncio.run(serve()) == ["old"] * 360


async def found_by_a_loop(board):
    return (await pegboard.AsyncBoard(board).find("task")).release


FIRST_CALLS = {
    "search": lambda board: board.search("task", 12)[0].release,
    "find": lambda board: board.find("task", 12).release,
    "find in an event loop": lambda board: asyncio.run(found_by_a_loop(board)),
    "search_agents": lambda board: board.search_agents("task")[0].release,
    "tool_names": lambda board: board.tool_names()[0],
    "at_current_release": lambda board: board.at_current_release().find("task").release,
    "restricted": lambda board: board.restricted(["kit/fourth/fourth_1"]).find("task").release,
}


@pytest.mark.parametrize("rows", [50_000, 0])
def test_a_reader_whose_release_was_pruned_before_its_first_call_moves_to_the_live_one(
    two_releases, encoder, rows, publish_and_prune
):
    workshop, first, _ = two_releases
    boards = [
        pegboard.open(workshop.uri, encoder=encoder, refresh=3600, in_memory_rows=rows)
        for _ in FIRST_CALLS
    ]
    assert {board.status().release for board in boards} == {first.id}
    assert first.id in publish_and_prune(workshop).removed

    answered_from = {
        name: call(board) for board, (name, call) in zip(boards, FIRST_CALLS.items(), strict=True)
    }

    assert answered_from == dict.fromkeys(FIRST_CALLS, workshop.store.channel().release)


def test_a_board_that_stays_at_a_release_answers_after_the_release_was_pruned(
    two_releases, encoder, publish_and_prune
):
    workshop, first, _ = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600)
    staying = board.at_current_release()
    restricted = board.restricted(["kit/old/old_1"])
    assert first.id in publish_and_prune(workshop).removed

    assert {hit.release for hit in staying.find("task", 12)} == {first.id}
    assert [agent.agent.name for agent in staying.search_agents("task")] == ["old"]
    assert [hit.tool.name for hit in restricted.find("task", 12)] == ["old_1"]
    assert staying.graph is not None
