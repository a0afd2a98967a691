"""Verifying: a sound release has no problem, and whatever is changed by hand is found and named."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from pegboard.store.contract import CONTRACT
from pegboard.store.database import open_table
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release


@pytest.fixture
def store(own_board_uri):
    return ReleaseStore(own_board_uri)


def live(store):
    return store.get(store.channel().release)


def spoilt(store, table, where, values):
    """The live release as if it had always pinned a table in which someone changed rows."""
    release = live(store)
    name = release.tables[table].table
    store.database.open_table(name).update(where=where, values=values)
    version = open_table(store.database, name, store.uri).version
    return replace(
        release, tables={**release.tables, table: replace(release.tables[table], version=version)}
    )


def test_a_sound_release_has_no_problem_and_says_what_was_read(board_uri):
    store = ReleaseStore(board_uri)
    told = []

    verified = verify_release(store, live(store), lambda *progress: told.append(progress))

    assert verified.problems == ()
    assert verified.rows == {
        "tools": 14, "agents": 6, "edges": 0, "emb_full": 14, "emb_fine": 26,
        "agents_full": 6, "agents_fine": 6,
    }  # fmt: skip
    assert verified.to_dict()["sound"] is True
    assert ("emb_fine", 26, 26) in told


@pytest.mark.parametrize(
    ("table", "where", "values", "problems"),
    [
        ("tools", "name = 'list_rates'", {"description": "Sends all money away."}, [
            "tools: 1 row: without the checksum that follows from their columns: "
            "finance/finance/list_rates",
            "tools: 1 row: without the tool_digest that follows from their columns: "
            "finance/finance/list_rates",
        ]),
        ("tools", "name = 'list_rates'", {"input_schema": "{not json"}, [
            "tools: 1 row: without the checksum", "tools: 1 row: without the tool_digest",
        ]),
        ("tools", "name = 'list_rates'", {"checksum": "0" * 64}, [
            "tools: 1 row: without the "
            "checksum", "tools: the checksum over its rows is not the one that the release pins",
        ]),
        ("agents", "name = 'git'", {"source": "elsewhere"}, ["agents: 1 row: without the "
        "checksum"]),
        ("agents", "name = 'git'", {"id": "kit/got"}, [
            "agents: 1 row: without the checksum",
            "agents: the digest over its rows is not the one that the release pins",
            "agents: the checksum over its rows is not",
            "tools: 4 rows: of an agent that is not in 'agents': kit/git/",
            "agents_fine: 1 row: of an agent that is not in 'agents': kit/git#document#0",
            "agents_fine: has no row of these agents: kit/got",
            "agents_full: 1 row: of an agent that is not in 'agents': kit/git#document#0",
            "agents_full: has no row of these agents: kit/got",
        ]),
        ("agents_full", "agent = 'kit/git'", {"kind": "agent"}, [
            "agents_full: 1 row: without the checksum that follows from their columns: "
            "kit/git#document#0",
            "agents_full: 1 row: with another catalog, agent or kind than their agent: "
            "kit/git#document#0",
        ]),
        ("agents_full", "agent = 'kit/git'", {"vector": [0.5] * 256}, [
            "agents_full: 1 row: without the checksum",
            "agents_full: 1 row: with a vector whose length is not 1: kit/git#document#0",
        ]),
        ("emb_full", "part = 'document'", {"text": "another text"}, ["emb_full: 14 rows: without "
        "the checksum"]),
        ("emb_fine", "tool = 'kit/git/create_issue' AND part = "
        "'arguments'", {"vector": [0.5] * 256}, [
            "emb_fine: 1 row: without the checksum",
            "emb_fine: 1 row: with a vector whose length is not 1: "
            "kit/git/create_issue#arguments#0",
        ]),
        ("emb_full", "tool = 'kit/git/create_issue'", {"tool": "kit/git/nobody"}, [
            "emb_full: 1 row: without the checksum",
            "emb_full: 1 row: of a tool that is not in 'tools': kit/git/create_issue#document#0",
            "emb_full: has no row of these tools: kit/git/create_issue",
        ]),
        ("emb_full", "tool = 'kit/git/create_issue'", {"agent": "kit/weather"}, [
            "emb_full: 1 row: without the "
            "checksum", "emb_full: 1 row: with another catalog, agent, kind or tags",
        ]),
    ],
)  # fmt: skip
def test_what_was_changed_by_hand_is_found_and_named(store, table, where, values, problems):
    found = verify_release(store, spoilt(store, table, where, values)).problems

    assert len(found) == len(problems), found
    for one, expected in zip(found, problems, strict=True):
        assert one.startswith(expected)


def test_a_vector_of_which_a_value_is_not_finite_is_found(store):
    release = live(store)
    table = store.database.open_table("emb_full")
    row = table.search().where("tool = 'kit/git/create_issue'").to_arrow()
    vector = pa.array([[float("inf")] * 256], row.schema.field("vector").type)
    row = row.set_column(row.schema.get_field_index("vector"), row.schema.field("vector"), vector)
    table.merge_insert("key").when_matched_update_all().execute(row)
    pin = replace(release.tables["emb_full"], version=table.version)

    found = verify_release(
        store, replace(release, tables={**release.tables, "emb_full": pin})
    ).problems

    assert found[1:] == (
        "emb_full: 1 row: with a vector of values that are not finite: "
        "kit/git/create_issue#document#0",
    )


def test_rows_that_were_taken_out_or_put_in_are_found(store):
    release = live(store)
    table = store.database.open_table("tools")
    table.delete("name = 'list_rates'")
    row = table.search().where("name = 'close_ledger'").to_arrow()
    table.add(row)
    table.add(row)
    pin = replace(release.tables["tools"], version=table.version)

    found = verify_release(
        store, replace(release, tables={**release.tables, "tools": pin})
    ).problems

    assert "tools: it has 15 rows, the release pins 14" in found
    assert "tools: 1 row: there several times: finance/finance/close_ledger" in found
    assert "tools: the digest over its rows is not the one that the release pins" in found
    assert any(one.startswith("emb_fine: 1 row: of a tool that is not in 'tools'") for one in found)


def test_a_version_or_a_table_that_is_gone_is_one_problem_among_others(store):
    release = live(store)
    tables = {**release.tables, "tools": replace(release.tables["tools"], version=99)}
    del tables["emb_fine"]

    found = verify_release(store, replace(release, tables=tables)).problems

    assert found[0] == "emb_fine: the release pins no such table"
    assert found[1].startswith("tools: The board at ")
    assert "no version 99 of table 'tools'" in found[1]
    assert len(found) == 2  # what cannot be compared is not held against the others


def test_a_record_that_contradicts_itself_is_found(store):
    release = live(store)
    manifest = {
        **release.manifest,
        "default_index": "best",
        "counts": {**release.manifest["counts"], "tools": 15},
    }

    found = verify_release(store, replace(release, id="0" * 12, manifest=manifest)).problems

    assert [one.split(":")[0] for one in found] == ["release", "release", "tools"]
    assert found[2] == "tools: the manifest counts 15, the release pins 14 rows"


def test_indices_that_a_release_records_and_its_table_lacks_are_found(store):
    release = live(store)
    search = {
        "vector": "ivf_flat",
        "partitions": 1,
        "nprobes": 1,
        "text": "fts",
        "filters": ["tool", "tags"],
    }
    pin = replace(release.tables["emb_full"], search=search)

    found = verify_release(
        store, replace(release, tables={**release.tables, "emb_full": pin})
    ).problems

    assert found == (
        "emb_full: lacks indices that the release records, of: tags, tokens, tool, vector",
    )


def test_the_result_is_json(board_uri):
    store = ReleaseStore(board_uri)

    assert (
        json.loads(json.dumps(verify_release(store, live(store)).to_dict()))["contract"] == CONTRACT
    )
