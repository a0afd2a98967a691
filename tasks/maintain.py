"""Keeping a table in order from night to night, so that it is searched as fast after a hundred
releases as after the first, and so that a release of 1 % changed rows writes about that much.

Every night adds a fragment (a file of rows) and marks the rows that it replaced as deleted. What is
due is read from the table
itself, so that a run finishes what a killed one left undone:

- deleted rows are more than 30 % of a table: it is written anew, and its indices with it;
- small fragments are many: they become one; the large ones stay as they are;
- rows that an index does not have yet: they become a part of it of their own, together with the
  newest parts as long as those are not larger than what is merged. So there are few parts, and a
  row is rewritten only a few times;
- the text index is built anew whenever rows changed, since BM25 depends on all of them.

LanceDB's own `optimize` is never called: it rewrites the large fragment every night, and cleans up
what releases pin."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.database import opening_options
from tasks.indices import (
    FILTERS,
    IndexSizes,
    VectorIndex,
    drop_indices,
    fit_indices,
    index_name,
    vector_index,
)

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from lancedb.table import Table


@dataclass(frozen=True, slots=True)
class Upkeep:
    """When something is due.

    Attributes:
        fragments: small ones that a table may have.
        small: rows of a small fragment, as a share of the table's ...
        small_rows: ... or up to this many.
        deleted: share of deleted rows at which a table is written anew ...
        deleted_rows: ... if there are at least so many.
    """

    fragments: int = 16
    small: float = 0.05
    small_rows: int = 1_000
    deleted: float = 0.3
    deleted_rows: int = 1_000


def maintain(
    table: "Table",
    uri: str,
    rows: int,
    *,
    sizes: IndexSizes | None = None,
    upkeep: Upkeep | None = None,
) -> None:
    """Do what is due for the newest version of a table; nothing if nothing is.

    Args:
        table: opened so that it follows to the newest version.
        uri: the board's root.
        rows: their number.
    """
    sizes, upkeep = sizes or IndexSizes(), upkeep or Upkeep()
    embeddings = "vector" in table.schema.names
    wanted = VectorIndex.fitting(rows, sizes) if embeddings else None
    dataset = open_dataset(uri, table.name)
    there = vector_index(dataset) if embeddings else None
    if there is not None and (wanted is None or not there.still_fits(wanted)):
        drop_indices(table)
        there = None
    if _spoilt(dataset, upkeep):
        drop_indices(table)
        _compact(open_dataset(uri, table.name), ())
        there = None
    elif small := _small_fragments(
        dataset, rows, upkeep, new_index=wanted is not None and there is None
    ):
        drop_indices(table, "tokens")
        _extend(open_dataset(uri, table.name), small)
        _compact(open_dataset(uri, table.name), small)
    if wanted is None:
        drop_indices(table)
        return
    _extend(open_dataset(uri, table.name))
    fit_indices(
        table, rows, changed=_text_is_stale(open_dataset(uri, table.name), rows), sizes=sizes
    )


def open_dataset(uri: str, table: str, version: int | None = None) -> "LanceDataset":
    """A table of the board at `uri` as pylance opens it, at its newest version if none is given."""
    # It logs, on stderr, every partition into which no new row falls.
    os.environ.setdefault("LANCE_LOG", "error")
    import lance

    folder = f"{uri.rstrip('/')}/{TABLES_FOLDER}/{table}.lance"
    return lance.dataset(folder, version=version, storage_options=lance_options(uri))


def lance_options(uri: str) -> dict[str, str] | None:
    """The storage options of a board as pylance takes them."""
    return opening_options(uri)[0] or None


def unindexed_rows(dataset: "LanceDataset", column: str) -> int:
    """Rows that the index of a column does not have; all without an index."""
    covered = {fragment for one in _segments(dataset, column) for fragment in one}
    return sum(_live(one) for one in dataset.get_fragments() if one.fragment_id not in covered)


def _live(fragment: "LanceFragment") -> int:
    return fragment.physical_rows - fragment.num_deletions


def _spoilt(dataset: "LanceDataset", upkeep: Upkeep) -> bool:
    fragments = dataset.get_fragments()
    deleted = sum(one.num_deletions for one in fragments)
    return deleted >= upkeep.deleted_rows and deleted > upkeep.deleted * sum(
        one.physical_rows for one in fragments
    )


def _small_fragments(
    dataset: "LanceDataset", rows: int, upkeep: Upkeep, *, new_index: bool
) -> set[int]:
    """The fragments that are due to become one; none if they are few.

    Those of the oldest part of the vector index stay apart: to touch one of them would rewrite that
    whole part. Right before an index is built, as few fragments as possible are best.
    """
    most = max(upkeep.small * rows, upkeep.small_rows)
    oldest = next(iter(_segments(dataset, "vector")), set[int]())
    small = {one.fragment_id for one in dataset.get_fragments() if _live(one) < most} - oldest
    return small if len(small) > (1 if new_index else upkeep.fragments) else set()


def _compact(dataset: "LanceDataset", small: Collection[int]) -> None:
    """Make those fragments one; all of them, without any named."""
    apart = [
        one.fragment_id for one in dataset.get_fragments() if small and one.fragment_id not in small
    ]
    dataset.optimize.compact_files(excluded_fragment_ids=apart, materialize_deletions_threshold=0.0)


def _extend(dataset: "LanceDataset", together: Collection[int] = ()) -> None:
    """Give the vector index and the scalar ones the rows that they lack.

    Args:
        together: fragments that have to be in one part of every index, since Lance makes one
            fragment only of those.
    """
    lives = {one.fragment_id: _live(one) for one in dataset.get_fragments()}
    due: dict[int, list[str]] = {}
    for column in ("vector", *FILTERS):
        lacking, (_, *newer) = (
            unindexed_rows(dataset, column),
            _segments(dataset, column) or [set[int]()],
        )
        merged, size = 0, lacking
        for number, segment in enumerate(reversed(newer), start=1):
            part = sum(lives.get(fragment, 0) for fragment in segment)
            if part > size and segment.isdisjoint(together):
                break
            merged, size = number, size + part
        name = index_name(dataset, column)
        if name is not None and (lacking or (together and merged > 1)):
            due.setdefault(merged, []).append(name)
    for merged, names in due.items():
        dataset.optimize.optimize_indices(num_indices_to_merge=merged, index_names=names)


def _text_is_stale(dataset: "LanceDataset", rows: int) -> bool:
    name = index_name(dataset, "tokens")
    if name is None or unindexed_rows(dataset, "tokens"):
        return True
    statistics: Any = dataset.stats.index_stats(name)
    return sum(one["num_docs"] for one in statistics["indices"]) != rows


def _segments(dataset: "LanceDataset", column: str) -> list[set[int]]:
    """The parts of a column's index, oldest first, each as the fragments whose rows it has."""
    for one in dataset.describe_indices():
        if one.field_names == [column]:
            return [set(segment.fragment_ids) for segment in one.segments]
    return []
