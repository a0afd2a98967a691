"""Indices and upkeep of a board's tables, so that searches stay as fast after a hundred releases as
after the first, and a release of 1 % changed rows writes about that much.

Indices of an embedding table follow its size:

    up to 50,000 rows       none: readers hold the table in memory
    up to 1,000,000 rows    IVF_FLAT: vectors as they are, in partitions of about 1,000
    above                   IVF_HNSW_SQ: a graph over quantised vectors; the best are rescored

Every table with a vector index has a text index, and one for every column by which a search is
filtered. A table of so many tools or agents has one for their ids, by which readers fetch them.

Each release adds a fragment (a file of rows) and marks the rows that it replaced as deleted. What
is due is read from the table itself, so that a run finishes what a killed one left undone:

- more than 30 % of the rows are deleted: the table is rewritten, and its indices with it;
- small fragments are many: they are merged; the large ones stay as they are;
- rows without an index: they become a segment of it, merged with the newest segments as long as
  those are not larger. So there are few segments, and a row is rewritten only a few times;
- rows changed: the text index is rebuilt, since BM25 depends on all of them.

LanceDB's own `optimize` is never called: it rewrites the large fragment every night, and cleans up
what releases pin."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Literal

from pegboard.search.loaded import IN_MEMORY_ROWS
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.database import opening_options

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from lancedb.table import Table

FILTERS = ("tool", "agent", "catalog", "kind", "tags")
"""Columns with a scalar index, where a table has them."""
KEY = "id"
"""Of tools and agents; documents are found by their vectors and words."""
PROBES = 3.2
"""A query visits this many times the root of the number of partitions. With clustered vectors and
queries far from every cluster, recall@10 is .99 and better (32 dimensions, 20,000 to 250,000 rows);
with vectors that are pure noise, for which no index of this kind helps, it is not."""
GRAPH_EF = 150
GRAPH_REFINE = 5
"""Candidates of a graph, and how many times k of them are rescored. All partitions are visited:
there are few.
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
class Upkeep:
    """When maintenance is due.

    Attributes:
        fragments: small fragments that a table may have.
        small: rows of a small fragment, as a share of the table's ...
        small_rows: ... or up to this many.
        deleted: share of deleted rows at which a table is rewritten ...
        deleted_rows: ... if there are at least so many.
    """

    fragments: int = 16
    small: float = 0.05
    small_rows: int = 1_000
    deleted: float = 0.3
    deleted_rows: int = 1_000


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A kind of vector index and its number of partitions."""

    kind: Literal["ivf_flat", "ivf_hnsw_sq"]
    partitions: int

    @classmethod
    def fitting(cls, rows: int, sizes: IndexSizes) -> "VectorIndex | None":
        """Return the index for so many rows; None if they are searched without."""
        if rows <= sizes.in_memory:
            return None
        if rows <= sizes.flat:
            return cls("ivf_flat", max(1, round(rows / sizes.flat_partition)))
        return cls("ivf_hnsw_sq", max(1, round(rows / sizes.graph_partition)))

    def still_fits(self, target: "VectorIndex") -> bool:
        """Return whether this index is close enough to the target: same kind, within a factor of 2
        of its partitions.
        """
        return (
            self.kind == target.kind
            and target.partitions <= 2 * self.partitions <= 4 * target.partitions
        )

    def search(self, columns: Collection[str]) -> dict[str, Any]:
        """Return how a reader searches a table with these columns: the value of `Pin.search`."""
        if self.kind == "ivf_flat":
            options = {"nprobes": min(self.partitions, ceil(PROBES * sqrt(self.partitions)))}
        else:
            options = {"nprobes": self.partitions, "ef": GRAPH_EF, "refine": GRAPH_REFINE}
        return {
            "vector": self.kind,
            "partitions": self.partitions,
            **options,
            "text": "fts",
            "filters": _filters(columns),
        }


def maintain(
    table: "Table",
    uri: str,
    rows: int,
    *,
    sizes: IndexSizes | None = None,
    upkeep: Upkeep | None = None,
) -> None:
    """Do what is due for the newest version of a table.

    Args:
        table: opened so that it follows to the newest version.
        uri: the board's root.
        rows: the number of rows.
    """
    sizes, upkeep = sizes or IndexSizes(), upkeep or Upkeep()
    embeddings = "vector" in table.schema.names
    target = VectorIndex.fitting(rows, sizes) if embeddings else None
    dataset = open_dataset(uri, table.name)
    index = vector_index(dataset) if embeddings else None
    if index is not None and (target is None or not index.still_fits(target)):
        drop_indices(table)
        index = None
    rebuild = target is not None and index is None
    if _is_fragmented(dataset, upkeep):
        drop_indices(table)
        _compact(open_dataset(uri, table.name), ())
    elif small := _small_fragments(dataset, rows, upkeep, rebuild=rebuild):
        drop_indices(table, "tokens")
        _extend(open_dataset(uri, table.name), small)
        _compact(open_dataset(uri, table.name), small)
    if target is None and (rows <= sizes.in_memory or KEY not in table.schema.names):
        drop_indices(table)
        return
    _extend(open_dataset(uri, table.name))
    if target is None:
        _index_key(table)
        return
    stale = _text_is_stale(open_dataset(uri, table.name), rows)
    fit_indices(table, rows, changed=stale, sizes=sizes)


def _index_key(table: "Table") -> None:
    from lancedb.index import BTree

    if not table.list_indices():
        table.create_index(KEY, config=BTree())


def fit_indices(
    table: "Table", rows: int, *, changed: bool, sizes: IndexSizes | None = None
) -> None:
    """Create the indices that a large table lacks, and drop those of a small one.

    An existing vector index stays as it is; `maintain` decides when it is replaced.

    Args:
        changed: whether the rows differ from those of the text index. BM25 depends on the whole
            table, and an index that was only extended ranks by the old statistics, so it is
            rebuilt.
    """
    target = VectorIndex.fitting(rows, sizes or IndexSizes())
    if target is None:
        drop_indices(table)
        return
    from lancedb.index import Bitmap, BTree, LabelList

    indexed = {column for index in table.list_indices() for column in index.columns}
    if "vector" not in indexed:
        table.create_index("vector", config=_vector_config(target))
    if changed or "tokens" not in indexed:
        table.create_index("tokens", config=_text_config(), replace=True)
    filters = _filters(table.schema.names)
    for column in filters:
        if column in indexed:
            continue
        unique = column == filters[0]
        config = LabelList() if column == "tags" else BTree() if unique else Bitmap()
        table.create_index(column, config=config)


def drop_indices(table: "Table", *columns: str) -> None:
    """Drop the indices of these columns; all without any columns."""
    for index in table.list_indices():
        if not columns or set(columns) & set(index.columns):
            table.drop_index(index.name)


def search_of(dataset: "LanceDataset") -> Mapping[str, Any] | None:
    """Return how a version of a table is searched, as `Pin.search`; None without a vector index."""
    index = vector_index(dataset)
    return index.search(dataset.schema.names) if index else None


def vector_index(dataset: "LanceDataset") -> VectorIndex | None:
    """Return the vector index that a table has, for however many rows it was built."""
    name = _index_name(dataset, "vector")
    if name is None:
        return None
    # Otherwise every call copies all centroids, and logs that on stderr.
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")
    first = dataset.stats.index_stats(name)["indices"][0]
    kind = "ivf_hnsw_sq" if "HNSW" in first["index_type"] else "ivf_flat"
    return VectorIndex(kind, first.get("num_partitions") or len(first["partitions"]))


def open_dataset(uri: str, table: str, version: int | None = None) -> "LanceDataset":
    """Open a table of the board at `uri` with pylance, by default at its newest version."""
    # It logs, on stderr, every partition into which no new row falls.
    os.environ.setdefault("LANCE_LOG", "error")
    import lance

    folder = f"{uri.rstrip('/')}/{TABLES_FOLDER}/{table}.lance"
    return lance.dataset(folder, version=version, storage_options=lance_options(uri))


def lance_options(uri: str) -> dict[str, str] | None:
    """Return the storage options of a board for pylance."""
    return opening_options(uri)[0] or None


def unindexed_rows(dataset: "LanceDataset", column: str) -> int:
    """Count the rows that the index of a column lacks; all rows without an index."""
    covered = {number for segment in _segments(dataset, column) for number in segment}
    return sum(
        _live_rows(fragment)
        for fragment in dataset.get_fragments()
        if fragment.fragment_id not in covered
    )


def _live_rows(fragment: "LanceFragment") -> int:
    return fragment.physical_rows - fragment.num_deletions


def _is_fragmented(dataset: "LanceDataset", upkeep: Upkeep) -> bool:
    fragments = dataset.get_fragments()
    deleted = sum(fragment.num_deletions for fragment in fragments)
    rows = sum(fragment.physical_rows for fragment in fragments)
    return deleted >= upkeep.deleted_rows and deleted > upkeep.deleted * rows


def _small_fragments(
    dataset: "LanceDataset", rows: int, upkeep: Upkeep, *, rebuild: bool
) -> set[int]:
    """Return the fragments that are due to be merged; none if they are few.

    Those of the oldest segment of the vector index stay apart: to merge one of them would rewrite
    that whole segment. Right before an index is built, as few fragments as possible are best.
    """
    limit = max(upkeep.small * rows, upkeep.small_rows)
    oldest = next(iter(_segments(dataset, "vector")), set[int]())
    small = {
        fragment.fragment_id for fragment in dataset.get_fragments() if _live_rows(fragment) < limit
    } - oldest
    return small if len(small) > (1 if rebuild else upkeep.fragments) else set()


def _compact(dataset: "LanceDataset", fragments: Collection[int]) -> None:
    """Merge these fragments; all of them, without any named."""
    excluded = [
        fragment.fragment_id
        for fragment in dataset.get_fragments()
        if fragments and fragment.fragment_id not in fragments
    ]
    dataset.optimize.compact_files(
        excluded_fragment_ids=excluded, materialize_deletions_threshold=0.0
    )


def _extend(dataset: "LanceDataset", together: Collection[int] = ()) -> None:
    """Add the rows that they lack to the vector index and the scalar ones.

    Args:
        together: fragments that have to be in one segment of every index, since Lance merges only
            those.
    """
    sizes = {fragment.fragment_id: _live_rows(fragment) for fragment in dataset.get_fragments()}
    due: dict[int, list[str]] = {}
    for column in ("vector", KEY, *FILTERS):
        name, missing = _index_name(dataset, column), unindexed_rows(dataset, column)
        merged, size = 0, missing
        for number, segment in enumerate(reversed(_segments(dataset, column)[1:]), start=1):
            rows = sum(sizes.get(fragment, 0) for fragment in segment)
            if rows > size and segment.isdisjoint(together):
                break
            merged, size = number, size + rows
        if name is not None and (missing or (together and merged > 1)):
            due.setdefault(merged, []).append(name)
    for merged, names in due.items():
        dataset.optimize.optimize_indices(num_indices_to_merge=merged, index_names=names)


def _text_is_stale(dataset: "LanceDataset", rows: int) -> bool:
    name = _index_name(dataset, "tokens")
    if name is None or unindexed_rows(dataset, "tokens"):
        return True
    statistics: Any = dataset.stats.index_stats(name)
    return sum(index["num_docs"] for index in statistics["indices"]) != rows


def _segments(dataset: "LanceDataset", column: str) -> list[set[int]]:
    """Return the segments of a column's index, oldest first, each as the fragments whose rows it
    has.
    """
    for index in dataset.describe_indices():
        if index.field_names == [column]:
            return [set(segment.fragment_ids) for segment in index.segments]
    return []


def _index_name(dataset: "LanceDataset", column: str) -> str | None:
    names = [index.name for index in dataset.describe_indices() if index.field_names == [column]]
    return names[0] if names else None


def _filters(columns: Collection[str]) -> list[str]:
    """Return the columns by which rows are filtered; the first has a value for nearly every row."""
    return [column for column in FILTERS if column in columns]


def _vector_config(index: VectorIndex) -> Any:
    from lancedb.index import HnswSq, IvfFlat

    config: Any = IvfFlat if index.kind == "ivf_flat" else HnswSq
    return config(
        distance_type="cosine", num_partitions=index.partitions, max_iterations=20, sample_rate=64
    )


def _text_config() -> Any:
    from lancedb.index import FTS

    return FTS(
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        with_position=False,
    )
