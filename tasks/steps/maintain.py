"""Maintain the indices of a board's tables, and compact them, with LanceDB.

Every embedding table has a text index. Its vector index depends on the number of rows:

    up to 50,000 rows    none: readers hold the table in memory
    above                IVF_FLAT: exact vectors, in partitions of about 1,000

A table with a vector index also has an index for every column by which searches filter, and a large
table of tools or agents has an index of ids, by which readers fetch rows.

Each release adds a fragment (a file of rows) and marks the rows that it replaced as deleted. New
rows become a segment of each index. If there are many fragments or many deleted rows, the table is
compacted and its indices are rebuilt. The text index is rebuilt whenever rows changed, since BM25
depends on all rows. The state is read from the table, so that a run completes what a killed run
left undone.

`Table.optimize` is not used: it compacts at every call, and its clean-up fails if a release pins an
old version."""

import os
from collections.abc import Collection, Mapping
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from pegboard.search.loaded import IN_MEMORY_ROWS
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.database import opening_options

if TYPE_CHECKING:
    from lance import LanceDataset
    from lancedb.table import Table

FILTERS = ("tool", "agent", "catalog", "kind", "tags")
"""Columns that get a scalar index if a table has them; the first has a distinct value for most
rows."""
KEY = "id"
"""The id column of tools and agents; documents are found by vectors and words."""
PROBES = 3.2
"""Number of partitions that a query visits, as a multiple of the square root of all partitions.
With clustered vectors and queries far from every cluster, recall@10 is .99 and better (32
dimensions, 20,000 to 250,000 rows); with random vectors, for which no index of this kind helps, it
is not."""
MOST_FRAGMENTS = 16
"""Largest number of fragments without compaction; a scan opens each."""
MOST_DELETED = 0.3
"""Largest share of deleted rows without compaction."""
FEWEST_DELETED = 1_000
"""Smallest number of deleted rows for compaction."""
PARTITION_ROWS = 1_000
"""Target number of rows in a partition of a vector index."""


def partitions_for(rows: int) -> int | None:
    """Return the number of partitions of the vector index of a table; None if it needs no index."""
    return None if rows <= IN_MEMORY_ROWS else max(1, round(rows / PARTITION_ROWS))


def still_fits(partitions: int, rows: int) -> bool:
    """Return whether a number of partitions is within a factor of 2 of that for this many rows."""
    target = partitions_for(rows)
    return target is not None and target <= 2 * partitions <= 4 * target


def search_settings(partitions: int, columns: Collection[str]) -> dict[str, Any]:
    """Return how a reader searches a table with these columns: the value of `Pin.search`."""
    return {
        "vector": "ivf_flat",
        "partitions": partitions,
        "nprobes": min(partitions, ceil(PROBES * sqrt(partitions))),
        "text": "fts",
        "filters": _filters(columns),
    }


def maintain(table: "Table", uri: str, rows: int) -> None:
    """Maintain the newest version of a table.

    Args:
        table: opened without a version, so that it follows to the newest one.
        uri: the board's root.
        rows: the number of rows.
    """
    dataset = open_dataset(uri, table.name)
    if _is_fragmented(dataset):
        # Lance does not compact fragments of different index segments into one.
        _drop_indices(table, {index.columns[0] for index in table.list_indices()})
        open_dataset(uri, table.name).optimize.compact_files(materialize_deletions_threshold=0.0)
    current = index_partitions(open_dataset(uri, table.name))
    if current is not None and not still_fits(current, rows):
        _drop_indices(table, {"vector"})
    incomplete = [
        index.name
        for index in table.list_indices()
        if index.num_unindexed_rows and index.columns != ["tokens"]
    ]
    if incomplete:
        segment = {"num_indices_to_merge": 0, "index_names": incomplete}
        open_dataset(uri, table.name).optimize.optimize_indices(**segment)
    stale = _text_is_stale(open_dataset(uri, table.name), rows)
    fit_indices(table, rows, changed=stale)


def fit_indices(table: "Table", rows: int, *, changed: bool) -> None:
    """Create the indices that a table of so many rows lacks, and drop those that it does not need.

    An existing vector index stays as it is; `maintain` decides when it is replaced.

    Args:
        changed: whether the rows differ from those of the text index. BM25 depends on the whole
            table, and an index that was only extended ranks by the old statistics, so it is
            rebuilt.
    """
    configs = _index_configs(table.schema.names, rows)
    indexed = {column for index in table.list_indices() for column in index.columns}
    _drop_indices(table, indexed - configs.keys())
    for column, config in configs.items():
        if column not in indexed or (column == "tokens" and changed):
            table.create_index(column, config=config, replace=True)


def _drop_indices(table: "Table", columns: Collection[str]) -> None:
    for index in table.list_indices():
        if index.columns[0] in columns:
            table.drop_index(index.name)


def _index_configs(columns: Collection[str], rows: int) -> dict[str, Any]:
    """Return the configuration of each index that a table of so many rows has, by its column."""
    from lancedb.index import FTS, Bitmap, BTree, IvfFlat, LabelList

    partitions = partitions_for(rows)
    if "vector" not in columns:
        return {KEY: BTree()} if KEY in columns and partitions is not None else {}
    # The words are prepared by `pegboard.text.words`.
    options: dict[str, Any] = dict.fromkeys(
        ("lower_case", "stem", "remove_stop_words", "ascii_folding", "with_position"), False
    )
    configs: dict[str, Any] = {"tokens": FTS(base_tokenizer="whitespace", **options)}
    if partitions is not None:
        filters = _filters(columns)
        configs["vector"] = IvfFlat(
            distance_type="cosine", num_partitions=partitions, max_iterations=20, sample_rate=64
        )
        configs |= dict.fromkeys(filters, Bitmap())
        configs |= {filters[0]: BTree(), **({"tags": LabelList()} if "tags" in filters else {})}
    return configs


def search_of(dataset: "LanceDataset") -> Mapping[str, Any] | None:
    """Return how a version of a table is searched, as `Pin.search`; None without a vector index."""
    partitions = index_partitions(dataset)
    return search_settings(partitions, dataset.schema.names) if partitions else None


def index_partitions(dataset: "LanceDataset") -> int | None:
    """Return the partitions of a table's vector index; None if it has none."""
    name = _index_name(dataset, "vector")
    if name is None:
        return None
    # With them, every call copies all centroids and logs that on stderr.
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")
    statistics = dataset.stats.index_stats(name)["indices"][0]
    return statistics.get("num_partitions") or len(statistics["partitions"])


def open_dataset(uri: str, table: str, version: int | None = None) -> "LanceDataset":
    """Open a table of the board at `uri` with pylance, by default at its newest version."""
    # At lower levels it logs every partition without new rows on stderr.
    os.environ.setdefault("LANCE_LOG", "error")
    import lance

    folder = f"{uri.rstrip('/')}/{TABLES_FOLDER}/{table}.lance"
    options = opening_options(uri)[0] or None
    return lance.dataset(folder, version=version, storage_options=options)


def _is_fragmented(dataset: "LanceDataset") -> bool:
    fragments = dataset.get_fragments()
    deleted = sum(fragment.num_deletions for fragment in fragments)
    rows = sum(fragment.physical_rows for fragment in fragments)
    many_deleted = deleted >= FEWEST_DELETED and deleted > MOST_DELETED * rows
    return many_deleted or len(fragments) > MOST_FRAGMENTS


def _text_is_stale(dataset: "LanceDataset", rows: int) -> bool:
    name = _index_name(dataset, "tokens")
    if name is None:
        return False
    statistics: Any = dataset.stats.index_stats(name)
    documents = sum(index["num_docs"] for index in statistics["indices"])
    return documents != rows or bool(statistics["num_unindexed_rows"])


def _index_name(dataset: "LanceDataset", column: str) -> str | None:
    names = [index.name for index in dataset.describe_indices() if index.field_names == [column]]
    return names[0] if names else None


def _filters(columns: Collection[str]) -> list[str]:
    """Return the columns by which searches filter, in the order of `FILTERS`."""
    return [column for column in FILTERS if column in columns]
