"""A build that is killed around its gate leaves live as it is, and the next build completes it."""

from dataclasses import replace

import pytest

from pegboard.store.database import open_table
from pegboard.store.releases import ReleaseStore

GATE = 'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\nrules = ["Recall@5 >= 0.99"]\n'
RELAXED = 'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\nrules = ["Recall@5 >= 0.5"]\n'


@pytest.fixture
def live(shop, publish_first):
    """A shop with a release that is live."""
    publish_first(GATE)
    return shop


def test_a_run_that_is_killed_after_its_gate_has_recorded_nothing_and_the_next_one_decides(
    live, sabotaged
):
    before = live.live
    live.sells(sabotaged)

    killed = live.build(publish=False)

    assert not killed.gated.passed
    assert (live.live, live.releases) == (before, [before])
    assert live.build().gated == killed.gated


@pytest.mark.parametrize("how_far", ["one tag", "all tags", "row"])
def test_a_holding_that_is_killed_after_any_of_its_writes_is_completed_by_the_next(
    live, sabotaged, how_far
):
    before = live.live
    live.sells(sabotaged)
    held = live.build().release
    store: ReleaseStore = live.workshop.store
    pins = list(held.tables.values())
    if how_far != "row":
        store.database.open_table("releases").delete(f"release = '{held.id}'")
    for pin in pins[1:] if how_far == "one tag" else ():
        tags = open_table(store.database, pin.table, store.uri).tags
        if (tag := f"{held.id}-v{pin.version}") in tags.list():
            tags.delete(tag)

    again = live.build().release

    assert (again.id, again.tables, again.manifest["gate"]) == (
        held.id,
        held.tables,
        held.manifest["gate"],
    )
    assert (live.live, live.releases) == (before, [held.id, before])
    for pin in pins:
        table = open_table(store.database, pin.table, store.uri, pin.version)
        assert table.tags.list()[f"{held.id}-v{pin.version}"]["version"] == pin.version


def test_a_run_that_is_killed_between_passing_and_promoting_is_completed_by_the_next(
    live, sabotaged
):
    live.sells(sabotaged)
    held = live.build().release
    passed = {**held.manifest["gate"], "passed": True}
    assert live.workshop.store.update(replace(held, manifest={**held.manifest, "gate": passed}))
    live.configure(RELAXED)

    again = live.build()

    assert live.live == held.id == again.release.id
    assert len(live.releases) == 2


def test_another_manifest_is_only_recorded_of_a_release_that_is_there(live):
    store = live.workshop.store
    release = store.get(live.live)

    assert not store.update(replace(release, digest="0" * 64))
    assert not store.update(replace(release, id="0" * 12))
    assert store.get(live.live) == release
