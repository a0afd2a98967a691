"""Indices fitted to a table's size, and what is recorded of them."""

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from pegboard.store.contract import column_names, table_schema
from tasks.maintain import (
    FILTERS,
    IndexSizes,
    VectorIndex,
    fit_indices,
    open_dataset,
    search_of,
)

DIMENSIONS = 32


def clustered(count, near, rng, centres):
    vectors = centres[rng.integers(0, len(centres), count)] + near * rng.normal(
        size=(count, DIMENSIONS)
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def make(tmp_path):
    """Makes a table of so many clustered rows; returns it with its vectors and with requests that
    lie far from any cluster.
    """

    def make(rows):
        rng = np.random.default_rng(0)
        centres = (
            rng.normal(size=(max(1, rows // 20), DIMENSIONS))
            + rng.normal(size=(30, DIMENSIONS))[rng.integers(0, 30, max(1, rows // 20))]
        )
        vectors = clustered(rows, 0.5, rng, centres)
        tools = [f"c/a/t{number:06}" for number in range(rows)]
        schema = table_schema("emb_full", DIMENSIONS)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
        columns = dict.fromkeys(schema.names, tools)
        columns |= {"tags": [["x"]] * rows, "vector": column, "summary_vector": column}
        table = pa.table(columns, schema)
        made = lancedb.connect(tmp_path / "tables").create_table("emb_full", table)
        return made, vectors, clustered(100, 1.5, rng, centres)

    return make


@pytest.mark.parametrize(
    ("rows", "kind", "partitions"),
    [
        (0, None, 0),
        (50_000, None, 0),
        (50_001, "ivf_flat", 50),
        (100_000, "ivf_flat", 100),
        (1_000_000, "ivf_flat", 1_000),
        (1_000_001, "ivf_hnsw_sq", 2),
        (5_000_000, "ivf_hnsw_sq", 10),
    ],
)
def test_the_index_for_so_many_rows(rows, kind, partitions):
    assert VectorIndex.fitting(rows, IndexSizes()) == (
        VectorIndex(kind, partitions) if kind else None
    )


@pytest.mark.parametrize(
    ("built", "rows", "fits"),
    [
        (100, 60_000, True),
        (100, 199_000, True),
        (100, 201_000, False),
        (120, 59_000, False),
        (900, 1_000_001, False),
    ],
)
def test_an_index_fits_until_its_table_grew_or_shrank_by_a_factor_of_2(built, rows, fits):
    fitting = VectorIndex.fitting(rows, IndexSizes())

    assert VectorIndex("ivf_flat", built).still_fits(fitting) is fits


@pytest.mark.parametrize("partitions", [1, 50, 1_000])
def test_a_query_visits_some_partitions_of_a_flat_index_and_all_of_a_graph(partitions):
    columns = column_names("emb_full")
    flat, graph = (
        VectorIndex(kind, partitions).search(columns) for kind in ("ivf_flat", "ivf_hnsw_sq")
    )

    assert 1 <= flat["nprobes"] <= partitions
    assert flat.keys() == {"vector", "partitions", "nprobes", "text", "filters"}
    assert (graph["nprobes"], graph["ef"] >= 100, graph["refine"] >= 2) == (partitions, True, True)


def test_the_indices_that_a_table_has_are_recorded_and_a_small_table_has_only_text(make, tmp_path):
    small = IndexSizes(in_memory=100, flat_partition=100)
    table, _, _ = make(600)

    def recorded(version=None):
        return search_of(open_dataset(str(tmp_path), "emb_full", version))

    fit_indices(table, 600, changed=True)
    assert ([index.columns for index in table.list_indices()], recorded()) == ([["tokens"]], None)

    fit_indices(table, 600, changed=True, sizes=small)
    assert {column for index in table.list_indices() for column in index.columns} == {
        "vector", "tokens", *FILTERS,
    }  # fmt: skip
    version = table.version
    table.drop_index("vector_idx")
    fit_indices(table, 300, changed=False, sizes=small)  # another number of rows than it has
    assert recorded(version) == {
        "vector": "ivf_flat", "partitions": 6, "nprobes": 6, "text": "fts",
        "filters": ["tool", "agent", "catalog", "kind", "tags"],
    }  # fmt: skip
    assert recorded()["partitions"] == 3

    fit_indices(table, 600, changed=False)
    assert ([index.columns for index in table.list_indices()], recorded()) == ([["tokens"]], None)


def recall(table, search, vectors, requests):
    common = 0
    for request in requests:
        exact = set(np.argpartition(-(vectors @ request), 10)[:10].tolist())
        query = (
            table.search(request, vector_column_name="vector")
            .distance_type("cosine")
            .nprobes(search["nprobes"])
        )
        if "ef" in search:
            query = query.ef(search["ef"]).refine_factor(search["refine"])
        rows = query.limit(10).select(["key", "_distance"]).to_arrow()
        common += len(exact & {int(key[-6:]) for key in rows.column("key").to_pylist()})
    return common / (10 * len(requests))


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (20_000, IndexSizes(in_memory=1_000)),
        (5_000, IndexSizes(in_memory=100, flat=1_000, graph_partition=2_500)),
    ],
    ids=["flat", "graph"],
)
def test_as_it_is_recorded_it_finds_99_of_100_nearest(make, tmp_path, rows, sizes):
    table, vectors, requests = make(rows)
    fit_indices(table, rows, changed=True, sizes=sizes)

    search = search_of(open_dataset(str(tmp_path), "emb_full"))

    assert search["vector"] == ("ivf_flat" if rows == 20_000 else "ivf_hnsw_sq")
    assert search["nprobes"] < search["partitions"] or search["vector"] == "ivf_hnsw_sq"
    assert recall(table, search, vectors, requests) >= 0.99
