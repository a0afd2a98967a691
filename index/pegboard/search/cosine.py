"""Cosines between many unit vectors, in blocks that fit in memory.

Scores are computed in float32. Whatever float32 cannot decide is scored again in float64, so that
neither the size of a block nor the order of summing shows in a result.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

BLOCK_SCORES = 16_000_000
"""Scores held in memory at once, 64 MB. Larger blocks are hardly faster, smaller ones much slower.
"""
DIGITS = 5
"""Decimals to which the cosines of neighbours are rounded."""
MARGIN = 2e-5
"""Above the error of float32 and of rounding to `DIGITS`."""
COLUMNS = 64
"""Columns per block whose maximum is checked first: most hold none of the nearest rows."""


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
