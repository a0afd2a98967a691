"""A board that is read all day: what it does while the store is away, after a release was pruned,
and within an event loop.
"""

import asyncio
import gc
import logging
import shutil
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pegboard
from pegboard import opening
from pegboard.errors import BoardNotFound, StoreError
from pegboard.store.database import PUBLIC
from pegboard.store.follower import ChannelFollower


@pytest.fixture(params=["core", "public"])
def two_releases(request, two_releases, monkeypatch):
    """The board with two releases, read in both ways."""
    monkeypatch.setenv(PUBLIC, request.param)
    return two_releases


def names(hits):
    return {hit.tool.name[:3] for hit in hits}


def until(condition):
    """Wait for something that another thread does; the test's own limit ends it."""
    while not condition():
        time.sleep(0.01)


def spoil(uri, release):
    """Remove the files of a release's tables, as pruning does under a reader that was away for
    long.
    """
    for pin in release.tables.values():
        for folder in ("data", "_indices"):
            for file in Path(uri, "tables", f"{pin.table}.lance", folder).rglob("*"):
                if file.is_file():
                    file.unlink()


def test_a_board_says_what_it_answers_from_and_how_old_that_is(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)

    opened = board.status()
    assert (opened.release, opened.channel, opened.generation, opened.error) == (
        first.id,
        "live",
        3,
        None,
    )
    assert opened.checked_at >= opened.loaded_at
    assert 0 <= opened.age_seconds < board.status().age_seconds
    workshop.store.promote(second.id)
    assert board.status().release == first.id  # it looks at nothing by itself
    assert board.release.id == board.status().release == second.id
    assert board.status().generation == 4
    assert board.status().loaded_at > opened.loaded_at
    fixed = pegboard.open(workshop.uri, release=first.id, encoder=encoder, refresh=0).status()
    assert (fixed.release, fixed.channel, fixed.generation, fixed.age_seconds) == (
        first.id,
        None,
        None,
        0.0,
    )


def test_an_outage_is_warned_of_once_and_its_end_is_noted(two_releases, encoder, caplog):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    board.search("task")
    checked = board.status().checked_at
    with caplog.at_level(logging.INFO, "pegboard"):
        for _ in range(2):
            caplog.clear()
            away = Path(shutil.move(workshop.uri, f"{workshop.uri}-away"))
            for _ in range(5):
                assert names(board.search("task", 12)) == {"old"}
            status = board.status()
            assert "There is no board at" in status.error
            assert status.checked_at >= checked
            (warning,) = caplog.records
            assert warning.levelname == "WARNING"
            assert first.id in warning.getMessage()
            assert "There is no board at" in warning.getMessage()

            away.rename(workshop.uri)
            assert board.release.id == first.id
            assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
            assert board.status().error is None
    workshop.store.promote(second.id)
    assert board.release.id == second.id


def test_a_new_release_that_cannot_be_loaded_is_left_until_it_can(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    board.search("task")
    kept = shutil.copytree(workshop.uri, f"{workshop.uri}-copy")
    workshop.store.promote(second.id)
    manifests = Path(workshop.uri, "tables", "agents.lance", "_versions")
    shutil.rmtree(manifests)

    assert names(board.search("task", 12)) == {"old"}
    assert "is recorded with version" in board.status().error
    assert board.status().release == first.id
    shutil.copytree(Path(kept, "tables", "agents.lance", "_versions"), manifests)
    assert names(board.search("task", 12)) == {"new"}
    assert board.status().error is None


def test_while_the_store_is_away_a_board_looks_no_more_often_than_it_was_told(
    two_releases, encoder
):
    workshop, first, _ = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600, in_memory_rows=0)
    board.search("task")
    away = Path(shutil.move(workshop.uri, f"{workshop.uri}-away"))

    # The tables are away, so the channel is asked at once, and then not again before an hour has
    # passed.
    for _ in range(3):
        with pytest.raises(StoreError):
            board.search("task")
    assert board.status().error is not None
    away.rename(workshop.uri)
    assert names(board.search("task", 12)) == {"old"}
    assert board.status().error is not None
    assert board.status().release == first.id


@pytest.mark.parametrize("rows", [50_000, 0])
def test_a_reader_of_a_pruned_release_swaps_at_once(two_releases, encoder, rows):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=3600, in_memory_rows=rows)
    workshop.store.promote(second.id)
    kept = {path: path.read_bytes() for path in _only_of(workshop, first)}
    assert kept
    for path in kept:
        path.unlink()

    assert names(board.search("task", 12)) == {"new"}
    assert board.status().release == second.id
    assert [agent.name for agent in board.list_agents()] == ["new"]


def _only_of(workshop, release):
    """The data files that the other releases of the board do not need."""
    import lance

    def files(one):
        for pin in one.tables.values():
            place = Path(workshop.uri, "tables", f"{pin.table}.lance")
            for fragment in lance.dataset(str(place), version=pin.version).get_fragments():
                yield from (place / "data" / file.path for file in fragment.data_files())

    others = {path for one in workshop.store.all() if one.id != release.id for path in files(one)}
    return set(files(release)) - others


def test_a_board_fixed_to_a_release_that_was_pruned_says_so(two_releases, encoder):
    workshop, first, second = two_releases
    board = pegboard.open(workshop.uri, release=first.id, encoder=encoder, in_memory_rows=0)
    workshop.store.promote(second.id)
    spoil(workshop.uri, first)
    with pytest.raises(StoreError, match="did not do what was asked"):
        board.search("task")
    workshop.store.database.open_table("releases").delete(f"release = '{first.id}'")

    with pytest.raises(BoardNotFound, match=f"no release '{first.id}'. It has: {second.id}"):
        board.search("task")


def test_a_board_with_a_thread_in_the_background_swaps_between_calls(two_releases, encoder):
    workshop, first, second = two_releases
    with pegboard.open(workshop.uri, encoder=encoder, refresh=0.01, background=True) as board:
        board.search("task")
        workshop.store.promote(second.id)
        until(lambda: board.status().release == second.id)
        assert names(board.search("task", 12)) == {"new"}
        away = Path(shutil.move(workshop.uri, f"{workshop.uri}-away"))
        until(lambda: board.status().error)
        assert names(board.search("task", 12)) == {"new"}
        away.rename(workshop.uri)
        until(lambda: board.status().error is None)
    assert not _refreshing()
    workshop.store.promote(first.id)
    until(lambda: board.release.id == first.id)  # a closed board looks during calls


def test_the_thread_of_a_forgotten_board_ends(two_releases, encoder):
    workshop, _, _ = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0.01, background=True)
    assert _refreshing()
    del board
    gc.collect()
    until(lambda: not _refreshing())


def _refreshing():
    return [thread for thread in threading.enumerate() if thread.name == "pegboard-refresh"]


@pytest.fixture
def slow():
    """A channel that answers at once the first time, then when it is told to, and how often it was
    asked.
    """
    entered, answer, looks = threading.Event(), threading.Event(), []
    loaded = type("Loaded", (), {"release": type("Release", (), {"id": "a"})()})()

    def read():
        looks.append(threading.get_ident())
        if len(looks) > 1:
            entered.set()
            answer.wait()
        if len(looks) in (2, 3):
            raise StoreError("away")
        return pegboard.Channel("live", "a", 1, datetime.now(UTC), ())

    yield ChannelFollower(read, lambda _: loaded, refresh=0), entered, answer, looks
    answer.set()


def test_of_many_threads_one_looks_and_none_of_the_others_waits(slow):
    following, entered, answer, looks = slow
    looker = threading.Thread(target=following.current)
    looker.start()
    entered.wait()

    for _ in range(100):
        assert following.current() is not None  # returns while the other thread still looks
    assert len(looks) == 2
    answer.set()
    looker.join()


def test_once_the_store_is_known_to_be_away_no_call_waits_for_it(slow):
    following, _, answer, looks = slow
    answer.set()
    following.current()
    assert following.status().error == "away"
    answer.clear()

    for _ in range(100):
        assert following.current() is not None  # returns, though the store does not answer
    assert len(looks) == 3
    answer.set()
    until(lambda: following.current() and following.status().error is None)


@pytest.mark.parametrize("rows", [50_000, 0])
def test_an_event_loop_goes_on_while_boards_are_opened_and_searched(
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
    waiting = SimpleNamespace(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        dimensions=encoder.dimensions,
        encode=after_the_loop(encoder.encode),
    )

    async def serve():
        opened = asyncio.create_task(
            pegboard.open_async(workshop.uri, encoder=waiting, refresh=0, in_memory_rows=rows)
        )
        await asyncio.sleep(0.01)
        goes_on.set()
        async with await opened as board:
            goes_on.clear()
            searches = [
                asyncio.create_task(board.search("task", 12, mode=mode))
                for mode in ("hybrid", "vector", "text") * 10
            ]
            await asyncio.sleep(0.01)
            goes_on.set()
            return await asyncio.gather(*searches)

    assert [names(hits) for hits in asyncio.run(serve())] == [{"old"}] * 30


def test_a_cancelled_search_leaves_the_board_usable(two_releases, encoder):
    workshop, _, _ = two_releases

    async def serve():
        board = await pegboard.open_async(workshop.uri, encoder=encoder, in_memory_rows=0)
        asked = [asyncio.create_task(board.search("task")) for _ in range(20)]
        await asyncio.sleep(0)
        for one in asked:
            one.cancel()
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in outcomes)
        return await board.search("task", 12)

    assert names(asyncio.run(serve())) == {"old"}


def test_errors_reach_the_one_who_awaits(two_releases, tmp_path):
    async def ask():
        with pytest.raises(BoardNotFound, match="There is no board at"):
            await pegboard.open_async(str(tmp_path / "nowhere"))

    asyncio.run(ask())


def test_prepared_searches_are_prepared_before_a_swap(two_releases, encoder):
    workshop, _, second = two_releases
    board = pegboard.open(workshop.uri, encoder=encoder, refresh=0)
    board.search("task")
    workshop.store.promote(second.id)
    index = board._answer(lambda loaded: loaded.index("full"))

    assert board.release.id == second.id
    assert {"_vectors", "_postings"} <= set(index.__dict__)
    assert isinstance(index._vectors, np.ndarray)
