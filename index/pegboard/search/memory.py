"""Searching one index of a release in memory: exact cosine over all rows, exact BM25 over an
inverted list.

A service searches in many threads. A matrix product would spread each search over all cores, which
then wait for each other: 3,000 rows went from 2,700 products a second in one thread to 6 in 32. So
the cosines of a request are one inner product for each row, which no BLAS splits.
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
BM25_DIGITS = 4
"""Scores are rounded, so that the last bits of a sum do not decide between equals: NumPy and Lance
differ in them.
"""
BATCH = 16
"""Least size of a batch, which uses one matrix product on all cores."""


@dataclass(frozen=True)
class MemoryIndex:
    """The rows of an `emb_<index>` table, held in memory.

    Attributes:
        known: how frequent words are, where the rows are only some of an index's.
    """

    rows: "pa.Table"
    known: "WordStatistics | None" = None

    def both_many(
        self,
        queries: "NDArray[np.float32]",
        tokens: Sequence[Sequence[str]],
        n: int,
        where: Filter | None = None,
    ) -> list[Measures]:
        """What `vectors` and `texts` find for each query, a row of `queries` and its words, with
        what the ranker needs of each tool.
        """
        found = zip(self.vectors(queries, n, where), self.texts(tokens, n, where), strict=True)
        return [
            self.measured(query, words, vector, text)
            for query, words, (vector, text) in zip(queries, tokens, found, strict=True)
        ]

    def measured(
        self,
        query: "NDArray[np.float32]",
        tokens: Sequence[str],
        vector: Sequence[ScoredTool],
        text: Sequence[ScoredTool],
    ) -> Measures:
        """The measures of the tools of two rankings; all of them have rows here."""
        import numpy as np

        tools = list(dict.fromkeys(row.tool for row in (*vector, *text)))
        places = [self._places[tool] for tool in tools]
        rows = np.array([place for own in places for place in own], np.intp)
        starts = np.cumsum([0, *map(len, places)])[:-1]
        first = rows[starts] if tools else rows
        in_name, _ = self._name_postings.shared(tokens, self.statistics, rows)
        in_document, bm25 = self._postings.shared(tokens, self.statistics, rows)
        short = short_forms(tokens, self.statistics.counts)
        names = self.rows.column("name_tokens").take(first).to_pylist() if short else ()
        named = [not self._agent_words[place].isdisjoint(tokens) for place in first.tolist()]

        def best(values: "NDArray[np.floating]") -> "NDArray[np.float64]":
            whole = values.astype(np.float64)
            return whole if len(rows) == len(tools) else np.maximum.reduceat(whole, starts)

        return Measures(
            vector,
            text,
            tools,
            document=best(np.vecdot(self._vectors[rows], query)),
            summary=np.vecdot(self._summaries[first], query).astype(np.float64),
            bm25=best(bm25),
            request_idf=sum(self.statistics.idf(token) for token in dict.fromkeys(tokens)),
            in_document=best(in_document),
            in_name=best(in_name),
            name_idf=self._name_idf[first],
            abbreviated=np.array([abbreviated(short, name.split()) for name in names])
            if short
            else np.zeros(len(tools)),
            named_agent=np.array(named, np.float64),
            actions=[self._actions[place] for place in first.tolist()],
        )

    def vectors(
        self, queries: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[list[ScoredTool]]:
        """For each row of a matrix of unit vectors, of shape (queries, dimensions), the `n` tools
        with the highest cosine, best first.
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
        """For each query's words (see `text.query_words`) the `n` tools with the highest BM25, best
        first; a tool without any of them is left out.
        """
        mask = self._mask(where)
        rankings: list[list[ScoredTool]] = []
        for tokens in queries:
            scores = self._bm25(tokens)
            matching = scores > 0 if mask is None else (scores > 0) & mask
            rankings.append(self._best(scores, BM25_DIGITS, n, matching))
        return rankings

    def warm(self, before: "MemoryIndex") -> None:
        """Prepare what the previous release had prepared, so that no search waits for it after
        a swap.
        """
        prepared = ("_vectors", "_postings", "_tools", "_parts", "_places")
        for name in (*prepared, "_summaries", "_name_idf", "_actions", "_agent_words"):
            if name in before.__dict__:
                getattr(self, name)

    def _bm25(self, tokens: Sequence[str]) -> "NDArray[np.float64]":
        """BM25 of every row, shape (rows,)."""
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
        tools, parts = self._tools, self._parts
        take = n
        while True:
            chosen, rounded = _top(values, digits, take)
            places = chosen if candidates is None else candidates[chosen]
            rows = zip(places.tolist(), rounded.tolist(), strict=True)
            best = best_per_tool((ScoredTool(tools[i], score, parts[i]) for i, score in rows), n)
            if len(best) == n or len(chosen) == len(values):
                return best
            take *= 4

    def _mask(self, where: Filter | None) -> "NDArray[np.bool_] | None":
        return where.mask(self.rows) if where else None

    @cached_property
    def _tools(self) -> list[str]:
        return self.rows.column("tool").to_pylist()

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, tool in enumerate(self._tools):
            places.setdefault(tool, []).append(place)
        return places

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
        """The words of the name of each row's agent, as English."""
        words: dict[str, frozenset[str]] = {}
        agents: list[str] = self.rows.column("agent").to_pylist()
        for agent in dict.fromkeys(agents):
            name = agent.partition("/")[2]
            words[agent] = frozenset(tokenize(identifier_words(name)))
        return [words[agent] for agent in agents]

    @cached_property
    def statistics(self) -> "WordStatistics":
        """Word frequencies in the documents."""
        return self.known or self._postings.statistics()

    @cached_property
    def _postings(self) -> "Postings":
        average = self.known.average if self.known else None
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
    """The vectors of a column, shape (rows, dimensions)."""
    import numpy as np

    values = one_piece(column)
    flat = values.flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(len(values), values.type.list_size), dtype=np.float32)


def _top(
    values: "NDArray[np.floating]", digits: int, n: int
) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
    """The places of the `n` highest values and of all that tie with the last once rounded, and
    their rounded values.

    Rounding keeps the order, so only those that may be among the highest are rounded, which is most
    of the work."""
    import numpy as np

    if n >= len(values):
        return np.arange(len(values)), np.round(values.astype(np.float64), digits)
    last = np.round(np.float64(np.partition(values, len(values) - n)[len(values) - n]), digits)
    near = np.flatnonzero(values >= last - 10.0**-digits)
    rounded = np.round(values[near].astype(np.float64), digits)
    enough = rounded >= last
    return near[enough], rounded[enough]
