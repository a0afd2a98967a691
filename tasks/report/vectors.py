"""The mean vector of each tool of a release, which the map and the search for twins share."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from pegboard.evaluation.collisions import tool_vectors
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

READ_AT_ONCE = 1_000
"""Tools that are read in one call, which names all their ids in one filter."""


@dataclass(frozen=True)
class ToolVectors:
    """The tools of an index and a unit vector of each: the mean of its vectors.

    Attributes:
        ids: sorted, so that the tools of an agent follow each other.
        matrix: of shape (tools, dimensions).
    """

    index: str
    ids: Sequence[str]
    matrix: "NDArray[np.float32]"

    @classmethod
    def of(cls, loaded: LoadedRelease, index: str | None = None) -> "ToolVectors":
        """Read the vectors of an index; the default if None."""
        import numpy as np

        name = loaded.index_name(index)
        ids, starts, matrix = tool_vectors(loaded, name)
        means = unit(np.add.reduceat(matrix, starts, axis=0)) if ids else matrix
        return cls(name, ids, means)

    @cached_property
    def agents(self) -> dict[str, tuple[int, int]]:
        """For each agent the places of its first tool and after its last."""
        counts = [(agent, len(list(group))) for agent, group in groupby(self.ids, agent_of)]
        ends = [0]
        for _, count in counts:
            ends.append(ends[-1] + count)
        return {agent: place for (agent, _), place in zip(counts, pairwise(ends), strict=True)}


def agent_of(tool: str) -> str:
    """Return the id of a tool's agent."""
    return tool.rpartition("/")[0]


def read_tools(loaded: LoadedRelease, ids: Sequence[str]) -> dict[str, Tool]:
    """Return tools by id, read by the thousand."""
    tools: dict[str, Tool] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        tools |= loaded.tools(ids[start : start + READ_AT_ONCE])
    return tools


def unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1; zero vectors stay."""
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
