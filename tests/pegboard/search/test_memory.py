"""What the contract's vectors do not show of a search in memory; they show its formulas."""

import numpy as np
import pytest

from pegboard.search.memory import MemoryIndex


@pytest.fixture
def index_of(table_of):
    return lambda rows: MemoryIndex(table_of(rows))


def test_the_part_that_matched_best_is_named(documents, index_of):
    rows = documents(5, 3)
    index = index_of(rows)

    for row in rows:
        ((ranked,),) = index.vectors(np.array([row["vector"]], np.float32), 1)
        assert (ranked.tool, ranked.part, ranked.score) == (row["tool"], row["part"], 1.0)


def test_equal_scores_are_ordered_by_id_even_where_they_are_cut(documents, index_of):
    same = {"vector": [1.0] + [0.0] * 7, "tokens": "same words"}
    index = index_of([{**row, **same} for row in reversed(documents(40))])
    first = np.array([same["vector"]], np.float32)

    for (ranking,) in (index.vectors(first, 5), index.texts([["same"]], 5)):
        assert [row.tool for row in ranking] == [f"c/a/{number:06}" for number in range(5)]


@pytest.mark.parametrize("tokens", ["", "  "])
@pytest.mark.parametrize("count", [0, 3])
def test_without_words_or_rows_there_is_nothing_to_match(
    tokens, count, documents, index_of, queries
):
    index = index_of([{**row, "tokens": tokens} for row in documents(count)])

    assert index.texts([["w1"], []], 5) == [[], []]
    assert len(index.vectors(queries(1, 0), 5)[0]) == count
