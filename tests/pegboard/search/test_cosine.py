"""Cosines in blocks: ranks of owners, and pairs of rows."""

import numpy as np

from pegboard.search.cosine import paired_cosines, rank_owners


def test_requests_are_placed_by_the_cosine_that_is_given():
    tools = np.eye(3, dtype=np.float32)
    request = np.array([[0.6, 0.8, 0.0]], np.float32)
    rows, owners = np.array([0]), np.array([0])

    ranks = [
        rank_owners(request, rows, owners, np.array([own]), tools).ranks.tolist()
        for own in (0.9, 0.8, 0.5, -0.5)
    ]

    assert ranks == [[1], [1], [2], [3]]


def test_cosines_are_of_pairs_and_nothing_has_no_direction():
    left = np.array([[3, 0], [0, 2], [1, 1]], np.float32)
    right = np.array([[1, 1], [0, 5], [0, 0]], np.float32)

    np.testing.assert_allclose(paired_cosines(left, right), [np.sqrt(0.5), 1, 0])
