"""Which tools are most like a tool: what an LLM is shown of a tool's siblings, and what counts as a
collision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.records import Agent, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_SCORES = 16_000_000
"""Scores that are held at once, 64 MB. Larger blocks are hardly faster, smaller ones much slower.
"""
GROUP = 64
"""Columns of a block whose best score is looked at first; most groups hold none of the best and are
never looked into.
"""
MARGIN = 2e-5
"""More than what float32 and rounding to 5 decimals can move a cosine by: whatever might be among
the best is scored again.
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A tool like another one, and how like: their cosine, rounded to 5 decimals."""

    id: str
    cosine: float


def head_text(tool: Tool, agent: Agent) -> str:
    """The text by which tools are compared: name and description, without credentials; never blank.

    A tool without a description has its agent's name in front, which is then all that tells two
    tools named `list` apart."""
    name = identifier_words(tool.name) or tool.name
    description = " ".join(tool.description.split())
    words = [name, description] if description else [identifier_words(agent.name), name]
    return redact_credentials(". ".join(word for word in words if word))


def nearest(
    ids: Sequence[str], vectors: "NDArray[np.float32]", k: int, *, block_scores: int = BLOCK_SCORES
) -> dict[str, tuple[Neighbour, ...]]:
    """The k nearest of each tool, itself left out, best first; equal cosines are ordered by id.
    Exact.

    Args:
        ids: the tools, each once.
        vectors: their unit vectors, shape (len(ids), dimensions).
        k: how many are wanted; there are fewer if there are not so many tools.
        block_scores: how many scores are held at once, 4 bytes each.
    """
    if k < 1 or len(ids) < 2:
        return dict.fromkeys(ids, ())
    order = sorted(range(len(ids)), key=ids.__getitem__)
    groups: dict[
        bytes, list[int]
    ] = {}  # tools with the same vector have the same neighbours; servers repeat each other
    for row in order:
        groups.setdefault(vectors[row].tobytes(), []).append(row)
    members = list(
        groups.values()
    )  # in the order of their first ids, so that of equal groups the first are the right ones
    near = _nearest_rows(vectors[[rows[0] for rows in members]], k + 1, block_scores)
    found: dict[str, tuple[Neighbour, ...]] = {}
    for rows, similar in zip(members, near, strict=True):
        candidates = [
            Neighbour(ids[row], cosine)
            for group, cosine in similar
            for row in members[group][: k + 1]
        ]
        candidates.sort(key=lambda one: (-one.cosine, one.id))
        for row in rows:
            found[ids[row]] = tuple([one for one in candidates[: k + 1] if one.id != ids[row]][:k])
    return {identity: found[identity] for identity in ids}


def _nearest_rows(
    vectors: "NDArray[np.float32]", k: int, block_scores: int
) -> list[list[tuple[int, float]]]:
    """The k best rows (row, cosine) for each row, itself among them; of equal ones the first."""
    import numpy as np

    count = len(vectors)
    starts = range(0, count, GROUP)
    step = max(1, block_scores // count)
    best: list[list[tuple[int, float]]] = []
    for start in range(0, count, step):
        scores = vectors[start : start + step] @ vectors.T
        # k groups whose best reach it hold at least k rows that do, so the k-th best row reaches
        # it, too.
        heads = np.maximum.reduceat(scores, starts, axis=1)
        level = (
            np.partition(heads, -k, axis=1)[:, -k]
            if heads.shape[1] > k
            else np.full(len(heads), -np.inf)
        )
        for row, (line, least) in enumerate(zip(scores, level, strict=True), start=start):
            rows = np.flatnonzero(line >= least - MARGIN)
            best.append(_ranked(vectors, row, rows, k))
    return best


def _ranked(
    vectors: "NDArray[np.float32]", row: int, rows: "NDArray[np.intp]", k: int
) -> list[tuple[int, float]]:
    """The k best of some rows, scored in float64: too exact for another order of summing to show
    after rounding.
    """
    import numpy as np

    cosines = np.round(vectors[rows].astype(np.float64) @ vectors[row].astype(np.float64), 5)
    chosen = np.lexsort((rows, -cosines))[:k]
    return list(zip(rows[chosen].tolist(), cosines[chosen].tolist(), strict=True))
