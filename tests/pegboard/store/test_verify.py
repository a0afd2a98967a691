"""Verifying: a sound release has no problem, and whatever was changed by hand is named."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from pegboard.store.contract import CONTRACT
from pegboard.store.database import open_table
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release

ISSUE = "tool = 'kit/git/create_issue'"
HALF = {"vector": [0.5] * 256}
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


def test_a_sound_release_has_no_problem_and_the_rows_that_were_read_are_reported(board_uri):
    store = ReleaseStore(board_uri)
    progress = []

    verified = verify_release(store, live(store), lambda *step: progress.append(step))

    assert verified.problems == ()
    assert verified.rows == {
        "tools": 14, "agents": 6, "edges": 0, "emb_full": 14, "emb_fine": 26,
        "agents_full": 6, "agents_fine": 6,
    }  # fmt: skip
    printed = json.loads(json.dumps(verified.to_dict()))
    assert (printed["sound"], printed["contract"]) == (True, CONTRACT)
    assert ("emb_fine", 26, 26) in progress


@pytest.mark.parametrize(
    ("table", "where", "values", "expected"),
    [
        ("tools", RATES, {"description": "Sends all money away."}, [
            f"1 row: {CHECKSUM}: finance/finance/list_rates",
            "1 row: without the tool_digest that follows from their columns: finance/finance/list",
        ]),
        ("tools", RATES, {"input_schema": "{not json"}, [CHECKSUM, "without the tool_digest"]),
        ("tools", RATES, {"checksum": "0" * 64}, [CHECKSUM, f"checksum over its rows {PINNED}"]),
        ("agents", "name = 'git'", {"source": "elsewhere"}, [CHECKSUM]),
        ("agents", "name = 'git'", {"id": "kit/got"}, [
            CHECKSUM,
            f"agents: the digest over its rows {PINNED}",
            f"agents: the checksum over its rows {PINNED}",
            "tools: 4 rows: whose agent is not in 'agents': kit/git/",
            "agents_fine: 1 row: whose agent is not in 'agents': kit/git#document#0",
            "agents_fine: has no row of these agents: kit/got",
            "agents_full: 1 row: whose agent is not in 'agents': kit/git#document#0",
            "agents_full: has no row of these agents: kit/got",
        ]),
        ("agents_full", "agent = 'kit/git'", {"kind": "agent"}, [
            f"1 row: {CHECKSUM}: kit/git#document#0",
            "1 row: with another catalog, agent or kind than their agent: kit/git#document#0",
        ]),
        ("agents_full", "agent = 'kit/git'", HALF, [
            CHECKSUM, "1 row: with a vector whose length is not 1: kit/git#document#0",
        ]),
        ("emb_full", "part = 'document'", {"text": "another text"}, [f"14 rows: {CHECKSUM}"]),
        ("emb_fine", f"{ISSUE} AND part = 'arguments'", HALF, [
            CHECKSUM, "1 row: with a vector whose length is not 1: kit/git/create_issue#arguments",
        ]),
        ("emb_full", ISSUE, {"tool": "kit/git/nobody"}, [
            CHECKSUM,
            "1 row: whose tool is not in 'tools': kit/git/create_issue#document#0",
            "has no row of these tools: kit/git/create_issue",
        ]),
        ("emb_full", ISSUE, {"agent": "kit/weather"}, [
            CHECKSUM, "1 row: with another catalog, agent, kind or tags",
        ]),
    ],
)  # fmt: skip
def test_what_was_changed_by_hand_is_named(store, table, where, values, expected):
    open_table(store.database, table, store.uri).update(where=where, values=values)

    found = problems(store, pinned(store, table))

    assert len(found) == len(expected), found
    for problem, text in zip(found, expected, strict=True):
        assert text in problem


def test_a_vector_of_which_a_value_is_not_finite_is_named(store):
    table = store.database.open_table("emb_full")
    row = table.search().where(ISSUE).to_arrow()
    place = row.schema.get_field_index("vector")
    vector = pa.array([[float("inf")] * 256], row.schema.field(place).type)
    row = row.set_column(place, row.schema.field(place), vector)
    table.merge_insert("key").when_matched_update_all().execute(row)

    named = "emb_full: 1 row: with a vector whose length is not 1: kit/git/create_issue#document#0"
    assert named in problems(store, pinned(store, "emb_full"))


def test_rows_that_were_taken_out_or_put_in_are_named(store):
    table = store.database.open_table("tools")
    table.delete(RATES)
    row = table.search().where("name = 'close_ledger'").to_arrow()
    table.add(row)
    table.add(row)

    found = problems(store, pinned(store, "tools"))

    assert "tools: it has 15 rows, the release pins 14" in found
    assert "tools: 1 row: there several times: finance/finance/close_ledger" in found
    assert f"tools: the digest over its rows {PINNED}" in found
    assert any(text.startswith("emb_fine: 1 row: whose tool is not in 'tools'") for text in found)


def test_a_record_that_contradicts_itself_or_its_tables_is_named(store):
    release = pinned(store, "tools", version=99)
    tables = {name: pin for name, pin in release.tables.items() if name != "emb_fine"}
    # What cannot be compared is not held against the other tables.
    gone, version = problems(store, replace(release, tables=tables))
    assert gone == "emb_fine: the release pins no such table"
    assert version.startswith("tools: The board at ")
    assert "no version 99 of table 'tools'" in version

    release = live(store)
    counts = {**release.manifest["counts"], "tools": 15}
    manifest = {**release.manifest, "default_index": "best", "counts": counts}
    found = problems(store, replace(release, id="0" * 12, manifest=manifest))
    assert [text.split(":")[0] for text in found] == ["release", "release", "tools"]
    assert found[2] == "tools: the manifest counts 15, the release pins 14 rows"

    search = {"vector": "ivf_flat", "text": "fts", "filters": ["tool", "tags"]}
    assert problems(store, pinned(store, "emb_full", search=search)) == [
        "emb_full: lacks indices that the release records, of: tags, tool, vector",
    ]
