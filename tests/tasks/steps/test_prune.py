"""Pruning: what is kept, and that it stays whole whatever happens meanwhile."""

import os
import shutil
import threading
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import lance
import lancedb.table
import pytest
from lance.dataset import Tags as DatasetTags

import pegboard
from pegboard.errors import PromotionConflict
from pegboard.store.releases import Channel, Release
from pegboard.store.writing import open_table
from tasks.lake.files import Lake
from tasks.settings.configuration import KeepSettings
from tasks.steps import prune
from tasks.steps.maintain import open_dataset
from tasks.steps.prune import JOURNAL, kept_releases, prune_board
from tasks.steps.publish import is_whole, publish_release

DAY = timedelta(days=1)
NOW = datetime.now(UTC) + 2 * DAY
"""More than the grace period after all that these tests publish."""
SHORT = 1e-6  # hours


def Keep(releases=1, days=0, grace_hours=24):  # noqa: N802  reads as the settings
    return KeepSettings(releases=releases, days=days, grace_hours=grace_hours)


def names(number):
    return [f"tool_{number}_{one}" for one in range(4)]


def published(workshop, encoder, states, channel="live"):
    """A release for each state, oldest first."""
    return [
        workshop.publish(
            workshop.named(*names(0), *names(state)), encoder=encoder, channel=channel
        ).release
        for state in states
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory, workshop_type, hashing):
    """A board with four releases, the last of which is live, and these releases. Do not change
    it.
    """
    workshop = workshop_type(tmp_path_factory.mktemp("four"))
    return workshop.uri, published(workshop, hashing(8), range(1, 5))


@pytest.fixture
def four(workshop, shared):
    """The releases of a board with four, which is the workshop's."""
    uri, releases = shared
    shutil.copytree(uri, workshop.uri)
    return releases


def ids(releases):
    return tuple(one.id for one in releases)


def files(workshop):
    return {
        str(path.relative_to(workshop.uri))
        for path in (workshop.folder / "board").rglob("*")
        if path.is_file()
    }


def release(number, age):
    return Release(str(number), "", 3, NOW - age, {}, {})


def channel(name, *there):
    return Channel(name, there[0], 1, NOW, tuple(there[1:]))


@pytest.mark.parametrize(
    ("keep", "channels", "kept"),
    [
        (Keep(releases=2), [], "01"),
        (Keep(releases=1, days=4.5), [], "012"),
        (Keep(releases=1), [channel("live", "0", "3")], "03"),
        (Keep(releases=1), [channel("live", "2")], "02"),
        (Keep(releases=1), [channel("live", "0"), channel("audit", "4")], "04"),
        (Keep(releases=1), [channel("live", "0", "gone", "4", "3")], "04"),
        (Keep(releases=3), [channel("live", "0", "4", "3", "1")], "01234"),
        (Keep(releases=1, grace_hours=80), [], "012"),  # the one after 2 is 72 hours old
    ],
)
def test_needed_releases_are_kept(keep, channels, kept):
    releases = [release(number, (number + 2) * DAY) for number in range(5)]

    assert kept_releases(releases, channels, keep, NOW) == set(kept)


def test_unneeded_releases_are_removed_after_the_grace_period_of_their_successor(workshop, four):
    early = prune_board(workshop.uri, Keep(), four[3].created_at + DAY / 2)
    assert (early.kept, early.removed) == (ids(reversed(four)), ())

    later = prune_board(workshop.uri, Keep(), NOW)

    assert (later.kept, later.removed) == (ids([four[3], four[2]]), ids([four[1], four[0]]))
    assert later.bytes > 0
    assert ids(workshop.store.all()) == ids([four[3], four[2]])
    for one in four[2:]:
        assert is_whole(workshop.store, workshop.store.get(one.id))
    for one in four[:2]:
        assert not is_whole(workshop.store, one)
    assert workshop.store.rollback().release == four[2].id


def test_a_dry_run_reports_what_would_be_removed_and_changes_nothing(workshop, four):
    before = files(workshop)

    dry = prune_board(workshop.uri, Keep(), NOW, dry_run=True)

    assert files(workshop) == before
    assert dry.removed == ids([four[1], four[0]])
    done = prune_board(workshop.uri, Keep(), NOW)
    assert (done.removed, done.tables) == (dry.removed, dry.tables)
    assert done.bytes >= dry.bytes > 0


def test_a_board_that_is_pruned_regularly_does_not_grow(workshop, hashing):
    encoder = hashing(8)
    sizes = []
    for night in range(8):
        published(workshop, encoder, [night % 5 + 1])
        prune_board(
            workshop.uri, Keep(grace_hours=SHORT), datetime.now(UTC) + timedelta(seconds=night)
        )
        tables = workshop.folder / "board" / "tables"
        # What lies of `releases` and `channels` is left to the readers of the last minutes.
        files = [
            path
            for name in ("tools", "agents", "emb_full")
            for path in (tables / f"{name}.lance").rglob("*")
        ]
        sizes.append(sum(path.stat().st_size for path in files if path.is_file()))

    assert len(workshop.store.all()) <= 4
    assert max(sizes[5:]) < 1.05 * max(sizes[3:5])


def test_files_of_a_killed_writer_are_removed_after_a_week(workshop, four):
    folder = workshop.folder / "board" / "tables" / "tools.lance"
    names = ("data/dead.lance", "_deletions/9.arrow", "_indices/dead/a.idx", "data/young.lance")
    for name in names:
        file = folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("x")
        written = (datetime.now(UTC) - 8 * DAY * ("young" not in name)).timestamp()
        os.utime(file, (written, written))

    dry = prune_board(workshop.uri, Keep(releases=9), NOW, dry_run=True)
    assert all((folder / name).exists() for name in names)
    done = prune_board(workshop.uri, Keep(releases=9), NOW)

    assert [name for name in names if (folder / name).exists()] == ["data/young.lance"]
    assert done.bytes == dry.bytes
    for release in four:
        assert is_whole(workshop.store, workshop.store.get(release.id))


@pytest.fixture
def looks(monkeypatch):
    """The names of the tables and the folders that prunes look through."""
    opened = []
    open_dataset = prune.open_dataset
    walk = Lake.walk
    monkeypatch.setattr(
        prune, "open_dataset", lambda uri, name: opened.append(name) or open_dataset(uri, name)
    )
    monkeypatch.setattr(
        Lake, "walk", lambda self, *folder: opened.append("lake") or walk(self, *folder)
    )
    return opened


def test_a_prune_with_nothing_to_remove_looks_through_tables_once_in_a_grace_period(
    workshop, four, looks
):
    prune_board(workshop.uri, Keep(releases=9), NOW)
    assert {"tools", "lake"} <= set(looks)
    looks.clear()

    soon = prune_board(workshop.uri, Keep(releases=9), NOW + 0.9 * DAY)

    assert (soon.kept, soon.removed, soon.bytes) == (ids(reversed(four)), (), 0)
    assert looks == []
    prune_board(workshop.uri, Keep(releases=9), NOW + DAY)
    assert {"tools", "lake"} <= set(looks)


@pytest.mark.parametrize(
    ("keep", "options"),
    [
        (Keep(releases=9, grace_hours=23), {}),
        (Keep(releases=2), {}),
        (Keep(releases=9), {"complete": True}),
        (Keep(releases=9), {"dry_run": True}),
    ],
)
def test_other_settings_a_due_release_and_the_option_complete_look_through_all(
    workshop, four, looks, keep, options
):
    prune_board(workshop.uri, Keep(releases=9), NOW)
    looks.clear()

    prune_board(workshop.uri, keep, NOW, **options)

    assert {"tools", "lake"} <= set(looks)


def test_a_table_that_a_run_has_just_pinned_is_kept(workshop, four):
    table = workshop.store.database.create_table(
        "emb_new", schema=pegboard.store.contract.table_schema("emb_full", 8)
    )
    table.tags.create(f"{'a' * 12}-v1", 1)
    (version,) = open_dataset(workshop.uri, "emb_new").versions()
    created = version["timestamp"].astimezone(UTC)
    # The table is old enough, and only the tag is younger.
    due = created + timedelta(hours=Keep().grace_hours)
    assert prune_board(workshop.uri, Keep(), due).tables == ()
    table.tags.delete(f"{'a' * 12}-v1")
    assert prune_board(workshop.uri, Keep(), due, complete=True).tables == ("emb_new",)


def test_tags_of_unrecorded_releases_are_removed_and_tags_of_people_are_kept(workshop, four):
    table = open_table(workshop.store.database, "tools", workshop.uri)
    versions = [release.tables["tools"].version for release in four]
    unrecorded = f"{'b' * 12}-v{versions[0]}"
    table.tags.create(unrecorded, versions[0])
    table.tags.create("before-the-audit", versions[1])
    prune_board(workshop.uri, Keep(), datetime.now(UTC))
    assert unrecorded in table.tags.list()

    prune_board(workshop.uri, Keep(), NOW)

    others = {tag for tag in table.tags.list() if not tag.startswith(tuple(ids(four)))}
    assert others == {"before-the-audit", "live"}
    audited = open_table(workshop.store.database, "tools", workshop.uri, versions[1])
    assert audited.count_rows() == 8


def test_a_release_that_is_promoted_during_its_removal_is_restored(workshop, four):
    # As if a prune had been killed right after it deleted the row, and someone had promoted the
    # release just before.
    workshop.store.promote(four[0].id, "audit")
    workshop.store.database.open_table("releases").delete(f"release = '{four[0].id}'")
    going = {**asdict(four[0]), "created_at": four[0].created_at.isoformat()}
    workshop.lake.write_json(JOURNAL, {"going": [going]})

    prune_board(workshop.uri, Keep(), NOW)

    assert workshop.store.get(four[0].id) == four[0]
    assert is_whole(workshop.store, four[0])


def test_a_release_whose_versions_were_pruned_is_published_again(workshop, four, hashing):
    first = four[0]
    prune_board(workshop.uri, Keep(), NOW)
    workshop.store.add(first)  # as if a prune had ended between the tags and the row
    assert not is_whole(workshop.store, first)

    run = workshop.run(_servers(workshop, 1), "stage", encoder=hashing(8))
    again = publish_release(workshop.configure(), run.plan, run.snapshots, run.spec, run.pins)

    assert again.id == first.id
    assert again.tables["tools"].version > first.tables["tools"].version
    assert is_whole(workshop.store, workshop.store.get(first.id))
    assert workshop.store.channel().release == first.id


def _servers(workshop, state):
    workshop.servers(workshop.named(*names(0), *names(state)))
    return workshop.configure()


class Killed(BaseException):
    """Stands in for the end of the process."""


@pytest.fixture
def kill_before(monkeypatch):
    """Have prunes killed right before their write of that number, from 0, or let them live; returns
    the names of their writes.
    """
    writes = []
    deadly = [None]

    def counted(write):
        def count(*args, **kwargs):
            if len(writes) == deadly[0]:
                raise Killed
            writes.append(write.__qualname__)
            return write(*args, **kwargs)

        return count

    for owner, name in (
        (Lake, "write_json"),
        (Lake, "delete"),
        (lancedb.table.LanceTable, "delete"),
        (lancedb.table.Tags, "delete"),
        (DatasetTags, "create"),
        (DatasetTags, "delete"),
        (lance.LanceDataset, "cleanup_old_versions"),
        (prune, "maintain"),
    ):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))

    def kill_before(number):
        writes.clear()
        deadly[0] = number
        return writes

    return kill_before


def test_a_killed_prune_leaves_kept_releases_intact_and_the_next_prune_completes_it(
    workshop, four, kill_before
):
    (workshop.folder / "board/tables/tools.lance/data/dead.lance").write_text(
        "what a killed writer left"
    )
    whole = shutil.copytree(workshop.uri, workshop.folder / "whole")
    writes = kill_before(None)
    prune_board(workshop.uri, Keep(), NOW)
    # Of many writes of one kind in a row, the first two.
    deadly_ones = [at for at in range(len(writes)) if at < 2 or writes[at] != writes[at - 2]]
    assert len(set(writes)) >= 6
    for deadly in deadly_ones:
        shutil.rmtree(workshop.uri)
        shutil.copytree(whole, workshop.uri)
        kill_before(deadly)
        with pytest.raises(Killed):
            prune_board(workshop.uri, Keep(), NOW)
        kill_before(None)
        for one in four[2:]:
            assert is_whole(workshop.store, workshop.store.get(one.id)), deadly

        prune_board(workshop.uri, Keep(), NOW + DAY)

        assert ids(workshop.store.all()) == ids([four[3], four[2]]), deadly
        tools = open_table(workshop.store.database, "tools", workshop.uri)
        assert len(tools.list_versions()) <= 3, deadly
        assert set(tools.tags.list()) == {
            "live",
            *(f"{one.id}-v{one.tables['tools'].version}" for one in four[2:]),
        }, deadly
        assert workshop.store.rollback().release == four[2].id, deadly


def test_promotions_succeed_while_a_prune_compacts_the_table_of_channels(workshop, four):
    store = workshop.store
    stop = threading.Event()
    troubles = []
    prunes = []

    def prune_again_and_again():
        while not stop.is_set():
            try:
                prune_board(
                    workshop.uri,
                    Keep(releases=9, grace_hours=SHORT),
                    datetime.now(UTC) + timedelta(seconds=1),
                )
                prunes.append(1)
            except Exception as error:
                troubles.append(error)
                return

    pruner = threading.Thread(target=prune_again_and_again)
    pruner.start()
    conflicts = number = 0
    try:
        while number < 12 or (len(prunes) < 4 and not troubles):
            try:
                store.promote(four[number % 4].id, f"channel-{number % 3}")
            except PromotionConflict:
                conflicts += 1
            number += 1
    finally:
        stop.set()
        pruner.join()

    assert troubles == []
    assert conflicts == 0
    assert {one.release for one in store.channels()} <= set(ids(four))
    assert len(open_table(store.database, "channels", workshop.uri).to_arrow()) == 4
    assert replace(store.get(four[0].id)) == four[0]
