"""Golden queries that are in an index: word for word in a document, or nearly as a stored request.

Such a query finds itself, whatever the index is worth. `pegboard golden hold-out` removes examples
from the index; the others were copied some other way, or have not been held out yet. A few words
that stand in a description, as those of everyday requests do, are no copy of it: `as a phrase`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from pegboard.evaluation.searcher import Searcher
from pegboard.search.text import singular_words
from pegboard.store.contract import embedding_table
from pegboard.store.database import store_errors
from pegboard.store.releases import ReleaseStore
from tasks.enrichment.near_duplicates import NEAR, NearDuplicates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_WORDS = 3
"""A query of fewer words is in documents by chance, and compared with whole requests only."""
COPIED_WORDS = 6
"""Words in a row shared with a description that make a copy."""
COSINE = 0.98
"""Cosine from which on a query and a stored request are the same."""
MIN_SIMILARITY = 0.5
"""Share of common words below which no cosine is computed: it would not be that high."""
TOOLS_PER_READ = 5_000

Units = Callable[[Sequence[str]], "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class Leak:
    """A query (by its position), the tool whose texts contain it, how, and the text."""

    query: int
    tool: str
    how: Literal["word for word", "nearly", "as a phrase"]
    text: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """The texts of a release's indexes: (tool, text) of every document and stored request."""

    documents: tuple[tuple[str, str], ...]
    requests: tuple[tuple[str, str], ...]


def indexed_texts(searcher: Searcher, uri: str) -> Indexed:
    """Return the texts of all indexes of a release of the board at `uri`."""
    release, store = searcher.release, ReleaseStore(uri)
    documents: dict[tuple[str, str], None] = {}
    for index in release.manifest["indexes"]:
        pin = release.tables[embedding_table(index)]
        with store_errors(uri):
            rows = store.read_table(pin.table, pin.version).read(["tool", "text"])
        documents |= dict.fromkeys(
            zip(*(rows.column(name).to_pylist() for name in ("tool", "text")), strict=True)
        )
    most = max(int(index["questions"]) for index in release.manifest["indexes"].values())
    requests: list[tuple[str, str]] = []
    ids = sorted(searcher.names.catalogs)
    for start in range(0, len(ids), TOOLS_PER_READ):
        for tool in searcher.loaded.tools(ids[start : start + TOOLS_PER_READ]).values():
            written = tool.enrichment.questions if tool.enrichment else ()
            requests += [
                (tool.id, text)
                for text in dict.fromkeys((*tool.examples, *written))
                if text.strip()
            ][:most]
    return Indexed(tuple(documents), tuple(requests))


def find_leaks(queries: Sequence[str], indexed: Indexed, units: Units | None = None) -> list[Leak]:
    """Return the queries that are in an index, at most once for each tool.

    Args:
        units: encodes texts to unit vectors of shape (texts, dimensions); without it only words
            are compared.
    """
    leaks: dict[tuple[int, str], Leak] = {}
    phrases = _Phrases([text for _, text in indexed.documents])
    requests = NearDuplicates([text for _, text in indexed.requests])
    candidates: list[tuple[int, int]] = []
    words_of = cache(lambda number: DocumentWords(indexed.documents[number][1]))
    for at, query in enumerate(queries):
        for number in phrases.containing(query):
            tool, text = indexed.documents[number]
            how = "word for word" if words_of(number).has_copy(query) else "as a phrase"
            leak = Leak(at, tool, how, text)
            if how == "word for word" or (at, tool) not in leaks:
                leaks[at, tool] = leak
        for number, share in requests.near(query, MIN_SIMILARITY if units else NEAR):
            tool, text = indexed.requests[number]
            leak = leaks.get((at, tool))
            if leak is not None and leak.how == "word for word":
                continue
            if singular_words(query) == singular_words(text):
                leaks[at, tool] = Leak(at, tool, "word for word", text)
            elif share >= NEAR:
                leaks[at, tool] = Leak(at, tool, "nearly", text)
            else:
                candidates.append((at, number))
    if units is not None:
        texts = [text for _, text in indexed.requests]
        for at, number in _equal_pairs(queries, texts, candidates, units):
            tool, text = indexed.requests[number]
            if (at, tool) not in leaks or leaks[at, tool].how == "as a phrase":
                leaks[at, tool] = Leak(at, tool, "nearly", text)
    return sorted(
        leaks.values(), key=lambda leak: (leak.query, leak.how != "word for word", leak.tool)
    )


class DocumentWords:
    """The words of a document, in which copies of queries are looked for."""

    def __init__(self, text: str) -> None:
        self._text = f" {' '.join(singular_words(text))} "
        self._lines = {tuple(singular_words(line)) for line in text.split("\n")}

    def has_copy(self, query: str) -> bool:
        """Whether the query is one of the lines or, with six or more words, anywhere in a row."""
        words = singular_words(query)
        if len(words) < COPIED_WORDS:
            return tuple(words) in self._lines
        return f" {' '.join(words)} " in self._text


def _equal_pairs(
    queries: Sequence[str], requests: Sequence[str], pairs: Sequence[tuple[int, int]], units: Units
) -> list[tuple[int, int]]:
    """The pairs of a query and a request whose cosine is at least `COSINE`."""
    if not pairs:
        return []
    texts = list(
        dict.fromkeys(text for at, number in pairs for text in (queries[at], requests[number]))
    )
    vectors: Mapping[str, NDArray[np.float32]] = dict(zip(texts, units(texts), strict=True))
    return [
        pair
        for pair in pairs
        if float(vectors[queries[pair[0]]] @ vectors[requests[pair[1]]]) >= COSINE
    ]


class _Phrases:
    """An index of documents by their words, in which phrases are found."""

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = [singular_words(text) for text in texts]
        self._texts = [f" {' '.join(words)} " for words in tokens]
        self._postings: dict[str, list[int]] = {}
        for number, words in enumerate(tokens):
            for word in dict.fromkeys(words):
                self._postings.setdefault(word, []).append(number)

    def containing(self, text: str) -> list[int]:
        """Return the numbers of the documents that contain the words of a text in a row."""
        words = singular_words(text)
        if len(words) < MIN_WORDS:
            return []
        rarest = min((self._postings.get(word, []) for word in words), key=len)
        phrase = f" {' '.join(words)} "
        return [number for number in rarest if phrase in self._texts[number]]
