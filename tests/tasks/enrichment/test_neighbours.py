"""Nearest neighbours of tools: those of the definition, in blocks of any size."""

import numpy as np
import pytest

from tasks.enrichment.neighbours import Neighbour, nearest


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


@pytest.mark.parametrize("scores", [1, 2_100, 16_000_000])
@pytest.mark.parametrize("k", [1, 4, 200])
@pytest.mark.parametrize("distinct", [9, 150])
def test_the_nearest_are_those_of_the_definition_with_ties_ordered_by_id(
    monkeypatch, distinct, k, scores
):
    monkeypatch.setattr("tasks.enrichment.neighbours.BLOCK_SCORES", scores)
    vectors = unit_vectors(distinct, 3)[np.random.default_rng(3).integers(0, distinct, 150)]
    ids = [f"{number:03}" for number in np.random.default_rng(4).permutation(150)]

    near = nearest(ids, vectors, k)

    assert near == nearest_by_definition(ids, vectors, k)
