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
    drop_indices,
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
        table = pa.table(
            dict.fromkeys(
                (
                    "key",
                    "tool",
                    "part",
                    "catalog",
                    "agent",
                    "kind",
                    "text",
                    "tokens",
                    "digest",
                    "checksum",
                ),
                tools,
            )
            | {
                "tags": [["x"]] * rows,
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
            }
        ).select(column_names("emb_full"))
        made = lancedb.connect(tmp_path / "tables").create_table(
            "emb_full", table.cast(table_schema("emb_full", DIMENSIONS))
        )
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
    wanted = VectorIndex.fitting(rows, IndexSizes())

    assert wanted == (VectorIndex(kind, partitions) if kind else None)


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
def test_an_index_has_had_its_day_when_its_table_grew_or_shrank_by_more_than_a_factor_of_2(
    built, rows, fits
):
    wanted = VectorIndex.fitting(rows, IndexSizes())

    assert VectorIndex("ivf_flat", built).still_fits(wanted) is fits


@pytest.mark.parametrize("partitions", [1, 50, 1_000])
def test_a_query_visits_some_partitions_of_a_flat_index_and_all_of_a_graph(partitions):
    columns = column_names("emb_full")
    flat, graph = (
        VectorIndex(kind, partitions).search(columns) for kind in ("ivf_flat", "ivf_hnsw_sq")
    )

    assert 1 <= flat["nprobes"] <= partitions
    assert flat.keys() == {"vector", "partitions", "nprobes", "text", "filters"}
    assert (graph["nprobes"], graph["ef"] >= 100, graph["refine"] >= 2) == (partitions, True, True)


def test_a_small_table_gets_no_index_and_loses_those_it_has(make, tmp_path):
    table, _, _ = make(400)
    fit_indices(table, 400, changed=True)
    assert table.list_indices() == []

    fit_indices(table, 400, changed=True, sizes=IndexSizes(in_memory=100, flat_partition=100))
    there = {column for index in table.list_indices() for column in index.columns}
    fit_indices(table, 400, changed=False)

    assert there == {"vector", "tokens", *FILTERS}
    assert table.list_indices() == []
    assert search_of(open_dataset(str(tmp_path), "emb_full")) is None


def test_what_a_table_really_has_is_recorded(make, tmp_path):
    table, _, _ = make(600)
    fit_indices(table, 600, changed=True, sizes=IndexSizes(in_memory=100, flat_partition=100))
    version = table.version
    drop_indices(table, "vector")
    # Built for another number of rows than the table has.
    fit_indices(table, 300, changed=False, sizes=IndexSizes(in_memory=100, flat_partition=100))

    assert search_of(open_dataset(str(tmp_path), "emb_full", version)) == {
        "vector": "ivf_flat", "partitions": 6, "nprobes": 6, "text": "fts",
        "filters": ["tool", "agent", "catalog", "kind", "tags"],
    }  # fmt: skip
    assert search_of(open_dataset(str(tmp_path), "emb_full"))["partitions"] == 3


def recall(table, search, vectors, requests):
    found = 0
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
        found += len(exact & {int(key[-6:]) for key in rows.column("key").to_pylist()})
    return found / (10 * len(requests))


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
