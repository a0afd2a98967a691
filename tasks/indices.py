"""Indices of an embedding table, for boards too large to be searched in memory. Small tables need none."""

from datetime import timedelta
from math import isqrt
from typing import TYPE_CHECKING

from pegboard.board import IN_MEMORY_ROWS

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["fit_indices"]

NEVER = timedelta(days=36_500)
"""Optimizing must not clean up: versions that kept releases pin would go with it."""


def fit_indices(table: "Table", rows: int, *, changed: bool) -> None:
    """Give a large table its vector, text and scalar indices, or bring those it has up to date.

    IVF_FLAT with about sqrt(rows) partitions stores vectors exactly. The text index is rebuilt whenever rows changed:
    BM25 depends on the whole table, and an index that was only extended ranks by the old statistics.
    """
    if rows <= IN_MEMORY_ROWS:
        return
    from lancedb.index import FTS, Bitmap, BTree, IvfFlat, LabelList

    there = {column for index in table.list_indices() for column in index.columns}
    if changed or "tokens" not in there:
        words = FTS(
            base_tokenizer="whitespace",
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
            with_position=False,
        )
        table.create_index("tokens", config=words, replace=True)
    if "vector" not in there:
        ivf = IvfFlat(distance_type="cosine", num_partitions=isqrt(rows), max_iterations=20, sample_rate=64)
        table.create_index("vector", config=ivf)
    for column, config in (("tool", BTree()), ("agent", Bitmap()), ("catalog", Bitmap()), ("kind", Bitmap())):
        if column not in there:
            table.create_index(column, config=config)
    if "tags" not in there:
        table.create_index("tags", config=LabelList())
    if changed:
        table.optimize(cleanup_older_than=NEVER)
