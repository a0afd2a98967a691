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

from pegboard.search.filters import Filter
from pegboard.search.ranking import Ranked, best_per_tool

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

BM25_K1 = 1.2
BM25_B = 0.75
"""The constants that Lance's text index uses, so that both ways of searching give the same scores.
"""
COSINE_DIGITS = 5
BM25_DIGITS = 4
"""Scores are rounded, so that the last bits of a sum do not decide between equals: NumPy and Lance
differ in them.
"""
BATCH = 16
"""Queries from which on they are a batch, whose one matrix product may use all cores."""


@dataclass(frozen=True)
class MemoryIndex:
    """The rows of an `emb_<index>` table, held in memory."""

    rows: "pa.Table"

    def vector(
        self, query: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[Ranked]:
        """The `n` tools with the highest cosine to a unit vector of shape (dimensions,), best
        first.
        """
        return self._by_vector(query, n, self._mask(where))

    def text(self, tokens: Sequence[str], n: int, where: Filter | None = None) -> list[Ranked]:
        """The `n` tools with the highest BM25 for the query's words (see `text.query_words`); a
        tool without any is left out.
        """
        return self._by_text(tokens, n, self._mask(where))

    def both(
        self,
        query: "NDArray[np.float32]",
        tokens: Sequence[str],
        n: int,
        where: Filter | None = None,
    ) -> tuple[list[Ranked], list[Ranked]]:
        """What `vector` and `text` find."""
        mask = self._mask(where)
        return self._by_vector(query, n, mask), self._by_text(tokens, n, mask)

    def vectors(
        self, queries: "NDArray[np.float32]", n: int, where: Filter | None = None
    ) -> list[list[Ranked]]:
        """What `vector` finds for each row of a matrix of unit vectors, of shape (queries,
        dimensions).
        """
        import numpy as np

        mask = self._mask(where)
        if len(queries) < BATCH:
            return [self._by_vector(query, n, mask) for query in queries]
        scores = np.ascontiguousarray((self._vectors @ queries.T).T)
        return [self._best(row, COSINE_DIGITS, n, mask) for row in scores]

    def texts(
        self, queries: Sequence[Sequence[str]], n: int, where: Filter | None = None
    ) -> list[list[Ranked]]:
        """What `text` finds for each query's words."""
        mask = self._mask(where)
        return [self._by_text(tokens, n, mask) for tokens in queries]

    def rows_of(self, tools: Sequence[str]) -> "dict[str, NDArray[np.float32]]":
        """The unit vectors of those tools' rows, each of shape (rows of the tool, dimensions);
        unknown tools are absent.
        """
        places = self._places
        return {tool: self._vectors[places[tool]] for tool in tools if tool in places}

    def warm(self, before: "MemoryIndex") -> None:
        """Prepare what searches of the release before had prepared, so that no search has to after
        a swap.
        """
        for name in ("_vectors", "_postings", "_tools", "_parts"):
            if name in before.__dict__:
                getattr(self, name)

    def _by_vector(
        self, query: "NDArray[np.float32]", n: int, mask: "NDArray[np.bool_] | None"
    ) -> list[Ranked]:
        import numpy as np

        return self._best(np.vecdot(self._vectors, query), COSINE_DIGITS, n, mask)

    def _by_text(
        self, tokens: Sequence[str], n: int, mask: "NDArray[np.bool_] | None"
    ) -> list[Ranked]:
        import numpy as np

        scores = np.zeros(self.rows.num_rows, dtype=np.float64)
        postings = self._postings
        for token in dict.fromkeys(tokens):
            term = postings.terms.get(token)
            if term is None:
                continue
            span = slice(postings.starts[term], postings.starts[term + 1])
            documents, counts = postings.documents[span], postings.counts[span]
            idf = np.log(1 + (self.rows.num_rows - len(documents) + 0.5) / (len(documents) + 0.5))
            scores[documents] += idf * counts * (BM25_K1 + 1) / (counts + postings.norms[documents])
        matching = scores > 0
        return self._best(scores, BM25_DIGITS, n, matching if mask is None else matching & mask)

    def _best(
        self, scores: "NDArray[np.floating]", digits: int, n: int, mask: "NDArray[np.bool_] | None"
    ) -> list[Ranked]:
        import numpy as np

        candidates = None if mask is None else np.flatnonzero(mask)
        values = scores if candidates is None else scores[candidates]
        tools, parts = self._tools, self._parts
        take = n
        while True:
            chosen, rounded = _top(values, digits, take)
            places = chosen if candidates is None else candidates[chosen]
            rows = zip(places.tolist(), rounded.tolist(), strict=True)
            best = best_per_tool((Ranked(tools[i], score, parts[i]) for i, score in rows), n)
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
        import numpy as np

        column = _one_piece(self.rows.column("vector"))
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(
            flat.reshape(self.rows.num_rows, column.type.list_size), dtype=np.float32
        )

    @cached_property
    def _postings(self) -> "_Postings":
        import pyarrow as pa

        postings = _inverted(_one_piece(self.rows.column("tokens")))
        pa.default_memory_pool().release_unused()  # twenty times what the list needs
        return postings


@dataclass(frozen=True, slots=True)
class _Postings:
    """An inverted list: the documents of term t are `documents[starts[t]:starts[t + 1]]`, with
    `counts` beside them.
    """

    terms: dict[str, int]
    starts: "NDArray[np.intp]"
    documents: "NDArray[np.int64]"
    counts: "NDArray[np.float64]"
    norms: "NDArray[np.float64]"


def _one_piece(column: Any) -> Any:
    """The values of a column as one array, the column's own where it has one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _inverted(texts: Any) -> "_Postings":
    """The inverted list of texts, an array of words between blanks."""
    import numpy as np
    from pyarrow import compute

    pc: Any = compute  # its functions are made at import, so no checker knows them

    lists = pc.split_pattern(texts, " ")
    owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    words = pc.list_flatten(lists)
    real = pc.not_equal(words, "")
    owners = owners[real.to_numpy(zero_copy_only=False)]
    encoded = words.filter(real).dictionary_encode()
    vocabulary: list[str] = encoded.dictionary.to_pylist()
    lengths = np.bincount(owners, minlength=len(texts))
    pairs, counts = np.unique(
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64) * len(texts) + owners,
        return_counts=True,
    )
    terms = pairs // max(len(texts), 1)
    average = lengths.mean() if lengths.sum() else 1.0
    return _Postings(
        terms={word: number for number, word in enumerate(vocabulary)},
        starts=np.searchsorted(terms, np.arange(len(vocabulary) + 1)),
        documents=pairs % max(len(texts), 1),
        counts=counts.astype(np.float64),
        norms=np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * lengths / average), dtype=np.float64),
    )


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
