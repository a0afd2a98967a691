"""The mean vector of each tool of a release, and an even sample of the tools of a large one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import groupby, pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from pegboard.evaluation.tool_vectors import tool_vectors
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOOLS = 10_000
"""Tools of a release that are compared with each other for twins, which takes 0.2 s on one core,
and 5 s if all have one name."""
SAMPLE = 5_000
"""Tools that are listed: about 2 MB of the page, and at most 8 MB."""
READ_AT_ONCE = 1_000
"""Tools that are read in one call, which names all their ids in one filter."""


@dataclass(frozen=True)
class ToolVectors:
    """The tools of a release and a unit vector of each: the mean of those in its default index.

    Attributes:
        ids: sorted, so that the tools of an agent follow each other.
        matrix: of shape (tools, dimensions).
    """

    ids: Sequence[str]
    matrix: "NDArray[np.float32]"

    @classmethod
    def of(cls, loaded: LoadedRelease) -> "ToolVectors":
        """Read the vectors of the default index."""
        import numpy as np

        ids, starts, matrix = tool_vectors(loaded, loaded.index_name(None))
        return cls(ids, unit(np.add.reduceat(matrix, starts, axis=0)) if ids else matrix)

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


def choose_evenly(ids: Sequence[str], count: int) -> list[int]:
    """Return the places of `count` tools, equally many of each agent as far as they go round.

    Equal ids give equal places, in every run.
    """
    if len(ids) <= count:
        return list(range(len(ids)))
    turns: Counter[str] = Counter()
    queue: list[tuple[int, str, int]] = []
    for place in sorted(range(len(ids)), key=lambda at: (crc32(ids[at].encode()), ids[at])):
        owner = agent_of(ids[place])
        turns[owner] += 1
        queue.append((turns[owner], owner, place))
    return [place for _, _, place in nsmallest(count, queue)]


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
