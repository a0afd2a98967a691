"""Verifying: a sound release has no problem, and whatever was changed by hand is named."""

import json
from dataclasses import replace

import pytest

from pegboard.store.contract import CONTRACT
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release
from pegboard.store.writing import open_table

ISSUE = "tool = 'kit/git/create_issue'"
RATES = "name = 'list_rates'"
CHECKSUM = "without the checksum that follows from their columns"
PINNED = "is not the one that the release pins"


@pytest.fixture
def store(own_board_uri):
    return ReleaseStore(own_board_uri)


def live(store):
    return store.get(store.channel().release)


def pinned(store, table, **pin):
    """The live release with another pin of a table; its newest version if nothing else is said."""
    release = live(store)
    version = open_table(store.database, release.tables[table].table, store.uri).version
    pin = replace(release.tables[table], **(pin or {"version": version}))
    return replace(release, tables={**release.tables, table: pin})


def problems(store, release):
    return list(verify_release(store, release).problems)


def test_a_sound_release_has_no_problems_and_its_rows_are_counted(board_uri):
    store = ReleaseStore(board_uri)

    verified = verify_release(store, live(store))

    assert verified.problems == ()
    assert verified.rows == {
        "tools": 14, "agents": 6, "edges": 0, "emb_full": 14, "emb_fine": 26,
        "agents_full": 6, "agents_fine": 6,
    }  # fmt: skip
    printed = json.loads(json.dumps(verified.to_dict()))
    assert (printed["sound"], printed["contract"]) == (True, CONTRACT)


@pytest.mark.parametrize(
    ("table", "where", "values", "expected"),
    [
        ("tools", RATES, {"description": "Sends all money away."}, [
            f"1 row: {CHECKSUM}: finance/finance/list_rates",
        ]),
        ("tools", RATES, {"checksum": "0" * 64}, [CHECKSUM, f"checksum over its rows {PINNED}"]),
        ("agents", "name = 'git'", {"id": "kit/got"}, [
            CHECKSUM,
            f"agents: the digest over its rows {PINNED}",
            f"agents: the checksum over its rows {PINNED}",
        ]),
        ("agents_full", "agent = 'kit/git'", {"kind": "agent"}, [
            f"1 row: {CHECKSUM}: kit/git#document#0",
        ]),
        ("emb_fine", f"{ISSUE} AND part = 'arguments'", {"vector": [0.5] * 256}, [CHECKSUM]),
    ],
)  # fmt: skip
def test_manually_changed_values_are_reported(store, table, where, values, expected):
    open_table(store.database, table, store.uri).update(where=where, values=values)

    found = problems(store, pinned(store, table))

    assert len(found) == len(expected), found
    for problem, text in zip(found, expected, strict=True):
        assert text in problem


def test_manually_added_and_deleted_rows_are_reported(store):
    table = store.database.open_table("tools")
    table.delete(RATES)
    row = table.search().where("name = 'close_ledger'").to_arrow()
    table.add(row)
    table.add(row)

    found = problems(store, pinned(store, "tools"))

    assert "tools: it has 15 rows, the release pins 14" in found
    assert f"tools: the digest over its rows {PINNED}" in found
