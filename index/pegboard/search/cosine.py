"""Cosines between many unit vectors, in blocks that fit in memory: nearest rows, and ranks.

Scores are computed in float32. Whatever float32 cannot decide is scored again in float64, so that
neither the size of a block nor the order of summing shows in a result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

BLOCK_SCORES = 16_000_000
"""Scores held in memory at once, 64 MB. Larger blocks are hardly faster, smaller ones much slower.
"""
DIGITS = 5
"""Decimals to which the cosines of neighbours are rounded."""
TIE = 1e-5
"""A cosine is better only by more than this; scores of a search are rounded to 5 decimals."""
NOISE = 4e-6
"""Above the float32 rounding error of a cosine."""
MARGIN = 2e-5
"""Above the error of float32 and of rounding to `DIGITS`."""
COLUMNS = 64
"""Columns per block whose maximum is checked first: most hold none of the nearest rows."""


@dataclass(frozen=True, slots=True)
class OwnerRanks:
    """Where each text ranks its owner: `ranks` is 1 + the number of better rows; `winners` the best
    of those, -1 if there is none.
    """

    ranks: "Rows"
    winners: "Rows"


def paired_cosines(left: "Floats", right: "Floats") -> "NDArray[np.float64]":
    """Return the cosines of the rows of two matrices, pair by pair; 0 for a row of zeros."""
    import numpy as np

    wide = [matrix.astype(np.float64) for matrix in (left, right)]
    lengths = np.maximum([np.linalg.norm(matrix, axis=1) for matrix in wide], TIE)
    return np.einsum("ij,ij->i", *wide) / lengths.prod(axis=0)


def nearest_rows(
    vectors: "Floats", k: int, *, block_scores: int = BLOCK_SCORES
) -> list[list[tuple[int, float]]]:
    """Return the k nearest rows (row, cosine) of each row, itself among them, nearest first.

    Exact: equal cosines, rounded to `DIGITS`, are ordered by row.

    Args:
        vectors: unit vectors, shape (rows, dimensions).
        block_scores: how many scores are held at once, 4 bytes each.
    """
    import numpy as np

    count = len(vectors)
    starts = range(0, count, COLUMNS)
    step = max(1, block_scores // max(1, count))
    nearest: list[list[tuple[int, float]]] = []
    for start in range(0, count, step):
        scores = vectors[start : start + step] @ vectors.T
        # k maxima that reach a level belong to at least k rows that do, so the k-th nearest row
        # reaches it, too.
        maxima = np.maximum.reduceat(scores, starts, axis=1)
        levels = (
            np.partition(maxima, -k, axis=1)[:, -k]
            if maxima.shape[1] > k
            else np.full(len(maxima), -np.inf)
        )
        for row, (line, level) in enumerate(zip(scores, levels, strict=True), start=start):
            candidates = np.flatnonzero(line >= level - MARGIN)
            nearest.append(_best_rows(vectors, row, candidates, k))
    return nearest


def _best_rows(
    vectors: "Floats", row: int, candidates: "NDArray[np.intp]", k: int
) -> list[tuple[int, float]]:
    import numpy as np

    wide = vectors[candidates].astype(np.float64)
    cosines = np.round(wide @ vectors[row].astype(np.float64), DIGITS)
    chosen = np.lexsort((candidates, -cosines))[:k]
    return list(zip(candidates[chosen].tolist(), cosines[chosen].tolist(), strict=True))


def rank_owners(
    vectors: "Floats",
    rows: "Rows",
    owners: "Rows",
    own: "NDArray[np.float64]",
    targets: "Floats",
    *,
    block_scores: int = BLOCK_SCORES,
    progress: Callable[[int, int], None] | None = None,
) -> OwnerRanks:
    """Rank the owner of each text among all targets.

    Args:
        vectors: unit vectors, shape (texts, dimensions).
        rows: the rows of `vectors` to rank for.
        owners: the row in `targets` that owns each of those; it does not count as better.
        own: the cosine of each with its owner.
        targets: unit vectors, shape (targets, dimensions). Of equal winners the first is named.
        block_scores: how many scores are held at once, 4 bytes each.
        progress: called after each of several blocks with the texts done and their number.
    """
    import numpy as np

    ranks = np.ones(len(rows), np.int64)
    winners = np.full(len(rows), -1, np.int64)
    step = max(1, block_scores // max(1, len(targets)))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        scores = vectors[rows[block]] @ targets.T
        scores[np.arange(len(scores)), owners[block]] = -np.inf
        limits = own[block] + TIE
        near = np.count_nonzero(scores > (limits - NOISE).astype(np.float32)[:, None], axis=1)
        for at in np.flatnonzero(near):
            better = _better_rows(vectors[rows[start + at]], scores[at], limits[at], targets)
            if len(better):
                ranks[start + at] += len(better)
                reached = scores[at][better]
                winners[start + at] = better[reached >= reached.max() - NOISE][0]
        if progress is not None and len(rows) > step:
            progress(min(start + step, len(rows)), len(rows))
    return OwnerRanks(ranks, winners)


def _better_rows(
    text: "Floats", scores: "Floats", limit: float, targets: "Floats"
) -> "NDArray[np.intp]":
    """The targets whose cosine with the text is over the limit."""
    import numpy as np

    better = np.flatnonzero(scores > limit - NOISE)
    unsure = np.flatnonzero(scores[better] < limit + NOISE)
    if not len(unsure):
        return better
    exact = targets[better[unsure]].astype(np.float64) @ text.astype(np.float64)
    return np.delete(better, unsure[exact <= limit])


def cosines_with_group(vectors: "Floats", starts: "Rows", group: int) -> "Floats":
    """Return the cosines of one group with every group, those of their closest rows, in order.

    Args:
        vectors: unit vectors, group by group, shape (rows, dimensions).
        starts: the first row of each group; every group has at least one.
        group: its place in `starts`.
    """
    import numpy as np

    ends = np.append(starts, len(vectors))
    own = vectors[starts[group] : ends[group + 1]]
    return np.maximum.reduceat((vectors @ own.T).max(axis=1), starts)
