"""Searching one index of a release through Lance's own indices, for boards too large to be held in
memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard.ranker.features import Measures
from pegboard.ranking import ScoredTool, best_per_tool
from pegboard.search.filters import Filter
from pegboard.search.memory import BM25_DIGITS, COSINE_DIGITS, MemoryIndex
from pegboard.search.postings import Postings, WordStatistics
from pegboard.store.database import sql_literals, store_errors
from pegboard.store.reading import BoardTable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

Found = TypeVar("Found")

NPROBES = 40
"""Partitions that a vector query visits where the release does not say: recall@10 of .99 at 100,000
rows and 316 partitions.
"""
MARGIN = 16
"""Extra rows fetched, so that ties at the end are ordered by id as in memory."""
COLUMNS = ("tool", "part")
MEASURED = (
    *("key", "tool", "agent", "actions", "tokens", "vector", "name_tokens"),
    "summary_vector",
)
"""The columns that the ranker's features need."""
SAMPLE = 50_000
"""Sample size for word frequencies."""
DIGITS = 8
"""Of a digest, which select a sample."""
AT_ONCE = 8
"""Concurrent Lance queries; each uses several threads."""


@dataclass(frozen=True)
class LanceIndex:
    """An `emb_<index>` table pinned to the version of a release.

    `settings` is what the release records of its indices (`Pin.search`): how many partitions or
    candidates a vector query visits, whether there is a text index; None where it records nothing.
    """

    table: BoardTable
    uri: str
    rows: int
    settings: Mapping[str, Any] | None = None
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def both_many(
        self,
        queries: "NDArray[np.float32]",
        tokens: Sequence[Sequence[str]],
        n: int,
        where: Filter | None = None,
    ) -> list[Measures]:
        """What `vectors` and `texts` find for each query, a row of `queries` and its words, with
        what the ranker needs of each tool; all queries at once.
        """
        pairs = list(zip(queries, tokens, strict=True))
        return self._at_once(lambda pair: self._both(pair[0], pair[1], n, where), pairs)

    @property
    def statistics(self) -> WordStatistics:
        """Word frequencies, from a sample of the rows in large tables."""
        with self._lock:  # threads that search at the same time count once
            return self._statistics

    @cached_property
    def _statistics(self) -> WordStatistics:
        # Rows lie catalog by catalog, so the first ones would be of few catalogs; digests are even.
        bound = f"{16**DIGITS * SAMPLE // max(self.rows, 1):0{DIGITS}x}"
        condition = f"digest < '{bound}'" if self.rows > SAMPLE else None
        with store_errors(self.uri):
            rows = self.table.read(("tokens",), where=condition)
        return Postings.of(rows.column("tokens")).statistics()

    def vectors(
        self, queries: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """For each row of a matrix of unit vectors, of shape (queries, dimensions), the `n` tools
        with the highest cosine, best first; all queries at once.
        """
        return self._at_once(lambda query: self._by_vector(query, n, where), list(queries))

    def texts(
        self, queries: Sequence[Sequence[str]], n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """For each query's words (see `text.query_words`) the `n` tools with the highest BM25, best
        first; a tool without any of them is left out.
        """
        return self._at_once(lambda tokens: self._by_text(tokens, n, where), list(queries))

    def warm(self, before: "LanceIndex") -> None:
        """Count words if the previous release had done so: no search waits for it after a swap."""
        if "_statistics" in before.__dict__:
            _ = self.statistics

    def _by_vector(
        self, query: "NDArray[np.float32]", n: int, where: Filter | None
    ) -> list[ScoredTool]:
        nprobes = (self.settings or {}).get("nprobes") or NPROBES
        condition = where.sql() if where else None

        def search(limit: int) -> "pa.Table":
            return self.table.nearest(query, limit, COLUMNS, where=condition, nprobes=nprobes)

        return self._best(
            search, n, "_distance", lambda distance: round(1 - distance, COSINE_DIGITS)
        )

    def _by_text(self, tokens: Sequence[str], n: int, where: Filter | None) -> list[ScoredTool]:
        words = " ".join(dict.fromkeys(tokens))
        if not words:
            return []
        indexed = bool((self.settings or {}).get("text"))
        condition = where.sql() if where else None

        def search(limit: int) -> "pa.Table":
            # A table without a text index is small; there Lance would take BM25's statistics from
            # the rows that pass.
            whole = limit if indexed or not where else self.rows
            return self.table.matching(words, whole, COLUMNS, where=condition, prefilter=indexed)

        return self._best(search, n, "_score", lambda score: round(score, BM25_DIGITS))

    def _both(
        self, query: "NDArray[np.float32]", tokens: Sequence[str], n: int, where: Filter | None
    ) -> Measures:
        """What both searches find, at once: Lance has a thread for each."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, "pegboard-text") as pool:
            words = pool.submit(self._by_text, tokens, n, where)
            vector, text = self._by_vector(query, n, where), words.result()
        tools = dict.fromkeys(row.tool for row in (*vector, *text))
        condition = f"tool IN ({sql_literals(tools) or 'NULL'})"
        with store_errors(self.uri):
            rows = self.table.read(MEASURED, where=condition).sort_by("key")
        return MemoryIndex(rows, self.statistics).measured(query, tokens, vector, text)

    def _at_once(self, search: Callable[[Any], Found], queries: Sequence[Any]) -> list[Found]:
        from concurrent.futures import ThreadPoolExecutor

        if len(queries) < 2:
            return [search(query) for query in queries]
        with ThreadPoolExecutor(min(len(queries), AT_ONCE), "pegboard-queries") as pool:
            return list(pool.map(search, queries))

    def _best(
        self,
        search: "Callable[[int], pa.Table]",
        n: int,
        column: str,
        scored: Callable[[float], float],
    ) -> list[ScoredTool]:
        limit = n + MARGIN
        while True:
            with store_errors(self.uri):
                rows = search(limit)
            columns = (rows.column(name).to_pylist() for name in (*COLUMNS, column))
            best = best_per_tool(
                (
                    ScoredTool(tool, scored(value), part)
                    for tool, part, value in zip(*columns, strict=True)
                ),
                n,
            )
            if len(best) == n or rows.num_rows < limit or limit >= self.rows:
                return best
            limit *= 4
