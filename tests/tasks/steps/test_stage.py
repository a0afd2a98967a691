"""Staging: tables brought to what a release is to have, beside what readers use."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import pegboard
from pegboard.errors import PublishError, StoreError
from pegboard.store.contract import column_names, table_schema
from pegboard.store.writing import open_table
from tasks.steps.stage import stage_tables

MODES = ["hybrid", "vector", "text"]


def rows_of(workshop, pin, columns=("id",)):
    table = open_table(workshop.store.database, pin.table, workshop.uri, pin.version)
    return table.search().select(list(columns)).with_row_id(True).to_arrow().to_pylist()


def test_only_rows_that_changed_are_written(workshop):
    names = [f"tool_{number}" for number in range(30)]
    first = workshop.publish(workshop.named(*names)).release
    servers = workshop.named(*names)
    servers["git"][7]["description"] = "Does something else."
    second = workshop.publish(servers).release

    for table, key in (("tools", "id"), ("emb_full", "tool")):
        before, after = (
            {row[key]: row["_rowid"] for row in rows_of(workshop, release.tables[table], [key])}
            for release in (first, second)
        )
        assert {one for one in after if after[one] != before[one]} == {"kit/git/tool_7"}
    assert second.tables["agents"] == first.tables["agents"]


def test_a_removed_tool_is_not_found_in_any_mode_and_remains_in_the_old_release(workshop, encoder):
    first = workshop.publish(workshop.named("create_issue", "o'clock", "delete_issue")).release
    workshop.publish(workshop.named("create_issue"))

    for rows in (50_000, 0):
        board = pegboard.open(workshop.uri, encoder=encoder, in_memory_rows=rows)
        old = pegboard.open(workshop.uri, release=first.id, encoder=encoder, in_memory_rows=rows)
        for gone in ("o'clock", "delete_issue"):
            for mode in MODES:
                names = [hit.tool.name for hit in board.search(gone, 9, mode=mode)]
                assert gone not in names, (rows, mode)
                assert old.search(gone, 1, mode=mode)[0].tool.name == gone
            assert board.tool(f"kit/git/{gone}") is None
        assert len(board.search("issue", 9, mode="vector")) == 1


def test_more_rows_than_fit_one_delete_condition_are_removed(workshop, hashing):
    encoder = hashing(8)
    workshop.publish(workshop.named(*(f"old'{number}" for number in range(1_200))), encoder=encoder)

    only = workshop.named("the_only_one")
    second = workshop.publish(only, encoder=encoder, allow_removal=True).release

    assert second.tables["tools"].rows == second.tables["emb_full"].rows == 1
    assert [row["id"] for row in rows_of(workshop, second.tables["tools"])] == [
        "kit/git/the_only_one"
    ]


def test_a_large_table_is_pinned_with_its_indices_and_staging_again_changes_nothing(
    workshop, hashing, large_from
):
    large_from(50, 20)
    names = [f"tool_{number}" for number in range(120)]

    def stage(*names):
        workshop.servers(workshop.named(*names))
        configuration = workshop.configure()
        run = workshop.run(configuration, "embed", encoder=hashing(8), allow_removal=True)
        pins = stage_tables(workshop.uri, run.spec)
        assert stage_tables(workshop.uri, run.spec) == pins
        return pins

    pins = stage(*names)
    fewer = stage(*names[:90], "tool_zebra")
    small = stage(*names[:40])

    assert pins["tools"].search is pins["agents"].search is None
    assert pins["emb_full"].search == {
        "vector": "ivf_flat", "partitions": 6, "nprobes": 6, "text": "fts",
        "filters": ["tool", "agent", "catalog", "kind", "tags"],
    }  # fmt: skip
    assert fewer["emb_full"].search == pins["emb_full"].search
    assert small["emb_full"].search is None
    table = open_table(workshop.store.database, "emb_full", workshop.uri, fewer["emb_full"].version)
    query = table.search("zebra", query_type="fts", fts_columns="tokens")
    hits = query.select(["tool", "_score"]).to_arrow()
    assert hits.column("tool").to_pylist() == ["kit/git/tool_zebra"]
    statistics = [table.index_stats(index.name) for index in table.list_indices()]
    assert {stats.num_unindexed_rows for stats in statistics} == {0}


def test_vectors_of_another_length_go_to_another_table_and_the_old_release_still_answers(
    workshop, hashing
):
    small = hashing(8)
    large = hashing(12)
    servers = workshop.named("create_issue", "delete_issue")
    first = workshop.publish(servers, encoder=small).release
    second = workshop.publish(servers, encoder=large).release
    third = workshop.publish(workshop.named("create_issue"), encoder=large).release

    assert [one.tables["emb_full"].table for one in (first, second, third)] == [
        "emb_full", "emb_full_12", "emb_full_12",
    ]  # fmt: skip
    for release, encoder, tools in ((first, small, 2), (second, large, 2), (third, large, 1)):
        board = pegboard.open(workshop.uri, release=release.id, encoder=encoder)
        for mode in MODES:
            assert board.search("create issue", mode=mode)[0].tool.name == "create_issue"
        assert len(board.search("create issue", mode="vector")) == tools


def test_missing_vectors_in_the_lake_fail_the_step_and_nothing_is_published(workshop):
    run = workshop.run(workshop.full(), "compose")

    with pytest.raises(PublishError, match="18 of 18 vectors are not in the lake"):
        stage_tables(workshop.uri, run.spec)
    assert workshop.store.all() == []


def test_concurrent_writers_never_pin_a_mixture(workshop):
    run = workshop.run(workshop.full(), "embed")
    stage_tables(workshop.uri, run.spec)
    digests = {table.name: table.digest for table in run.spec.tables}
    stop = threading.Event()
    written = []

    def intrude():
        agents = workshop.store.database.open_table("agents")
        while not stop.is_set() and len(written) < 300:
            identity = f"kit/intruder-{len(written)}"
            row = dict.fromkeys(column_names("agents"), "x") | {"id": identity}
            agents.add(pa.Table.from_pylist([row], schema=table_schema("agents")))
            written.append(identity)

    intruder = threading.Thread(target=intrude)
    intruder.start()
    try:
        stagings = 0
        while stagings < 6 or (len(written) < 10 and intruder.is_alive()):
            stagings += 1
            try:
                pins = stage_tables(workshop.uri, run.spec, attempts=1)
            except (PublishError, StoreError):
                continue
            assert pins["agents"].digest == digests["agents"]
            assert len(rows_of(workshop, pins["agents"])) == 6
    finally:
        stop.set()
        intruder.join()

    assert written
    pins = stage_tables(workshop.uri, run.spec)
    assert [row["id"] for row in rows_of(workshop, pins["agents"]) if "intruder" in row["id"]] == []


def test_a_row_that_was_changed_by_hand_is_repaired(workshop):
    run = workshop.publish(workshop.named("create_issue", "delete_issue"))
    table = workshop.store.database.open_table("tools")
    table.update(
        where="name = 'delete_issue'", values={"description": "spoilt", "digest": "spoilt"}
    )

    pins = stage_tables(workshop.uri, run.spec)

    described = {
        row["id"]: row["description"]
        for row in rows_of(workshop, pins["tools"], ["id", "description"])
    }
    assert described["kit/git/delete_issue"] == "Does delete_issue."


def test_the_vector_of_a_tool_is_the_unit_sum_of_its_description_and_each_of_its_questions(
    workshop, encoder
):
    pin = workshop.run(workshop.full()).pins["emb_full"]

    rows = {row["tool"]: row for row in rows_of(workshop, pin, ["tool", "vector", "text"])}
    taxi = rows["desk/desk/call_taxi"]
    commits = rows["kit/git/list_commits"]
    together = encoder.encode(["call taxi. Calls a taxi.", "I need a ride to the airport"]).sum(
        axis=0
    )

    assert taxi["vector"] == pytest.approx((together / np.linalg.norm(together)).tolist(), abs=1e-6)
    assert commits["vector"] == pytest.approx(
        encoder.encode([commits["text"]])[0].tolist(), abs=1e-6
    )


def test_adding_or_removing_an_index_changes_no_other_table_and_encodes_no_text_again(workshop):
    first = '[[indexes]]\nname = "full"\n'
    # Without questions it has the same texts, by the same encoder.
    second = '\n[[indexes]]\nname = "plain"\nshape = "single"\n'
    workshop.full()
    before = workshop.run(workshop.configure(first))

    added = workshop.run(workshop.configure(first + second))
    dropped = workshop.run(workshop.configure(first))

    assert before.encoded > added.encoded == 0
    tables = added.release.tables
    assert tables["emb_plain"].rows == tables["emb_full"].rows
    assert tables["agents_plain"].rows == tables["agents_full"].rows == 4
    assert {name: tables[name] for name in before.release.tables} == before.release.tables
    assert dropped.release == before.release
    board = pegboard.open(workshop.uri, release=added.release.id)
    assert board.search("merge a branch", 1, index="plain")


def test_a_table_that_is_written_in_chunks_has_the_same_rows(workshop, monkeypatch):
    names = [f"tool_{number}" for number in range(7)]
    whole = workshop.publish(workshop.named(*names)).release
    monkeypatch.setattr("tasks.steps.stage.ROWS_AT_ONCE", 2)
    servers = workshop.named(*names, "another")
    for server in servers["git"][:5]:
        server["description"] = "Does something else."
    changed = workshop.publish(servers).release
    workshop.publish(workshop.named(*names))

    back = workshop.store.get(workshop.store.channel().release)
    assert back.id == whole.id != changed.id
    for name, pin in changed.tables.items():
        assert len(rows_of(workshop, pin, ["digest"])) == pin.rows, name
