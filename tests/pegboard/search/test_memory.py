"""Search in memory, except its formulas, which the contract's vectors test."""

import numpy as np
import pytest

from pegboard.search.memory import MemoryIndex


@pytest.fixture
def index_of(table_of):
    return lambda rows: MemoryIndex(table_of(rows))


def test_a_result_has_the_part_that_matched_best(documents, index_of):
    rows = documents(5, 3)
    index = index_of(rows)

    for row in rows:
        ((ranked,),) = index.vectors(np.array([row["vector"]], np.float32), 1)
        assert (ranked.tool, ranked.part, ranked.score) == (row["tool"], row["part"], 1.0)


def test_ties_at_the_limit_are_ordered_by_id(documents, index_of):
    equal_values = {"vector": [1.0] + [0.0] * 7, "tokens": "same words"}
    index = index_of([{**row, **equal_values} for row in reversed(documents(40))])
    query = np.array([equal_values["vector"]], np.float32)

    for (ranking,) in (index.vectors(query, 5), index.texts([["same"]], 5)):
        assert [row.tool for row in ranking] == [f"c/a/{number:06}" for number in range(5)]


@pytest.mark.parametrize("tokens", ["", "  "])
@pytest.mark.parametrize("count", [0, 3])
def test_a_text_search_without_words_or_rows_is_empty(tokens, count, documents, index_of, queries):
    index = index_of([{**row, "tokens": tokens} for row in documents(count)])

    assert index.texts([["w1"], []], 5) == [[], []]
    assert len(index.vectors(queries(1, 0), 5)[0]) == count
