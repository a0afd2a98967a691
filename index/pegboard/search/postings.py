"""The inverted list of a column of words, and word frequencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BM25_K1 = 1.2
BM25_B = 0.75
"""The constants that Lance's text index uses, so that both ways of searching give the same scores.
"""


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """Document frequencies.

    Attributes:
        documents: how many there are.
        counts: how many have the word; words that none has are absent.
        average: words of a document.
    """

    documents: int
    counts: Mapping[str, int]
    average: float

    def idf(self, word: str) -> float:
        """Return ln(1 + (N - n + 0.5) / (n + 0.5)), as BM25 weighs a word."""
        count = self.counts.get(word, 0)
        return log(1 + (self.documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True)
class Postings:
    """An inverted list: the documents of term t are `documents[starts[t]:starts[t + 1]]`, in
    ascending order, with `counts` beside them.

    Attributes:
        norms: of each document, for BM25.
        average: words of a document.
    """

    terms: Mapping[str, int]
    starts: "NDArray[np.intp]"
    documents: "NDArray[np.int64]"
    counts: "NDArray[np.float64]"
    norms: "NDArray[np.float64]"
    average: float

    @classmethod
    def of(cls, column: Any, average: float | None = None) -> "Postings":
        """Return the inverted list of a column of texts, whose words blanks separate.

        Args:
            average: words of a document, where these are only some of an index's.
        """
        import numpy as np
        import pyarrow as pa
        from pyarrow import compute

        pc: Any = compute  # its functions are made at import, so no checker knows them

        rows = len(column)
        lists = pc.split_pattern(one_piece(column), " ")
        owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        words = pc.list_flatten(lists)
        real = pc.not_equal(words, "")
        owners = owners[real.to_numpy(zero_copy_only=False)]
        encoded = words.filter(real).dictionary_encode()
        vocabulary: list[str] = encoded.dictionary.to_pylist()
        lengths = np.bincount(owners, minlength=rows)
        pairs, counts = np.unique(
            encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64) * rows + owners,
            return_counts=True,
        )
        terms = pairs // max(rows, 1)
        own = lengths.mean() if lengths.sum() else 1.0
        average = float(own) if average is None else average
        pa.default_memory_pool().release_unused()  # twenty times what the list needs
        return cls(
            terms={word: number for number, word in enumerate(vocabulary)},
            starts=np.searchsorted(terms, np.arange(len(vocabulary) + 1)),
            documents=pairs % max(rows, 1),
            counts=counts.astype(np.float64),
            norms=np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * lengths / average), dtype=np.float64),
            average=average,
        )

    def of_word(self, word: str) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """Return the documents that have a word, ascending, and how often each has it."""
        term = self.terms.get(word)
        span = slice(0, 0) if term is None else slice(self.starts[term], self.starts[term + 1])
        return self.documents[span], self.counts[span]

    def bm25(
        self, idf: "float | NDArray[np.float64]", counts: "NDArray[np.float64]", rows: Any
    ) -> "NDArray[np.float64]":
        """Return what a word adds to the BM25 of documents that have it so often, shape (rows,)."""
        return idf * counts * (BM25_K1 + 1) / (counts + self.norms[rows])

    def statistics(self) -> WordStatistics:
        """Return the word frequencies."""
        import numpy as np

        numbers = np.diff(self.starts).tolist()
        return WordStatistics(
            len(self.norms), dict(zip(self.terms, numbers, strict=True)), self.average
        )

    def shared(
        self, words: Sequence[str], statistics: WordStatistics, rows: "NDArray[np.intp]"
    ) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """Return for some documents, shape (rows,): the sum of idf over the different words that
        they have, and BM25.
        """
        import numpy as np

        idfs, bm25 = np.zeros(len(rows)), np.zeros(len(rows))
        for word in dict.fromkeys(words):
            documents, counts = self.of_word(word)
            if not len(documents):
                continue
            places = np.minimum(np.searchsorted(documents, rows), len(documents) - 1)
            idf = np.where(documents[places] == rows, statistics.idf(word), 0.0)
            own = counts[places]
            idfs += idf
            bm25 += self.bm25(idf, own, rows)
        return idfs, bm25


def one_piece(column: Any) -> Any:
    """Return the values of a column as one array, the column's own where it has one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
