"""Search of one index of a release through Lance's indices, for boards too large for memory."""

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

Result = TypeVar("Result")

NPROBES = 40
"""Default number of partitions that a vector query visits: recall@10 of .99 at 100,000 rows and 316
partitions.
"""
MARGIN = 16
"""Number of extra rows fetched, so that ties at the end are ordered by id as in memory."""
COLUMNS = ("tool", "part")
"""The columns that a ranking needs."""
MEASURED = (
    *("key", "tool", "agent", "actions", "tokens", "vector", "name_tokens"),
    "summary_vector",
)
"""The columns that the ranker's features need."""
SAMPLE = 50_000
"""Number of rows sampled for word frequencies."""
DIGITS = 8
"""Number of hexadecimal digits of a digest that are compared to select a sample."""
AT_ONCE = 8
"""Maximum number of concurrent Lance queries; each uses several threads."""


@dataclass(frozen=True)
class LanceIndex:
    """An `emb_<index>` table pinned to the version of a release.

    Attributes:
        settings: the release's record of the table's Lance indices (`Pin.search`): the partitions
            or candidates that a vector query visits, and whether there is a text index; None if the
            release has no record.
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
        """Search all queries concurrently by vector and by text; return the ranker's measures of
        the tools found.

        Args:
            queries: unit vectors, shape (queries, dimensions).
            tokens: the words of each query.
        """
        pairs = list(zip(queries, tokens, strict=True))
        return self._concurrently(lambda pair: self._both(pair[0], pair[1], n, where), pairs)

    @property
    def statistics(self) -> WordStatistics:
        """The word frequencies, from a sample of the rows in large tables."""
        with self._lock:  # concurrent searches count only once
            return self._statistics

    @cached_property
    def _statistics(self) -> WordStatistics:
        # Rows are stored catalog by catalog, so the first rows would come from few catalogs.
        # Digests are evenly distributed.
        bound = f"{16**DIGITS * SAMPLE // max(self.rows, 1):0{DIGITS}x}"
        condition = f"digest < '{bound}'" if self.rows > SAMPLE else None
        with store_errors(self.uri):
            rows = self.table.read(("tokens",), where=condition)
        return Postings.of(rows.column("tokens")).statistics()

    def vectors(
        self, queries: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """Search all queries concurrently; return for each the `n` tools with the highest cosine,
        best first.

        Args:
            queries: unit vectors, shape (queries, dimensions).
        """
        return self._concurrently(lambda query: self._by_vector(query, n, where), list(queries))

    def texts(
        self, queries: Sequence[Sequence[str]], n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """Search all queries concurrently; return for each the `n` tools with the highest BM25,
        best first. Tools without any of the words are left out.

        Args:
            queries: the words of each query (see `words.query_words`).
        """
        return self._concurrently(lambda tokens: self._by_text(tokens, n, where), list(queries))

    def warm(self, previous: "LanceIndex") -> None:
        """Count words if the previous release has, so that no search waits for it after a swap."""
        if "_statistics" in previous.__dict__:
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
        is_indexed = bool((self.settings or {}).get("text"))
        condition = where.sql() if where else None

        def search(limit: int) -> "pa.Table":
            # Without a text index, Lance would compute BM25's statistics from the filtered rows.
            # Such a table is small, so all its rows are fetched and filtered afterwards.
            if where and not is_indexed:
                limit = self.rows
            return self.table.matching(words, limit, COLUMNS, where=condition, prefilter=is_indexed)

        return self._best(search, n, "_score", lambda score: round(score, BM25_DIGITS))

    def _both(
        self, query: "NDArray[np.float32]", tokens: Sequence[str], n: int, where: Filter | None
    ) -> Measures:
        """Search by vector and by text concurrently; return the measures of the tools found."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, "pegboard-text") as pool:
            text_search = pool.submit(self._by_text, tokens, n, where)
            vector = self._by_vector(query, n, where)
            text = text_search.result()
        tools = dict.fromkeys(row.tool for row in (*vector, *text))
        condition = f"tool IN ({sql_literals(tools) or 'NULL'})"
        with store_errors(self.uri):
            rows = self.table.read(MEASURED, where=condition).sort_by("key")
        return MemoryIndex(rows, self.statistics).measured(query, tokens, vector, text)

    def _concurrently(
        self, search: Callable[[Any], Result], queries: Sequence[Any]
    ) -> list[Result]:
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
        score_of: Callable[[float], float],
    ) -> list[ScoredTool]:
        """Search with growing limits until there are `n` different tools, or no more rows."""
        limit = n + MARGIN
        while True:
            with store_errors(self.uri):
                rows = search(limit)
            columns = (rows.column(name).to_pylist() for name in (*COLUMNS, column))
            best = best_per_tool(
                (
                    ScoredTool(tool, score_of(value), part)
                    for tool, part, value in zip(*columns, strict=True)
                ),
                n,
            )
            if len(best) == n or rows.num_rows < limit or limit >= self.rows:
                return best
            limit *= 4
