"""Whether requests find their tool (round-trip consistency, as in Promptagator and InPars).

A generated question is held against the tool without it: its tool is the sum of the vectors of its
description, its other questions and the catalog's examples, every other tool is its whole sum."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pegboard.search.cosine import BLOCK_SCORES, TIE, OwnerRanks, paired_cosines, rank_owners
from tasks import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE = 10_000
"""Texts that are held in float64 at once."""


def leave_one_out(
    vectors: "NDArray[np.float32]",
    starts: "NDArray[np.int64]",
    rows: "NDArray[np.int64]",
    owners: "NDArray[np.int64]",
    *,
    block_scores: int = BLOCK_SCORES,
) -> OwnerRanks:
    """Where texts rank the tool that they were written for, when that tool has to do without them.

    Args:
        vectors: unit vectors of all texts, tool by tool, shape (texts, dimensions).
        starts: the first text of each tool; every tool has at least one.
        rows: the texts to rank for.
        owners: the tool of each of those, as its place in `starts`.
        block_scores: how many scores are held at once, 4 bytes each.
    """
    import numpy as np

    sums = np.add.reduceat(vectors, starts, axis=0)
    own = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), PIECE):
        piece = slice(start, start + PIECE)
        texts = vectors[rows[piece]]
        own[piece] = paired_cosines(texts, sums[owners[piece]] - texts)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TIE)
    return rank_owners(
        vectors, rows, owners, own, sums, block_scores=block_scores, progress=rank_progress()
    )


def rank_progress() -> Callable[[int, int], None]:
    """What shows a computation of ranks as a step of the run, once its first block is done."""
    shown = 0

    def show(done: int, total: int) -> None:
        nonlocal shown
        if not shown:
            progress.start("ranks", total)
        progress.advance("ranks", done - shown)
        shown = done

    return show
