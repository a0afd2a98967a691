"""A build that is killed around its gate leaves live as it is, and the next build completes it."""

import pytest

from pegboard.errors import ConfigurationError
from pegboard.store.database import open_table
from tasks.gate.decision import gate_release

QUERIES = 'queries = "golden.jsonl"\n'
GATE = f'{QUERIES}rules = ["Recall@5 >= 0.99"]\n'


@pytest.fixture
def live(shop, publish_first, sabotaged):
    """The id of the live release of a shop that now offers tools with swapped descriptions."""
    publish_first(GATE)
    shop.sells(sabotaged)
    return shop.live


def test_a_run_killed_after_its_gate_has_recorded_nothing_and_the_next_decides_alike(shop, live):
    killed = shop.build(publish=False)

    assert not killed.gated.passed
    assert (shop.live, shop.releases) == (live, [live])
    assert shop.build().gated == killed.gated


@pytest.mark.parametrize("how_far", ["one tag", "all tags", "row"])
def test_a_held_release_whose_writes_were_cut_off_is_completed_by_the_next_run(shop, live, how_far):
    held = shop.build().release
    store = shop.workshop.store
    pins = list(held.tables.values())
    if how_far != "row":
        store.database.open_table("releases").delete(f"release = '{held.id}'")
    for pin in pins[1:] if how_far == "one tag" else ():
        tags = open_table(store.database, pin.table, store.uri).tags
        if (tag := f"{held.id}-v{pin.version}") in tags.list():
            tags.delete(tag)

    again = shop.build().release

    assert (again.id, again.tables) == (held.id, held.tables)
    assert again.manifest["gate"] == held.manifest["gate"]
    assert (shop.live, shop.releases) == (live, [held.id, live])
    for pin in pins:
        table = open_table(store.database, pin.table, store.uri, pin.version)
        assert table.tags.list()[f"{held.id}-v{pin.version}"]["version"] == pin.version


def test_golden_queries_that_change_during_a_build_end_it(shop, live, queries):
    configuration = shop.configuration
    run = shop.workshop.run(configuration, until="stage")
    shop.lines("golden.jsonl", queries[:10])

    with pytest.raises(ConfigurationError, match="changed while the build ran"):
        gate_release(configuration, run.plan, run.snapshots, run.spec, run.pins, {})
    assert shop.releases == [live]
