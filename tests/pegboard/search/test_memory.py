"""Searching in memory against the formulas, written down plainly."""

import math
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from pegboard.search.filters import Filter
from pegboard.search.memory import MemoryIndex
from pegboard.store.contract import table_schema

DIMENSIONS = 8


def documents(tools, parts=1, seed=0, words=40):
    """Random rows of an index: unit vectors, and words of which some are frequent."""
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    rows = []
    for tool in range(tools):
        for part in range(parts):
            vector = numbers.normal(size=DIMENSIONS).astype(np.float32)
            tokens = [f"w{int(words * chance.random() ** 2)}" for _ in range(chance.randint(0, 12))]
            rows.append(
                {
                    "key": f"c/a/{tool:04}#part{part}#0",
                    "tool": f"c/a/{tool:04}",
                    "part": f"part{part}",
                    "catalog": "c",
                    "agent": f"c/{tool % 3}",
                    "kind": "library",
                    "tags": [f"t{tool % 4}"],
                    "text": " ".join(tokens),
                    "tokens": " ".join(tokens),
                    "vector": (vector / np.linalg.norm(vector)).tolist(),
                    "digest": "",
                }
            )
    return rows


def index_of(rows):
    return MemoryIndex(pa.Table.from_pylist(rows, schema=table_schema("emb_full", DIMENSIONS)))


def cosines(rows, query):
    return [sum(a * b for a, b in zip(row["vector"], query, strict=True)) for row in rows]


def bm25(rows, query, k1=1.2, b=0.75):
    """Okapi BM25 as Lucene has it, with every row as a document."""
    texts = [Counter(row["tokens"].split()) for row in rows]
    average = sum(text.total() for text in texts) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for word in set(query):
            having = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            score += (
                idf
                * text[word]
                * (k1 + 1)
                / (text[word] + k1 * (1 - b + b * text.total() / average))
            )
        scores.append(score)
    return scores


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
def test_vectors_rank_by_the_cosine_of_the_best_part(parts, n):
    rows = documents(60, parts)
    index = index_of(rows)
    for seed in range(10):
        query = np.random.default_rng(100 + seed).normal(size=DIMENSIONS).astype(np.float32)
        query /= np.linalg.norm(query)

        assert_ranked(
            index.vector(query, n), best(rows, cosines(rows, query.tolist())), min(n, 60), 6e-6
        )


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_words_rank_by_bm25_of_the_best_part(parts, n):
    rows = documents(60, parts, seed=1)
    index = index_of(rows)
    for query in (
        ["w1"],
        ["w0", "w5", "w30"],
        ["w39", "unknown"],
        ["w2", "w2", "w2"],
        ["w7", "w8"],
    ):
        found = {tool: score for tool, score in best(rows, bm25(rows, query)).items() if score > 0}

        assert_ranked(index.text(query, n), found, min(n, len(found)), 6e-5)


def test_the_part_that_matched_best_is_named():
    rows = documents(5, 3)
    index = index_of(rows)

    for row in rows:
        assert (index.vector(np.array(row["vector"], np.float32), 1)[0].tool, 1.0) == (
            row["tool"],
            1.0,
        )
        assert index.vector(np.array(row["vector"], np.float32), 1)[0].part == row["part"]


def test_words_that_no_tool_has_find_nothing():
    index = index_of(documents(20))

    assert index.text(["unknown"], 5) == []
    assert index.text([], 5) == []


def test_a_filter_leaves_the_scores_as_they_are():
    rows = documents(60)
    index, where = index_of(rows), Filter.parse({"agent": "c/1", "tags": ["t0", "t2"]})
    passing = {
        row["tool"]
        for row in rows
        if row["agent"] == "c/1" and row["tags"] != ["t1"] and row["tags"] != ["t3"]
    }
    query = np.array(rows[0]["vector"], np.float32)

    assert index.vector(query, 60, where) == [
        row for row in index.vector(query, 60) if row.tool in passing
    ]
    assert index.text(["w1", "w2"], 60, where) == [
        row for row in index.text(["w1", "w2"], 60) if row.tool in passing
    ]
    assert {row.tool for row in index.vector(query, 60, where)} == passing


def test_equal_scores_are_ordered_by_id_even_where_they_are_cut():
    rows = documents(40)
    for row in rows:
        row["vector"], row["tokens"] = [1.0] + [0.0] * 7, "same words"
    index = index_of(rows[::-1])

    for ranking in (
        index.vector(np.eye(1, DIMENSIONS, dtype=np.float32)[0], 5),
        index.text(["same"], 5),
    ):
        assert [row.tool for row in ranking] == [f"c/a/{number:04}" for number in range(5)]


@pytest.mark.parametrize("tokens", ["", "  "])
def test_documents_without_any_words_are_found_by_vector_only(tokens):
    rows = documents(3)
    for row in rows:
        row["tokens"] = tokens

    assert index_of(rows).text(["w1"], 5) == []
    assert len(index_of(rows).vector(np.array(rows[0]["vector"], np.float32), 5)) == 3


def test_an_empty_index_finds_nothing():
    index = index_of([])

    assert index.vector(np.eye(1, DIMENSIONS, dtype=np.float32)[0], 5) == []
    assert index.text(["w1"], 5) == []
