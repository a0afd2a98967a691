"""Search of one index of a release in memory: exact cosine over all rows, exact BM25 over an
inverted index.

A service searches in many threads. BLAS would spread each matrix product over all cores, and the
threads would compete: with 3,000 rows, throughput fell from 2,700 products a second in one thread
to 6 in 32. So the cosines of a request are one inner product per row, which BLAS does not split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.ranker.abbreviations import abbreviated, short_forms
from pegboard.ranker.features import Measures
from pegboard.ranking import ScoredTool, best_per_tool
from pegboard.search.filters import Filter
from pegboard.search.postings import Postings, WordStatistics, one_piece
from pegboard.text.words import identifier_words, tokenize

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

COSINE_DIGITS = 5
"""Decimal digits of a cosine. Scores are rounded, since NumPy and Lance differ in the last bits,
which must not decide between equal tools.
"""
BM25_DIGITS = 4
"""Decimal digits of a BM25 score."""
BATCH = 16
"""Minimum number of queries for one matrix product on all cores."""


@dataclass(frozen=True)
class MemoryIndex:
    """The rows of an `emb_<index>` table, held in memory.

    Attributes:
        index_statistics: the word frequencies of the index, if the rows are only a part of it.
    """

    rows: "pa.Table"
    index_statistics: "WordStatistics | None" = None

    def both_many(
        self,
        queries: "NDArray[np.float32]",
        tokens: Sequence[Sequence[str]],
        n: int,
        where: Filter | None = None,
    ) -> list[Measures]:
        """Search by vector and by text; return the ranker's measures of the tools found.

        Args:
            queries: unit vectors, shape (queries, dimensions).
            tokens: the words of each query.
        """
        vector_rankings = self.vectors(queries, n, where)
        text_rankings = self.texts(tokens, n, where)
        return [
            self.measured(query, words, vector, text)
            for query, words, vector, text in zip(
                queries, tokens, vector_rankings, text_rankings, strict=True
            )
        ]

    def measured(
        self,
        query: "NDArray[np.float32]",
        tokens: Sequence[str],
        vector: Sequence[ScoredTool],
        text: Sequence[ScoredTool],
    ) -> Measures:
        """Return the ranker's measures of the tools of two rankings, which must have rows here."""
        import numpy as np

        tools = list(dict.fromkeys(row.tool for row in (*vector, *text)))
        tool_rows = [self._row_numbers[tool] for tool in tools]
        rows = np.array([row for numbers in tool_rows for row in numbers], np.intp)
        starts = np.cumsum([0, *map(len, tool_rows)])[:-1]
        first_rows = rows[starts] if tools else rows
        in_name, _ = self._name_postings.shared(tokens, self.statistics, rows)
        in_document, bm25 = self._postings.shared(tokens, self.statistics, rows)
        short = short_forms(tokens, self.statistics.counts)
        names = self.rows.column("name_tokens").take(first_rows).to_pylist() if short else ()
        names_agent = [not self._agent_words[row].isdisjoint(tokens) for row in first_rows.tolist()]

        def best(values: "NDArray[np.floating]") -> "NDArray[np.float64]":
            """Return the highest value of each tool's rows."""
            row_values = values.astype(np.float64)
            if len(rows) == len(tools):
                return row_values
            return np.maximum.reduceat(row_values, starts)

        return Measures(
            vector,
            text,
            tools,
            document=best(np.vecdot(self._vectors[rows], query)),
            summary=np.vecdot(self._summaries[first_rows], query).astype(np.float64),
            bm25=best(bm25),
            request_idf=sum(self.statistics.idf(token) for token in dict.fromkeys(tokens)),
            in_document=best(in_document),
            in_name=best(in_name),
            name_idf=self._name_idf[first_rows],
            abbreviated=np.array([abbreviated(short, name.split()) for name in names])
            if short
            else np.zeros(len(tools)),
            named_agent=np.array(names_agent, np.float64),
            actions=[self._actions[row] for row in first_rows.tolist()],
        )

    def vectors(
        self, queries: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """Return for each query the `n` tools with the highest cosine, best first.

        Args:
            queries: unit vectors, shape (queries, dimensions).
        """
        import numpy as np

        mask = self._mask(where)
        if len(queries) < BATCH:
            scores = (np.vecdot(self._vectors, query) for query in queries)
        else:
            scores = np.ascontiguousarray((self._vectors @ queries.T).T)
        return [self._best(row, COSINE_DIGITS, n, mask) for row in scores]

    def texts(
        self, queries: Sequence[Sequence[str]], n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """Return for each query the `n` tools with the highest BM25, best first. Tools without any
        of the words are left out.

        Args:
            queries: the words of each query (see `words.query_words`).
        """
        mask = self._mask(where)
        rankings: list[list[ScoredTool]] = []
        for tokens in queries:
            scores = self._bm25(tokens)
            matching = scores > 0 if mask is None else (scores > 0) & mask
            rankings.append(self._best(scores, BM25_DIGITS, n, matching))
        return rankings

    def warm(self, previous: "MemoryIndex") -> None:
        """Compute the properties that the previous release's index has computed, so that no search
        waits for them after a swap.
        """
        properties = ("_vectors", "_postings", "_tools", "_parts", "_row_numbers")
        for name in (*properties, "_summaries", "_name_idf", "_actions", "_agent_words"):
            if name in previous.__dict__:
                getattr(self, name)

    def _bm25(self, tokens: Sequence[str]) -> "NDArray[np.float64]":
        """Return the BM25 score of every row, shape (rows,)."""
        import numpy as np

        scores = np.zeros(self.rows.num_rows, dtype=np.float64)
        for token in dict.fromkeys(tokens):
            documents, counts = self._postings.of_word(token)
            idf = self.statistics.idf(token)
            scores[documents] += self._postings.bm25(idf, counts, documents)
        return scores

    def _best(
        self, scores: "NDArray[np.floating]", digits: int, n: int, mask: "NDArray[np.bool_] | None"
    ) -> list[ScoredTool]:
        import numpy as np

        candidates = None if mask is None else np.flatnonzero(mask)
        values = scores if candidates is None else scores[candidates]
        tools = self._tools
        parts = self._parts
        limit = n
        while True:
            top, rounded = _top(values, digits, limit)
            row_numbers = top if candidates is None else candidates[top]
            rows = zip(row_numbers.tolist(), rounded.tolist(), strict=True)
            best = best_per_tool(
                (ScoredTool(tools[row], score, parts[row]) for row, score in rows), n
            )
            if len(best) == n or len(top) == len(values):
                return best
            limit *= 4

    def _mask(self, where: Filter | None) -> "NDArray[np.bool_] | None":
        return where.mask(self.rows) if where else None

    @cached_property
    def _tools(self) -> list[str]:
        return self.rows.column("tool").to_pylist()

    @cached_property
    def _row_numbers(self) -> dict[str, list[int]]:
        """The numbers of each tool's rows."""
        row_numbers: dict[str, list[int]] = {}
        for row, tool in enumerate(self._tools):
            row_numbers.setdefault(tool, []).append(row)
        return row_numbers

    @cached_property
    def _parts(self) -> list[str]:
        return self.rows.column("part").to_pylist()

    @cached_property
    def _vectors(self) -> "NDArray[np.float32]":
        return _matrix(self.rows.column("vector"))

    @cached_property
    def _summaries(self) -> "NDArray[np.float32]":
        return _matrix(self.rows.column("summary_vector"))

    @cached_property
    def _actions(self) -> list[frozenset[str]]:
        actions: dict[str, frozenset[str]] = {}
        column: list[str] = self.rows.column("actions").to_pylist()
        return [actions.setdefault(text, frozenset(text.split())) for text in column]

    @cached_property
    def _agent_words(self) -> list[frozenset[str]]:
        """The words of each row's agent's name, stemmed as English."""
        words: dict[str, frozenset[str]] = {}
        agents: list[str] = self.rows.column("agent").to_pylist()
        for agent in dict.fromkeys(agents):
            name = agent.partition("/")[2]
            words[agent] = frozenset(tokenize(identifier_words(name)))
        return [words[agent] for agent in agents]

    @cached_property
    def statistics(self) -> "WordStatistics":
        """Word frequencies in the documents of the index."""
        return self.index_statistics or self._postings.statistics()

    @cached_property
    def _postings(self) -> "Postings":
        average = self.index_statistics.average if self.index_statistics else None
        return Postings.of(self.rows.column("tokens"), average)

    @cached_property
    def _name_postings(self) -> "Postings":
        return Postings.of(self.rows.column("name_tokens"))

    @cached_property
    def _name_idf(self) -> "NDArray[np.float64]":
        """The sum of idf over the different words of each row's name."""
        import numpy as np

        names = self._name_postings
        idf = np.array([self.statistics.idf(word) for word in names.terms], np.float64)
        weights = np.repeat(idf, np.diff(names.starts))
        sums = np.bincount(names.documents, weights, minlength=self.rows.num_rows)
        return sums.astype(np.float64)


def _matrix(column: Any) -> "NDArray[np.float32]":
    """Return the vectors of a column, shape (rows, dimensions)."""
    import numpy as np

    values = one_piece(column)
    flat = values.flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(len(values), values.type.list_size), dtype=np.float32)


def _top(
    values: "NDArray[np.floating]", digits: int, n: int
) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
    """Return the positions of the `n` highest values and of all that tie with the last of them
    after rounding, and their rounded values.

    Rounding is most of the work. It keeps the order, so only values that may be among the highest
    are rounded."""
    import numpy as np

    if n >= len(values):
        return np.arange(len(values)), np.round(values.astype(np.float64), digits)
    lowest = np.round(np.float64(np.partition(values, len(values) - n)[len(values) - n]), digits)
    candidates = np.flatnonzero(values >= lowest - 10.0**-digits)
    rounded = np.round(values[candidates].astype(np.float64), digits)
    is_high_enough = rounded >= lowest
    return candidates[is_high_enough], rounded[is_high_enough]
