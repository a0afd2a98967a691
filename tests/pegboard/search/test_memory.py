"""Searching in memory against the formulas, written down plainly."""

import math
from collections import Counter

import numpy as np
import pytest

from pegboard.search.filters import Filter
from pegboard.search.memory import MemoryIndex


@pytest.fixture
def index_of(table_of):
    return lambda rows: MemoryIndex(table_of(rows))


def cosines(rows, query):
    return [sum(a * b for a, b in zip(row["vector"], query, strict=True)) for row in rows]


def bm25(rows, query, k1=1.2, b=0.75):
    """Okapi BM25 as Lucene has it, with every row as a document."""
    texts = [Counter(row["tokens"].split()) for row in rows]
    average = sum(text.total() for text in texts) / len(texts)

    def score(text, word):
        having = sum(word in other for other in texts)
        idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        length = 1 - b + b * text.total() / average
        return idf * text[word] * (k1 + 1) / (text[word] + k1 * length)

    return [sum(score(text, word) for word in set(query)) for text in texts]


def best(rows, scores):
    """The best score of each tool."""
    result = {}
    for row, score in zip(rows, scores, strict=True):
        result[row["tool"]] = max(score, result.get(row["tool"], -math.inf))
    return result


def assert_ranked(ranking, expected, n, tolerance):
    """The ranking has the n best of the expected scores, in their order; what differs by a rounding
    may change places.
    """
    assert [row.score for row in ranking] == pytest.approx(
        sorted(expected.values(), reverse=True)[:n], abs=tolerance
    )
    for row in ranking:
        assert row.score == pytest.approx(expected[row.tool], abs=tolerance)
    assert len({row.tool for row in ranking}) == len(ranking)
    assert ranking == sorted(ranking, key=lambda row: (-row.score, row.tool))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_a_tool_ranks_by_the_cosine_and_by_the_bm25_of_its_best_part(
    parts, n, documents, index_of, queries
):
    rows = documents(60, parts, fewest=0)
    index = index_of(rows)
    for query in queries(10, 100):
        expected = best(rows, cosines(rows, query.tolist()))
        assert_ranked(index.vector(query, n), expected, n, 6e-6)
    for line in ("w1", "w0 w5 w30", "w39 unknown", "w2 w2 w2", "w7 w8"):
        matching = best(rows, bm25(rows, line.split()))
        expected = {tool: score for tool, score in matching.items() if score > 0}
        assert_ranked(index.text(line.split(), n), expected, n, 6e-5)


def test_the_part_that_matched_best_is_named(documents, index_of):
    rows = documents(5, 3)
    index = index_of(rows)

    for row in rows:
        (ranked,) = index.vector(np.array(row["vector"], np.float32), 1)
        assert (ranked.tool, ranked.part, ranked.score) == (row["tool"], row["part"], 1.0)


def test_a_filter_leaves_the_scores_as_they_are(documents, index_of, queries):
    rows = documents(60)
    index, where = index_of(rows), Filter.parse({"catalog": "c1", "tags": ["t0", "t2"]})
    passing = {
        row["tool"]
        for row in rows
        if row["catalog"] == "c1" and {"t0", "t2"}.intersection(row["tags"])
    }
    query, words = queries(1, 9)[0], ["w1", "w2"]

    assert {row.tool for row in index.vector(query, 60, where)} == passing
    for whole, filtered in (
        (index.vector(query, 60), index.vector(query, 60, where)),
        (index.text(words, 60), index.text(words, 60, where)),
    ):
        assert filtered == [row for row in whole if row.tool in passing]


def test_equal_scores_are_ordered_by_id_even_where_they_are_cut(documents, index_of):
    same = {"vector": [1.0] + [0.0] * 7, "tokens": "same words"}
    index = index_of([{**row, **same} for row in reversed(documents(40))])
    first = np.array(same["vector"], np.float32)

    for ranking in (index.vector(first, 5), index.text(["same"], 5)):
        assert [row.tool for row in ranking] == [f"c/a/{number:06}" for number in range(5)]


@pytest.mark.parametrize("tokens", ["", "  "])
@pytest.mark.parametrize("count", [0, 3])
def test_without_words_or_rows_there_is_nothing_to_match(
    tokens, count, documents, index_of, queries
):
    index = index_of([{**row, "tokens": tokens} for row in documents(count)])

    assert index.text(["w1"], 5) == index.text([], 5) == []
    assert len(index.vector(queries(1, 0)[0], 5)) == count
