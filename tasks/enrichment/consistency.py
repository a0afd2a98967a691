"""Whether requests find their tool: ranks among all tools, counted exactly, in blocks that fit in
memory.

A generated question is held against the tool without it: its tool is the sum of the vectors of its
description, its other questions and the catalog's examples, every other tool is its whole sum
(round-trip consistency, as in Promptagator and InPars, with the question left out so that it cannot
find itself)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

BLOCK_SCORES = 16_000_000
"""Scores that are held at once, 64 MB. Larger blocks are hardly faster, smaller ones much slower.
"""
PIECE = 10_000
"""Texts that are held in float64 at once."""
TIE = 1e-5
"""A cosine is better only by more than this; scores of a search are rounded to 5 decimals."""
NOISE = 4e-6
"""More than what float32 can move a cosine by. What lies so near to a limit is scored again in
float64.
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where requests find their tools: `ranks` is 1 + the tools that are better; `winners` the best
    of those, -1 if there is none.
    """

    ranks: "Rows"
    winners: "Rows"


def leave_one_out(
    vectors: "Floats",
    starts: "Rows",
    rows: "Rows",
    owners: "Rows",
    *,
    block_scores: int = BLOCK_SCORES,
) -> Places:
    """Where texts find the tool that they were written for, when that tool has to do without them.

    Args:
        vectors: unit vectors of all texts, tool by tool, shape (texts, dimensions).
        starts: the first text of each tool; every tool has at least one.
        rows: the texts to place.
        owners: the tool of each of those, as its place in `starts`.
        block_scores: how many scores are held at once, 4 bytes each.
    """
    import numpy as np

    sums = np.add.reduceat(vectors, starts, axis=0)
    own = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), PIECE):
        piece = slice(start, start + PIECE)
        texts = vectors[rows[piece]]
        own[piece] = cosines(texts, sums[owners[piece]] - texts)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TIE)
    return place(vectors, rows, owners, own, sums, block_scores=block_scores)


def cosines(left: "Floats", right: "Floats") -> "NDArray[np.float64]":
    """The cosines of the rows of two matrices, pair by pair; 0 where a row has no direction."""
    import numpy as np

    wide = [matrix.astype(np.float64) for matrix in (left, right)]
    lengths = np.maximum([np.linalg.norm(matrix, axis=1) for matrix in wide], TIE)
    return np.einsum("ij,ij->i", *wide) / lengths.prod(axis=0)


def place(
    vectors: "Floats",
    rows: "Rows",
    owners: "Rows",
    own: "NDArray[np.float64]",
    tools: "Floats",
    *,
    block_scores: int = BLOCK_SCORES,
) -> Places:
    """Where the texts `rows` of `vectors` find their tools, given their cosines with those (`own`)
    and all unit vectors of tools.

    A tool's own row of `tools` does not count. Of equally good winners the first is named.
    """
    import numpy as np

    ranks = np.ones(len(rows), np.int64)
    winners = np.full(len(rows), -1, np.int64)
    step = max(1, block_scores // max(1, len(tools)))
    long = len(rows) > step
    if long:
        progress.start("ranks", len(rows))
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        scores = vectors[rows[piece]] @ tools.T
        scores[np.arange(len(scores)), owners[piece]] = -np.inf
        limits = own[piece] + TIE
        near = np.count_nonzero(scores > (limits - NOISE).astype(np.float32)[:, None], axis=1)
        for at in np.flatnonzero(near):
            ahead = _ahead(vectors[rows[start + at]], scores[at], limits[at], tools)
            if len(ahead):
                ranks[start + at] += len(ahead)
                reached = scores[at][ahead]
                winners[start + at] = ahead[reached >= reached.max() - NOISE][0]
        if long:
            progress.advance("ranks", len(scores))
    return Places(ranks, winners)


def _ahead(text: "Floats", scores: "Floats", limit: float, tools: "Floats") -> "NDArray[np.intp]":
    """The tools whose cosine with the text is over the limit; float64 decides where float32
    cannot.
    """
    import numpy as np

    ahead = np.flatnonzero(scores > limit - NOISE)
    unsure = np.flatnonzero(scores[ahead] < limit + NOISE)
    if not len(unsure):
        return ahead
    exact = tools[ahead[unsure]].astype(np.float64) @ text.astype(np.float64)
    return np.delete(ahead, unsure[exact <= limit])
