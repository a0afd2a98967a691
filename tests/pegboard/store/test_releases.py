"""Releases and channels: what is published, what is live, and that two publishers never overwrite
each other unnoticed.
"""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from pegboard.errors import BoardNotFound, ConfigurationError, PromotionConflict, StoreError
from pegboard.store.contract import table_schema
from pegboard.store.releases import HISTORY_KEPT, Channel, Pin, Release, ReleaseStore
from tests.children import start_child

START = datetime(2026, 1, 1, tzinfo=UTC)


def release(number):
    digest = f"{number:012x}" + "0" * 52
    pins = {"tools": Pin("tools", number + 1, 5, "d" * 64, "c" * 64)}
    return Release(
        digest[:12],
        digest,
        1,
        START + timedelta(hours=number),
        pins,
        {"counts": {"tools": 5}, "né": "天気"},
    )


def ids(count):
    return [release(number).id for number in range(count)]


@pytest.fixture
def store(tmp_path):
    """A board with three releases and no channel."""
    store = ReleaseStore(str(tmp_path))
    store.create()
    for number in range(3):
        store.add(release(number))
    return store


def test_releases_come_back_as_they_were_added_and_adding_again_changes_nothing(store):
    ReleaseStore(store.uri).create()

    assert store.add(release(0)) is False
    assert store.all() == [release(number) for number in (2, 1, 0)]
    assert store.get(release(1).id) == release(1)


def test_more_than_ten_releases_are_all_listed_newest_first(store):
    for number in range(3, 14):
        store.add(release(number))
        _put(store, Channel(f"channel-{number}", release(number).id, 1, START, ()))

    assert [one.id for one in store.all()] == ids(14)[::-1]
    assert len(store.channels()) == 11
    with pytest.raises(BoardNotFound, match=r"\.\.\.\.$"):
        store.get("ffff")


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(store):
    other = "f" * 64
    store.add(Release(other[:12], other, 1, START, {}, {}))

    assert store.get("ff").id == other[:12]
    with pytest.raises(
        BoardNotFound, match=r"several releases whose ids begin with '0000'.*It has: 0"
    ):
        store.get("0000")


@pytest.mark.parametrize(
    "unknown", ["abc", "", "x' OR 1=1 --", "live", "' OR starts_with(release, '0", "天"]
)
def test_an_unknown_release_is_refused_with_those_there_are(store, unknown):
    for ask in (store.get, store.promote):
        with pytest.raises(BoardNotFound, match=ids(3)[1]):
            ask(unknown)
    assert store.channels() == []


def test_promoting_moves_a_channel_and_remembers_where_it_was(store):
    first, second, third = ids(3)

    assert store.channel() is None
    assert store.promote(first).generation == 1
    store.promote(second)
    moved = store.promote(third[:12], "live")

    assert (moved.name, moved.release, moved.generation, moved.history) == (
        "live",
        third,
        3,
        (second, first),
    )
    assert store.channel("live") == moved
    assert moved.updated_at > START


def test_promotion_keeps_each_release_once_in_the_history_and_again_changes_nothing(store):
    first, second, third = ids(3)
    for one in (first, second, third, first):
        moved = store.promote(one)

    assert store.channel().history == (third, second)
    assert store.promote(first) == moved == store.channel()


def test_rolling_back_goes_one_release_back_each_time(store):
    first, second, third = ids(3)
    for one in (first, second, third):
        store.promote(one)

    assert (store.rollback().release, store.rollback().release) == (second, first)
    assert store.channel().generation == 5
    with pytest.raises(BoardNotFound, match="no earlier release"):
        store.rollback()
    assert store.channel().release == first


def test_what_was_rolled_back_from_is_withdrawn_until_it_is_promoted_again(store):
    first, second, third = ids(3)
    for one in (first, second, third):
        store.promote(one)

    assert store.rollback().withdrawn == (third,)
    assert store.rollback().withdrawn == (second, third)
    assert store.promote(third).withdrawn == (second,)
    assert (store.channel().history, store.channel().withdrawn) == ((first,), (second,))


def test_rolling_back_a_channel_that_never_was_says_so(store):
    with pytest.raises(
        BoardNotFound, match=r"Channel 'canary' of the board at .* has no earlier release"
    ):
        store.rollback("canary")


def test_rolling_back_passes_over_releases_that_were_pruned(store):
    store.add(release(3))
    for one in ids(4):
        store.promote(one)
    store.database.open_table("releases").delete(f"release IN ('{ids(3)[2]}', '{ids(3)[0]}')")

    assert store.rollback().release == ids(3)[1]
    assert store.channel().history == ()
    store.database.open_table("releases").delete(f"release = '{ids(3)[2]}'")
    store.promote(ids(4)[3])
    store.database.open_table("releases").delete(f"release = '{ids(3)[1]}'")
    with pytest.raises(
        BoardNotFound,
        match=f"no earlier release to go back to; those it had before were pruned: {ids(3)[1]}",
    ):
        store.rollback()
    assert store.channel().release == ids(4)[3]


def test_channels_move_on_their_own(store):
    first, second, _ = ids(3)
    store.promote(first, "live")
    store.promote(second, "canary")

    assert {channel.name: channel.release for channel in store.channels()} == {
        "live": first,
        "canary": second,
    }


def test_the_history_does_not_grow_without_end(store):
    first, second, _ = ids(3)
    long = Channel(
        "live",
        first,
        90,
        START,
        tuple(f"{number:012x}" for number in range(100, 100 + HISTORY_KEPT)),
    )
    _put(store, long)

    kept = store.promote(second).history
    assert (len(kept), kept[0], kept[-1]) == (HISTORY_KEPT, first, long.history[-2])


def _put(store, channel):
    row = {"channel": channel.name, "release": channel.release, "generation": channel.generation}
    row |= {"updated_at": channel.updated_at, "history": list(channel.history)}
    store.database.open_table("channels").add(
        pa.Table.from_pylist([row], schema=table_schema("channels"))
    )


@pytest.mark.parametrize("expected", [0, 1, 3, 99])
def test_a_promotion_from_another_generation_leaves_everything_as_it_was(store, expected):
    first, second, third = ids(3)
    store.promote(first)
    before = store.promote(second)

    with pytest.raises(
        PromotionConflict, match=f"from generation {expected}, but it is at generation 2 .*{second}"
    ):
        store.promote(third, expected=expected)

    assert store.channel() == before
    assert store.promote(third, expected=2).generation == 3


def test_a_promotion_that_expects_a_channel_where_there_is_none_is_refused(store):
    with pytest.raises(PromotionConflict, match="at generation 0"):
        store.promote(ids(3)[0], expected=4)
    assert store.channels() == []


@pytest.mark.parametrize(
    "name", ["", "a b", "live' OR 1=1", "-x", "x" * 65, "天気", "a/b", "live\n"]
)
def test_a_channel_with_an_impossible_name_is_refused(store, name):
    with pytest.raises(ConfigurationError, match="A channel cannot be named"):
        store.promote(ids(3)[0], name)
    assert store.channels() == []


def test_a_folder_that_is_no_board_is_refused_and_not_made(tmp_path):
    store = ReleaseStore(str(tmp_path / "nowhere"))

    for ask in (
        store.all,
        store.channels,
        lambda: store.get("a"),
        lambda: store.promote("a"),
        store.rollback,
    ):
        with pytest.raises(BoardNotFound, match=r"There is no board at .*nowhere"):
            ask()
    assert not (tmp_path / "nowhere").exists()


def test_a_store_that_cannot_be_reached_is_a_store_error_without_its_credentials():
    store = ReleaseStore("nosuchscheme://user:hunter2@bucket/board?token=hunter2")

    with pytest.raises(StoreError, match="nosuchscheme://bucket/board") as error:
        store.all()
    assert "hunter2" not in str(error.value).split("did not do what was asked")[0]


RACE = """
import json, sys, time
from pathlib import Path
from pegboard.errors import PromotionConflict
from pegboard.store.releases import ReleaseStore

uri, mine, folder = sys.argv[1], sys.argv[2].split(), Path(sys.argv[3])
store = ReleaseStore(uri)
store.get(mine[0])
(folder / f"ready-{mine[0]}").touch()
while not (folder / "go").exists():
    time.sleep(0.001)

won_first, won = [], []
for number in range(8):
    try:
        store.promote(mine[0], f"first-{number}", expected=0)
        won_first.append(number)
    except PromotionConflict:
        pass
for attempt in range(20):
    now = store.channel("live")
    one = mine[0] if now is None or now.release != mine[0] else mine[1]
    try:
        won.append(store.promote(one, "live", expected=now.generation if now else 0).generation)
    except PromotionConflict:
        pass
print(json.dumps([won_first, won]))
"""


def test_of_three_processes_that_promote_at_once_exactly_one_wins_each_generation(store, tmp_path):
    for number in range(3, 6):
        store.add(release(number))
    pairs = [ids(6)[at : at + 2] for at in (0, 2, 4)]
    racers = [
        start_child(
            [sys.executable, "-c", RACE, store.uri, " ".join(pair), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pair in pairs
    ]
    try:
        while len(list(tmp_path.glob("ready-*"))) < 3 and all(
            racer.poll() is None for racer in racers
        ):
            time.sleep(0.01)
        (tmp_path / "go").touch()
        results = [racer.communicate() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()

    assert [racer.returncode for racer in racers] == [0, 0, 0], [errors for _, errors in results]
    firsts, wins = zip(*(json.loads(output) for output, _ in results), strict=True)
    winner = {one: number for number, pair in enumerate(pairs) for one in pair}
    assert sorted(number for won in firsts for number in won) == list(
        range(8)
    )  # each channel was made once
    for number in range(8):
        first = store.channel(f"first-{number}")
        assert first.generation == 1
        assert number in firsts[winner[first.release]]
    generations = sorted(generation for won in wins for generation in won)
    assert generations == list(
        range(1, len(generations) + 1)
    )  # no generation was won twice, and none was lost
    last = store.channel("live")
    assert last.generation == len(generations)
    assert last.generation in wins[winner[last.release]]
    assert len(store.channels()) == 9
