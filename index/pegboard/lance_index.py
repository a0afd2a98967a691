"""Searching one index of a release through Lance's own indices, for boards too large to be held in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pegboard.filters import Filter
from pegboard.memory import BM25_DIGITS, COSINE_DIGITS
from pegboard.ranking import Ranked, best_per_tool
from pegboard.store import store_errors

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.table import Table
    from numpy.typing import NDArray

__all__ = ["LanceIndex"]

NPROBES = 40
"""Partitions that a vector query visits: recall@10 of .99 at 100,000 rows and 100 partitions."""
MARGIN = 16
"""Rows fetched beyond those asked for, so that ties at the end are ordered by id as in memory."""


@dataclass(frozen=True, slots=True)
class LanceIndex:
    """An `emb_<index>` table pinned to the version of a release."""

    table: "Table"
    uri: str
    rows: int

    def vector(self, query: "NDArray[np.float32]", n: int, where: Filter | None = None) -> list[Ranked]:
        """The `n` tools with the highest cosine to a unit vector of shape (dimensions,), best first."""

        def search(limit: int) -> "pa.Table":
            built = cast("Any", self.table.search(query, vector_column_name="vector", query_type="vector"))
            built = built.distance_type("cosine").nprobes(NPROBES).limit(limit).select(["tool", "part", "_distance"])
            return (built.where(where.sql(), prefilter=True) if where else built).to_arrow()

        return self._best(
            search, n, lambda found: [round(1 - d, COSINE_DIGITS) for d in found.column("_distance").to_pylist()]
        )

    def text(self, tokens: Sequence[str], n: int, where: Filter | None = None) -> list[Ranked]:
        """The `n` tools with the highest BM25 for the query's words (see `text.tokenize`); a tool without any is left out."""
        words = " ".join(dict.fromkeys(tokens))
        if not words:
            return []

        with store_errors(self.uri):
            indexed = any("tokens" in index.columns for index in self.table.list_indices())

        def search(limit: int) -> "pa.Table":
            built = cast("Any", self.table.search(words, query_type="fts", fts_columns="tokens"))
            # A table without a text index is small; there Lance would take BM25's statistics from the rows that pass.
            built = built.limit(limit if indexed or not where else self.rows).select(["tool", "part", "_score"])
            return (built.where(where.sql(), prefilter=indexed) if where else built).to_arrow()

        return self._best(search, n, lambda found: [round(s, BM25_DIGITS) for s in found.column("_score").to_pylist()])

    def _best(self, search: Any, n: int, scores_of: Any) -> list[Ranked]:
        limit = n + MARGIN
        while True:
            with store_errors(self.uri):
                found = search(limit)
            ranked = [
                Ranked(tool, score, part)
                for tool, part, score in zip(
                    found.column("tool").to_pylist(),
                    found.column("part").to_pylist(),
                    scores_of(found),
                    strict=True,
                )
            ]
            best = best_per_tool(ranked, n)
            if len(best) == n or found.num_rows < limit or limit >= self.rows:
                return best
            limit *= 4
