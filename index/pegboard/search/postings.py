"""An inverted index of a column of words, and its word frequencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BM25_K1 = 1.2
"""BM25's saturation of term frequency; the value of Lance's text index, so that both ways of
searching give equal scores.
"""
BM25_B = 0.75
"""BM25's length normalisation; the value of Lance's text index."""


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """Document frequencies.

    Attributes:
        documents: the number of documents.
        counts: the number of documents that have each word; other words are absent.
        average: the mean number of words of a document.
    """

    documents: int
    counts: Mapping[str, int]
    average: float

    def idf(self, word: str) -> float:
        """Return the weight of a word in BM25: ln(1 + (N - n + 0.5) / (n + 0.5))."""
        count = self.counts.get(word, 0)
        return log(1 + (self.documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True)
class Postings:
    """An inverted index: the documents of term t are `documents[starts[t]:starts[t + 1]]`, in
    ascending order; `counts` at the same places says how often each has the term.

    Attributes:
        norms: BM25's length normalisation of each document.
        average: the mean number of words of a document.
    """

    terms: Mapping[str, int]
    starts: "NDArray[np.intp]"
    documents: "NDArray[np.int64]"
    counts: "NDArray[np.float64]"
    norms: "NDArray[np.float64]"
    average: float

    @classmethod
    def of(cls, column: Any, average: float | None = None) -> "Postings":
        """Return the inverted index of a column of texts, whose words are separated by blanks.

        Args:
            average: the mean number of words of a document; computed from the column if None.
        """
        import numpy as np
        import pyarrow as pa
        from pyarrow import compute

        pc: Any = compute  # its functions are generated at import, so pyright does not know them

        rows = len(column)
        lists = pc.split_pattern(one_piece(column), " ")
        owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        words = pc.list_flatten(lists)
        is_word = pc.not_equal(words, "")
        owners = owners[is_word.to_numpy(zero_copy_only=False)]
        encoded = words.filter(is_word).dictionary_encode()
        vocabulary: list[str] = encoded.dictionary.to_pylist()
        lengths = np.bincount(owners, minlength=rows)
        pairs, counts = np.unique(
            encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64) * rows + owners,
            return_counts=True,
        )
        terms = pairs // max(rows, 1)
        if average is None:
            average = float(lengths.mean()) if lengths.sum() else 1.0
        pa.default_memory_pool().release_unused()  # twenty times the size of the index
        return cls(
            terms={word: number for number, word in enumerate(vocabulary)},
            starts=np.searchsorted(terms, np.arange(len(vocabulary) + 1)),
            documents=pairs % max(rows, 1),
            counts=counts.astype(np.float64),
            norms=np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * lengths / average), dtype=np.float64),
            average=average,
        )

    def of_word(self, word: str) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """Return the documents that have a word, in ascending order, and its count in each."""
        term = self.terms.get(word)
        span = slice(0, 0) if term is None else slice(self.starts[term], self.starts[term + 1])
        return self.documents[span], self.counts[span]

    def bm25(
        self, idf: "float | NDArray[np.float64]", counts: "NDArray[np.float64]", rows: Any
    ) -> "NDArray[np.float64]":
        """Return a word's part of the BM25 score of documents, shape (rows,).

        Args:
            counts: how often each document has the word.
            rows: the documents.
        """
        return idf * counts * (BM25_K1 + 1) / (counts + self.norms[rows])

    def statistics(self) -> WordStatistics:
        """Return the word frequencies."""
        import numpy as np

        document_counts = np.diff(self.starts).tolist()
        return WordStatistics(
            len(self.norms), dict(zip(self.terms, document_counts, strict=True)), self.average
        )

    def shared(
        self, words: Sequence[str], statistics: WordStatistics, rows: "NDArray[np.intp]"
    ) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """Return for each of some documents the sum of idf over the different words that it has,
        and its BM25 score; both of shape (rows,).
        """
        import numpy as np

        idfs = np.zeros(len(rows))
        bm25 = np.zeros(len(rows))
        for word in dict.fromkeys(words):
            documents, counts = self.of_word(word)
            if not len(documents):
                continue
            places = np.minimum(np.searchsorted(documents, rows), len(documents) - 1)
            idf = np.where(documents[places] == rows, statistics.idf(word), 0.0)
            idfs += idf
            bm25 += self.bm25(idf, counts[places], rows)
        return idfs, bm25


def one_piece(column: Any) -> Any:
    """Return the values of a column as one array, without a copy if it has only one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
