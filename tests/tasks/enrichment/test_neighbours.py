"""Nearest neighbours of tools, and ranks of requests: those of the definition, in blocks of any
size."""

import numpy as np
import pytest

from pegboard.records import Agent, Tool
from pegboard.search.cosine import TIE
from tasks.enrichment.neighbours import Neighbour, head_text, nearest
from tasks.filter import leave_one_out

SECRET = "sk-proj-4f9aA81bTq7kLm20Zx81"


def unit_vectors(count, dimensions=24, seed=7):
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest_by_definition(ids, vectors, k):
    cosines = np.round(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 5)
    return {
        tool: tuple(
            sorted(
                (Neighbour(other, cosines[row, at]) for at, other in enumerate(ids) if at != row),
                key=lambda near: (-near.cosine, near.id),
            )[:k]
        )
        for row, tool in enumerate(ids)
    }


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        ("getRecord_v2", "Reads\n  a record.", "get Record v2. Reads a record."),
        ("list", " ", "git tools. list"),
        ("+", "Adds.", "+. Adds."),
        ("call", f"Calls with {SECRET}.", "call. Calls with [credential]."),
    ],
)
def test_a_tool_is_compared_by_name_and_description_without_credentials(
    name, description, expected
):
    tool = Tool(f"kit/git/{name}", "kit", "kit/git", name, description)

    assert head_text(tool, Agent("kit/git", "kit", "git-tools")) == expected


@pytest.mark.parametrize("block_scores", [1, 2_100, 16_000_000])
@pytest.mark.parametrize("k", [1, 4, 200])
@pytest.mark.parametrize("distinct", [9, 150])
def test_the_nearest_are_those_of_the_definition_with_ties_ordered_by_id(distinct, k, block_scores):
    vectors = unit_vectors(distinct, 3)[np.random.default_rng(3).integers(0, distinct, 150)]
    ids = [f"{number:03}" for number in np.random.default_rng(4).permutation(150)]

    near = nearest(ids, vectors, k, block_scores=block_scores)

    assert near == nearest_by_definition(ids, vectors, k)


def test_a_tool_alone_has_no_neighbours_and_two_have_each_other():
    vectors = unit_vectors(2)

    assert nearest([], vectors[:0], 3) == {}
    assert nearest(["a"], vectors[:1], 3) == {"a": ()}
    assert [near.id for near in nearest(["a", "b"], vectors, 3)["b"]] == ["a"]
    assert nearest(["a", "b"], vectors, 0) == {"a": (), "b": ()}


def ranks_by_definition(vectors, starts, rows, owners):
    """The ranks and winners of texts by sums in float64, one by one."""
    wide = vectors.astype(np.float64)
    ends = [*starts[1:], len(wide)]
    sums = [wide[start:end].sum(axis=0) for start, end in zip(starts, ends, strict=True)]
    places = []
    for row, owner in zip(rows, owners, strict=True):
        directions = [total - wide[row] * (at == owner) for at, total in enumerate(sums)]
        scores = [wide[row] @ total / np.linalg.norm(total) for total in directions]
        ahead = [at for at in range(len(sums)) if at != owner and scores[at] > scores[owner] + TIE]
        places.append((1 + len(ahead), max(ahead, key=lambda at: scores[at], default=-1)))
    return [list(column) for column in zip(*places, strict=True)]


@pytest.mark.parametrize("block_scores", [1, 70, 16_000_000])
def test_ranks_of_requests_are_those_of_the_definition(block_scores):
    vectors = unit_vectors(400, 12, seed=5)
    starts = np.array(sorted({0, *np.random.default_rng(2).integers(0, 400, 60)}))
    rows = np.array([row for row in range(400) if row not in set(starts.tolist())])
    owners = np.searchsorted(starts, rows, side="right") - 1

    ranked = leave_one_out(vectors, starts, rows, owners, block_scores=block_scores)

    ranks, winners = ranks_by_definition(vectors, starts, rows, owners)
    assert ranked.ranks.tolist() == ranks
    assert ranked.winners.tolist() == winners
    assert len(set(ranks)) > 10


def test_equal_tools_are_tied_and_the_first_of_equal_winners_is_named():
    near, far = unit_vectors(2, 12, seed=9)
    question = (near + far) / np.linalg.norm(near + far)
    # Tools: far with the question, three times near, far.
    vectors = np.array([far, question, near, near, near, far], np.float32)
    places = np.array([0, 2, 3, 4, 5]), np.array([1]), np.array([0])

    ties = leave_one_out(vectors, *places)
    vectors[0] = -far
    loses = leave_one_out(vectors, *places)

    assert (ties.ranks.tolist(), ties.winners.tolist()) == ([1], [-1])
    assert (loses.ranks.tolist(), loses.winners.tolist()) == ([5], [1])


def test_a_tool_without_other_texts_does_not_find_its_question():
    vectors = np.array([[1, 0, 0], [1, 0, 0], [0.6, 0.8, 0]], np.float32)

    ranked = leave_one_out(vectors, np.array([0, 1]), np.array([0]), np.array([0]))

    assert ranked.ranks.tolist() == [2]
