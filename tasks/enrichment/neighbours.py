"""The nearest neighbours of a tool, which an LLM sees beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.records import Agent, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.cosine import BLOCK_SCORES, nearest_rows
from pegboard.search.text import identifier_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    ids: Sequence[str], vectors: "NDArray[np.float32]", k: int, *, block_scores: int = BLOCK_SCORES
) -> dict[str, tuple[Neighbour, ...]]:
    """The k nearest of each tool, itself left out, best first; equal cosines are ordered by id.

    Args:
        ids: the tools, each once.
        vectors: their unit vectors, shape (len(ids), dimensions).
        k: how many; fewer if there are not so many tools.
        block_scores: how many scores are held at once, 4 bytes each.
    """
    if k < 1 or len(ids) < 2:
        return dict.fromkeys(ids, ())
    order = sorted(range(len(ids)), key=ids.__getitem__)
    # Tools with the same vector have the same neighbours; servers repeat each other.
    twins: dict[bytes, list[int]] = {}
    for row in order:
        twins.setdefault(vectors[row].tobytes(), []).append(row)
    # In the order of their first ids, so that of equally near groups the first are the right ones.
    groups = list(twins.values())
    firsts = vectors[[rows[0] for rows in groups]]
    neighbours: dict[str, tuple[Neighbour, ...]] = {}
    near = nearest_rows(firsts, k + 1, block_scores=block_scores)
    for rows, similar in zip(groups, near, strict=True):
        candidates = [
            Neighbour(ids[row], cosine)
            for group, cosine in similar
            for row in groups[group][: k + 1]
        ]
        candidates.sort(key=lambda candidate: (-candidate.cosine, candidate.id))
        for row in rows:
            others = [near for near in candidates[: k + 1] if near.id != ids[row]]
            neighbours[ids[row]] = tuple(others[:k])
    return {tool: neighbours[tool] for tool in ids}
