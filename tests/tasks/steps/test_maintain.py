"""Upkeep of tables from build to build: few fragments, and no row outside of an index."""

from datetime import timedelta

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from pegboard.search.memory import MemoryIndex
from pegboard.store.contract import table_schema
from tasks.steps.maintain import (
    FILTERS,
    MOST_FRAGMENTS,
    fit_indices,
    maintain,
    open_dataset,
    search_of,
    search_settings,
)

ROWS = 2_000
DIMENSIONS = 8


def table_of(ids, vectors, state=0):
    """A table of an index with these vectors, shape (rows, dimensions)."""
    schema = table_schema("emb_full", vectors.shape[1])
    keys = [f"t{one:05}" for one in ids]
    flat = pa.array(vectors.astype(np.float32).ravel())
    column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    text = [f"w{one % 37} w{one % 11} s{state}" for one in ids]
    columns = dict.fromkeys(schema.names, text)
    columns |= {"key": keys, "tool": keys, "agent": [f"a{one % 5}" for one in ids]}
    columns |= {"tags": [["x"]] * len(keys), "vector": column, "summary_vector": column}
    return pa.table(columns, schema=schema)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows_of(ids, state):
    return table_of(
        ids, unit(np.random.default_rng(state).normal(size=(len(ids), DIMENSIONS))), state
    )


def test_searching_with_the_recorded_settings_has_a_recall_of_99_percent(tmp_path, large_from):
    large_from(1_000, 1_000)
    rows = 20_000
    rng = np.random.default_rng(0)
    far = rng.normal(size=(30, 32))[rng.integers(0, 30, rows // 20)]
    centres = rng.normal(size=(rows // 20, 32)) + far

    def clustered(count, near):
        noise = near * rng.normal(size=(count, 32))
        return unit(centres[rng.integers(0, len(centres), count)] + noise).astype(np.float32)

    vectors, requests = clustered(rows, 0.5), clustered(100, 1.5)  # far from any cluster
    database = lancedb.connect(tmp_path / "tables")
    table = database.create_table("emb_full", table_of(range(rows), vectors))
    fit_indices(table, rows, changed=True)

    search = search_of(open_dataset(str(tmp_path), "emb_full"))

    common = 0
    for request in requests:
        exact = set(np.argpartition(-(vectors @ request), 10)[:10].tolist())
        query = table.search(request, vector_column_name="vector").distance_type("cosine")
        keys = query.nprobes(search["nprobes"]).limit(10).select(["key", "_distance"]).to_arrow()
        common += len(exact & {int(key[1:]) for key in keys.column("key").to_pylist()})
    assert search == search_settings(20, table.schema.names)
    assert search["nprobes"] < search["partitions"]
    assert common >= 0.99 * 10 * len(requests)


class Board:
    """One embedding table of a board, written and maintained as a run does."""

    def __init__(self, folder):
        self.uri = str(folder)
        database = lancedb.connect(folder / "tables", read_consistency_interval=timedelta(0))
        self.table = database.create_table("emb_full", rows_of(range(ROWS), 0))
        self.maintain()

    @property
    def dataset(self):
        return open_dataset(self.uri, "emb_full")

    def maintain(self):
        maintain(self.table, self.uri, self.table.count_rows())

    def upsert(self, ids, state):
        merge = (
            self.table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        )
        merge.execute(rows_of(ids, state))

    def night(self, ids, state):
        self.upsert(ids, state)
        self.maintain()

    def indices(self):
        return {index.columns[0]: index for index in self.table.list_indices()}

    def drop(self, *columns):
        for column in columns:
            self.table.drop_index(self.indices()[column].name)

    def fragments(self):
        return [(one.physical_rows, one.num_deletions) for one in self.dataset.get_fragments()]

    def assert_in_order(self):
        """Every row is in every index, and the text index ranks as memory does."""
        indices = self.indices()
        assert indices.keys() == {"vector", "tokens", *FILTERS}
        assert not any(index.num_unindexed_rows for index in indices.values())
        rows = self.table.to_arrow()
        memory = MemoryIndex(rows)
        for words in (["w3"], ["w5", "w7"], ["s1", "w2"]):
            expected = {one.tool: one.score for one in memory.texts([words], 5_000)[0]}
            found = self.table.search(
                " ".join(words), query_type="fts", fts_columns="tokens"
            ).limit(5_000)
            scores = found.select(["tool", "_score"]).to_arrow().to_pydict()
            assert dict(zip(scores["tool"], scores["_score"], strict=True)) == pytest.approx(
                expected, abs=2e-4
            ), words


@pytest.fixture
def board(tmp_path, large_from):
    large_from(500, 100)
    return Board(tmp_path)


def test_an_up_to_date_table_keeps_its_version(board):
    version = board.table.version

    board.maintain()

    assert board.table.version == version
    board.assert_in_order()


def test_changed_rows_become_index_segments_until_many_fragments_are_compacted(board):
    segments = []
    for night in range(MOST_FRAGMENTS + 1):
        board.night(range(night * 10, night * 10 + 10), night)
        segments.append(board.indices()["vector"].num_segments)
        assert len(board.fragments()) == segments[-1]

    assert segments == [*range(2, MOST_FRAGMENTS + 1), 1, 2]
    board.assert_in_order()


@pytest.mark.parametrize("kill", ["merge", "delete", "no text", "no vector", "no indices"])
def test_the_next_run_completes_the_maintenance_of_a_killed_run(board, kill):
    if kill == "merge":
        board.upsert(range(30), 1)
    elif kill == "delete":
        board.table.delete("key < 't00100'")
    else:
        board.upsert(range(30), 1)
        every = list(board.indices())
        board.drop(*{"no text": ["tokens"], "no vector": ["vector"]}.get(kill, every))

    board.maintain()

    board.assert_in_order()


@pytest.mark.parametrize(("rows", "partitions"), [(4_200, 42), (900, 9)])
def test_a_table_that_grew_or_shrank_by_more_than_a_factor_of_2_gets_another_vector_index(
    board, rows, partitions
):
    assert search_of(board.dataset)["partitions"] == 20
    if rows > ROWS:
        board.upsert(range(ROWS, rows), 1)
    else:
        board.table.delete(f"key >= 't{rows:05}'")

    board.maintain()

    assert search_of(board.dataset)["partitions"] == partitions
    assert board.indices()["vector"].num_segments == 1
    board.assert_in_order()


def test_a_small_table_has_few_fragments_and_answers_full_text_searches(board, large_from):
    large_from(50_000, 1_000)
    for night in range(MOST_FRAGMENTS + 2):
        board.upsert(range(night, night + 3), night)
        board.maintain()
        assert len(board.fragments()) <= MOST_FRAGMENTS
        found = board.table.search(f"s{night}", query_type="fts").limit(9).to_list()
        assert len(found) == 3 or night == 0

    assert list(board.indices()) == ["tokens"]
    assert board.table.count_rows() == ROWS


def test_a_large_table_of_tools_has_a_complete_index_of_ids(tmp_path, large_from):
    large_from(500, 100)
    schema = table_schema("tools", 0)

    def rows_with_ids(ids, state):
        columns = {field.name: pa.nulls(len(ids), field.type) for field in schema}
        columns |= {"id": [f"t{one:05}" for one in ids], "digest": [str(state)] * len(ids)}
        fields = [field if field.name == "id" else field.with_nullable(True) for field in schema]
        return pa.table(list(columns.values()), schema=pa.schema(fields))

    database = lancedb.connect(tmp_path / "tables", read_consistency_interval=timedelta(0))
    table = database.create_table("tools", rows_with_ids(range(600), 0))

    def night():
        maintain(table, str(tmp_path), table.count_rows())

    night()
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows_with_ids(range(590, 610), 1))
    night()

    assert [index.columns for index in table.list_indices()] == [["id"]]
    assert table.list_indices()[0].num_unindexed_rows == 0
    assert table.search().where("id IN ('t00000', 't00609')").to_arrow().num_rows == 2
