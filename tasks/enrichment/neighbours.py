"""The nearest neighbours of a tool, which an LLM sees beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.records import Agent, Tool
from pegboard.text.redaction import redact_credentials
from pegboard.text.words import identifier_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_SCORES = 8_000_000
"""Maximum cosines in memory at once: 64 MB."""
DIGITS = 5
"""Decimals to which cosines are rounded, so that neither the size of a block nor the order of
summing shows in a result."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A tool like another one, and their cosine, rounded to 5 decimals."""

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
    ids: Sequence[str], vectors: "NDArray[np.float32]", k: int
) -> dict[str, tuple[Neighbour, ...]]:
    """The k nearest of each tool, itself left out, best first; equal cosines are ordered by id.

    Args:
        ids: the tools, each once.
        vectors: their unit vectors, shape (len(ids), dimensions).
        k: how many neighbours each tool has; fewer if there are not enough tools.
    """
    import numpy as np

    if k < 1 or not ids:
        return dict.fromkeys(ids, ())
    order = sorted(range(len(ids)), key=ids.__getitem__)  # equal cosines are ordered by row
    tools = [ids[row] for row in order]
    wide = vectors[order].astype(np.float64)
    neighbours: dict[str, tuple[Neighbour, ...]] = {}
    step = max(1, BLOCK_SCORES // len(ids))
    kth = max(0, len(ids) - k - 1)  # the place of the k-th best, in ascending order
    for start in range(0, len(ids), step):
        cosines = np.round(wide[start : start + step] @ wide.T, DIGITS)
        levels = np.partition(cosines, kth, axis=1)[:, kth]  # of the k nearest and the tool
        for row, (line, level) in enumerate(zip(cosines, levels, strict=True), start):
            near = np.flatnonzero(line >= level)
            best = near[np.lexsort((near, -line[near]))]
            others = [Neighbour(tools[at], float(line[at])) for at in best if at != row]
            neighbours[tools[row]] = tuple(others[:k])
    return neighbours
