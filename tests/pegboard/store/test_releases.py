"""Releases and channels: what is published, what is live, and no lost updates."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import BoardNotFound, ConfigurationError, PromotionConflict, StoreError
from pegboard.store.releases import Pin, Release, ReleaseStore

START = datetime(2026, 1, 1, tzinfo=UTC)


def release(number):
    digest = f"{number:012x}" + "0" * 52
    pins = {"tools": Pin("tools", number + 1, 5, "d" * 64, "c" * 64)}
    created = START + timedelta(hours=number)
    manifest = {"counts": {"tools": 5}, "né": "天気"}
    return Release(digest[:12], digest, 1, created, pins, manifest)


def ids(count):
    return [release(number).id for number in range(count)]


def new_store(folder, releases=3):
    store = ReleaseStore(str(folder))
    store.create()
    for number in range(releases):
        store.add(release(number))
    return store


@pytest.fixture
def store(tmp_path):
    """A board with three releases and no channel."""
    return new_store(tmp_path)


def test_a_release_is_read_as_added_and_adding_it_again_changes_nothing(store):
    ReleaseStore(store.uri).create()

    assert store.add(release(0)) is False
    assert store.all() == [release(number) for number in (2, 1, 0)]
    assert store.get(release(1).id) == release(1)


def test_a_prefix_of_an_id_is_enough_if_it_is_unique(store):
    other = "f" * 64
    store.add(Release(other[:12], other, 1, START, {}, {}))

    assert store.get("ff").id == other[:12]
    match = r"several releases whose ids begin with '0000'.*It has: 0"
    with pytest.raises(BoardNotFound, match=match):
        store.get("0000")


@pytest.mark.parametrize(
    "unknown", ["abc", "", "x' OR 1=1 --", "live", "' OR starts_with(release, '0", "天"]
)
def test_an_unknown_release_is_reported_with_the_existing_ones(store, unknown):
    for call in (store.get, store.promote):
        with pytest.raises(BoardNotFound, match=ids(3)[1]):
            call(unknown)
    assert store.channels() == []


class Model:
    """What a channel has to be, in the simplest way."""

    def __init__(self):
        self.release = None
        self.generation = 0
        self.history = []
        self.withdrawn = []

    def promote(self, release):
        if release != self.release:
            before = [self.release, *self.history] if self.release else []
            self.history = [old for old in before if old != release]
            self.withdrawn = [old for old in self.withdrawn if old != release]
            self.release, self.generation = release, self.generation + 1

    def rollback(self, recorded):
        history = [old for old in self.history if old in recorded]
        if not history:
            return False
        withdrawn = [old for old in self.withdrawn if old not in (self.release, history[0])]
        self.withdrawn = [self.release, *withdrawn]
        self.release, *self.history = history
        self.generation += 1
        return True

    def state(self):
        return (self.release, self.generation, tuple(self.history), tuple(self.withdrawn))


ACTIONS = st.tuples(
    st.sampled_from(["promote", "promote", "rollback", "prune"]),
    st.sampled_from(["live", "canary"]),
    st.sampled_from(ids(4)),
)


@settings(max_examples=15)
@given(st.lists(ACTIONS, max_size=9))
def test_channels_move_independently_and_keep_their_history(tmp_path_factory, actions):
    store = new_store(tmp_path_factory.mktemp("board"), 4)
    recorded = set(ids(4))
    models = {"live": Model(), "canary": Model()}

    for action, name, identity in actions:
        model = models[name]
        if action == "prune" and not {identity} & {model.release for model in models.values()}:
            store.database.open_table("releases").delete(f"release = '{identity}'")
            recorded.discard(identity)
        elif action == "promote" and identity in recorded:
            model.promote(identity)
            assert store.promote(identity, name) == store.channel(name)
        elif action == "rollback" and model.rollback(recorded):
            assert store.rollback(name) == store.channel(name)
        elif action == "rollback":
            with pytest.raises(BoardNotFound, match=f"Channel '{name}' of .* no earlier release"):
                store.rollback(name)
        for channel in store.channels():
            state = (channel.release, channel.generation, channel.history, channel.withdrawn)
            assert state == models[channel.name].state()
    assert len(store.channels()) == sum(model.generation > 0 for model in models.values())


def test_rolling_back_names_the_releases_that_were_pruned(store):
    first, second, _ = ids(3)
    store.promote(first)
    store.promote(second)
    store.database.open_table("releases").delete(f"release = '{first}'")

    match = f"no earlier release; those it had before were pruned: {first}"
    with pytest.raises(BoardNotFound, match=match):
        store.rollback()
    assert store.channel().release == second


@pytest.mark.parametrize("expected", [0, 1, 3, 99])
def test_a_promotion_from_another_generation_changes_nothing(store, expected):
    first, second, third = ids(3)
    with pytest.raises(PromotionConflict, match="at generation 0"):
        store.promote(third, expected=4)
    assert store.channels() == []
    store.promote(first)
    before = store.promote(second)

    match = f"from generation {expected}, but it is at generation 2 .*{second}"
    with pytest.raises(PromotionConflict, match=match):
        store.promote(third, expected=expected)

    assert store.channel() == before
    assert store.promote(third, expected=2).generation == 3


@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "live' OR 1=1", "-x", "x" * 65, "天気", "a/b", "live\n"),
        *("a..b", "a.", "a.lock", "0123456789ab-v3"),  # no tags of Lance, or those of a release
    ],
)
def test_an_invalid_channel_name_is_refused(store, name):
    with pytest.raises(ConfigurationError, match="A channel cannot be named"):
        store.promote(ids(3)[0], name)
    assert store.channels() == []


def test_a_store_that_cannot_be_reached_is_a_store_error_without_its_credentials():
    store = ReleaseStore("nosuchscheme://user:hunter2@bucket/board?token=hunter2")

    with pytest.raises(StoreError, match="nosuchscheme://bucket/board") as error:
        store.all()
    assert "hunter2" not in str(error.value).split(" failed: ")[0]


def test_exactly_one_of_three_concurrent_publishers_wins_each_generation(store):
    for number in range(3, 6):
        store.add(release(number))
    pairs = [ids(6)[at : at + 2] for at in (0, 2, 4)]
    start = threading.Barrier(len(pairs))

    def race(pair):
        own = ReleaseStore(store.uri)
        created = []
        won = []
        own.get(pair[0])
        start.wait()
        for number in range(4):
            with contextlib.suppress(PromotionConflict):
                own.promote(pair[0], f"first-{number}", expected=0)
                created.append(number)
        for _ in range(8):
            now = own.channel("live")
            identity = pair[0] if now is None or now.release != pair[0] else pair[1]
            expected = now.generation if now else 0
            with contextlib.suppress(PromotionConflict):
                won.append(own.promote(identity, "live", expected=expected).generation)
        return created, won

    with ThreadPoolExecutor(len(pairs)) as pool:
        created, wins = zip(*pool.map(race, pairs), strict=True)

    owner = {identity: number for number, pair in enumerate(pairs) for identity in pair}
    # Each channel was created once.
    assert sorted(number for numbers in created for number in numbers) == list(range(4))
    for number in range(4):
        first = store.channel(f"first-{number}")
        assert first.generation == 1
        assert number in created[owner[first.release]]
    # No generation was won twice, and none was lost.
    generations = sorted(generation for won in wins for generation in won)
    assert generations == list(range(1, len(generations) + 1))
    last = store.channel("live")
    assert last.generation == len(generations)
    assert last.generation in wins[owner[last.release]]
    assert len(store.channels()) == 5
