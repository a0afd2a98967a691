"""Ranks of requests: those of the definition, in blocks of any size, with ties that are no
defeats.
"""

import numpy as np
import pytest

from pegboard.search.cosine import TIE
from tasks.enrichment.consistency import leave_one_out


def unit_vectors(count, dimensions=12, seed=5):
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_definition(vectors, starts, rows, owners):
    """The ranks and winners of texts by sums in float64, one by one."""
    wide = vectors.astype(np.float64)
    sums = [
        wide[start:end].sum(axis=0)
        for start, end in zip(starts, [*starts[1:], len(wide)], strict=True)
    ]
    places = []
    for row, owner in zip(rows, owners, strict=True):
        directions = [one - wide[row] if at == owner else one for at, one in enumerate(sums)]
        scores = [wide[row] @ one / np.linalg.norm(one) for one in directions]
        ahead = [at for at in range(len(sums)) if at != owner and scores[at] > scores[owner] + TIE]
        places.append((1 + len(ahead), max(ahead, key=lambda at: scores[at], default=-1)))
    return [list(column) for column in zip(*places, strict=True)]


@pytest.mark.parametrize("block_scores", [1, 70, 16_000_000])
def test_ranks_and_winners_are_those_of_the_definition(block_scores):
    vectors = unit_vectors(400)
    starts = np.array(sorted({0, *np.random.default_rng(2).integers(0, 400, 60)}))
    rows = np.array([row for row in range(400) if row not in set(starts.tolist())])
    owners = np.searchsorted(starts, rows, side="right") - 1

    found = leave_one_out(vectors, starts, rows, owners, block_scores=block_scores)

    ranks, winners = by_definition(vectors, starts, rows, owners)
    assert found.ranks.tolist() == ranks
    assert found.winners.tolist() == winners
    assert len(set(ranks)) > 10


def test_tools_that_are_alike_are_tied_and_of_equal_winners_the_first_is_named():
    near, far = unit_vectors(2, seed=9)
    question = near + far
    question /= np.linalg.norm(question)
    vectors = np.array(
        [far, question, near, near, near, far], np.float32
    )  # tools: far with a question, 3 x near, far
    starts, rows, owners = np.array([0, 2, 3, 4, 5]), np.array([1]), np.array([0])
    loses = leave_one_out(np.array([-far, *vectors[1:]]), starts, rows, owners)

    ties = leave_one_out(vectors, starts, rows, owners)

    assert (ties.ranks.tolist(), ties.winners.tolist()) == ([1], [-1])
    assert (loses.ranks.tolist(), loses.winners.tolist()) == ([5], [1])


def test_a_tool_that_has_nothing_but_the_question_is_nowhere_near_it():
    vectors = np.eye(3, dtype=np.float32)[[0, 0, 1]]
    vectors[2] = (0.6, 0.8, 0)

    found = leave_one_out(vectors, np.array([0, 1]), np.array([0]), np.array([0]))

    assert found.ranks.tolist() == [2]
