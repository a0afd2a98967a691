"""Indices of an embedding table, fitted to its size, and what a release records of them for its
readers.

    up to 50,000 rows       none: readers hold the table in memory
    up to 1,000,000 rows    IVF_FLAT: vectors as they are, in partitions of about 1,000
    above                   IVF_HNSW_SQ: a graph over bytes, whose best answers are weighed again by
    the vectors themselves

Every table with a vector index has a text index, too, and one for every column by which a search is
filtered."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Literal

from pegboard.board import IN_MEMORY_ROWS

if TYPE_CHECKING:
    from lance import LanceDataset
    from lancedb.table import Table

FILTERS = ("tool", "agent", "catalog", "kind", "tags")
"""Columns with a scalar index, where a table has them."""
PROBES = 3.2
"""A query visits this many times the root of the number of partitions. With clustered vectors and
requests that lie far from every cluster, recall@10 is .99 and better (32 dimensions, 20,000 to
250,000 rows); with vectors that are pure noise, for which no index of this kind helps, it is
not."""
GRAPH_EF = 150
GRAPH_REFINE = 5
"""Candidates of a graph, and how many times k of them are weighed again. All partitions are
visited: there are few.
"""


@dataclass(frozen=True, slots=True)
class IndexSizes:
    """Rows up to which a table has no index, and up to which it has IVF_FLAT; rows in a partition
    of either kind.
    """

    in_memory: int = IN_MEMORY_ROWS
    flat: int = 1_000_000
    flat_partition: int = 1_000
    graph_partition: int = 500_000


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A kind of vector index and its number of partitions."""

    kind: Literal["ivf_flat", "ivf_hnsw_sq"]
    partitions: int

    @classmethod
    def fitting(cls, rows: int, sizes: IndexSizes) -> "VectorIndex | None":
        """The index for so many rows; None if they are searched without."""
        if rows <= sizes.in_memory:
            return None
        if rows <= sizes.flat:
            return cls("ivf_flat", max(1, round(rows / sizes.flat_partition)))
        return cls("ivf_hnsw_sq", max(1, round(rows / sizes.graph_partition)))

    def still_fits(self, wanted: "VectorIndex") -> bool:
        """Whether a table need not get the wanted index instead: it has not grown or shrunk by more
        than a factor of 2.
        """
        return (
            self.kind == wanted.kind
            and wanted.partitions <= 2 * self.partitions <= 4 * wanted.partitions
        )

    def search(self, columns: Collection[str]) -> dict[str, Any]:
        """How a reader asks it in a table with those columns: what `Pin.search` holds."""
        if self.kind == "ivf_flat":
            how = {"nprobes": min(self.partitions, ceil(PROBES * sqrt(self.partitions)))}
        else:
            how = {"nprobes": self.partitions, "ef": GRAPH_EF, "refine": GRAPH_REFINE}
        return {
            "vector": self.kind,
            "partitions": self.partitions,
            **how,
            "text": "fts",
            "filters": _filters(columns),
        }


def fit_indices(
    table: "Table", rows: int, *, changed: bool, sizes: IndexSizes | None = None
) -> None:
    """Give a large table the indices that it lacks, and take those of a small one.

    A vector index that is there stays, whatever it is (`maintain.py` knows when it has had its
    day).

    Args:
        changed: whether the rows are others than those of the text index. BM25 depends on the whole
            table, and an index that was only extended ranks by the old statistics, so it is built
            anew.
    """
    wanted = VectorIndex.fitting(rows, sizes or IndexSizes())
    if wanted is None:
        drop_indices(table)
        return
    from lancedb.index import Bitmap, BTree, LabelList

    there = {column for index in table.list_indices() for column in index.columns}
    if "vector" not in there:
        table.create_index("vector", config=_vector_config(wanted))
    if changed or "tokens" not in there:
        table.create_index("tokens", config=_words(), replace=True)
    for column in (filters := _filters(table.schema.names)):
        if column not in there:
            kind = (
                LabelList() if column == "tags" else BTree() if column == filters[0] else Bitmap()
            )
            table.create_index(column, config=kind)


def drop_indices(table: "Table", *columns: str) -> None:
    """Take the indices of those columns from a table; all without any columns."""
    for index in table.list_indices():
        if not columns or set(columns) & set(index.columns):
            table.drop_index(index.name)


def index_name(dataset: "LanceDataset", column: str) -> str | None:
    """The name of the index of a column, or None if it has none."""
    return next(
        (one.name for one in dataset.describe_indices() if one.field_names == [column]), None
    )


def search_of(dataset: "LanceDataset") -> Mapping[str, Any] | None:
    """The indices that a version of a table really has, as `Pin.search` records them; None if it
    has no vector index.
    """
    index = vector_index(dataset)
    return index.search(dataset.schema.names) if index else None


def vector_index(dataset: "LanceDataset") -> VectorIndex | None:
    """The vector index that a table has, whenever it was built and for how many rows."""
    name = index_name(dataset, "vector")
    if name is None:
        return None
    # Otherwise every call copies all centroids, and says so on stderr.
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")
    first = dataset.stats.index_stats(name)["indices"][0]
    graph = "HNSW" in first["index_type"]
    return VectorIndex(
        "ivf_hnsw_sq" if graph else "ivf_flat",
        first.get("num_partitions") or len(first["partitions"]),
    )


def _filters(columns: Collection[str]) -> list[str]:
    """Those by which rows are filtered; the first one has a value for nearly every row."""
    return [column for column in FILTERS if column in columns]


def _vector_config(wanted: VectorIndex) -> Any:
    from lancedb.index import HnswSq, IvfFlat

    make: Any = IvfFlat if wanted.kind == "ivf_flat" else HnswSq
    return make(
        distance_type="cosine", num_partitions=wanted.partitions, max_iterations=20, sample_rate=64
    )


def _words() -> Any:
    from lancedb.index import FTS

    return FTS(
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        with_position=False,
    )
