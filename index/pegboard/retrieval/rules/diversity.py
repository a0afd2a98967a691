"""Leaving room in a ranking for tools that differ: near-duplicates from many catalogs otherwise
fill its first places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pegboard.errors import QueryError
from pegboard.retrieval.fusion import by_range
from pegboard.retrieval.parts import Candidates, Context, ScoredTool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MaximalMarginalRelevance:
    """Each next tool is the one with the best of share * relevance - (1 - share) * highest cosine
    to a tool that is in already.

    Relevance is the score in the ranking, moved to 0..1. Carbonell and Goldstein, "The Use of MMR,
    Diversity-Based Reranking for Reordering Documents and Producing Summaries", 1998.

    Attributes:
        share: 1 leaves the order as it is; 0 asks for difference alone.
        depth: the tools that are ordered anew; those behind them stay behind them.
    """

    share: float = 0.7
    depth: int = 50
    part: ClassVar[str] = "mmr"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.depth < 1:
            raise QueryError(
                f"mmr has share = {self.share} and depth = {self.depth}; expected a share of 0 to "
                f"1 and a depth of 1 or more."
            )

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The tools in their new order, at the places' old scores, so that scores still fall; those
        without a vector keep their places.
        """
        ranking = list(candidates.ranking)
        head = ranking[: self.depth]
        vectors = await context.vectors([row.tool for row in head])
        movable = [row for row in head if row.tool in vectors]
        chosen = iter(_diverse(movable, vectors, self.share))
        order = [next(chosen) if row.tool in vectors else row.tool for row in head]
        return [
            ScoredTool(tool, row.score) for tool, row in zip(order, head, strict=True)
        ] + ranking[self.depth :]


@dataclass(frozen=True, slots=True)
class WithoutDuplicates:
    """Leaves out every tool that is as good as one before it: the same server in two catalogs, a
    tool with two names.

    Attributes:
        cosine: of the vectors of two tools, from which on they are taken for the same.
        depth: the tools that are looked at; those behind them stay.
    """

    cosine: float = 0.98
    depth: int = 50
    part: ClassVar[str] = "without-duplicates"

    def __post_init__(self) -> None:
        if not 0 < self.cosine <= 1 or self.depth < 1:
            raise QueryError(
                f"without-duplicates has cosine = {self.cosine} and depth = {self.depth}; "
                f"expected a cosine above 0, at most 1, "
                "and a depth of 1 or more."
            )

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The ranking without what stands there twice; tools without a vector stay."""
        ranking = list(candidates.ranking)
        vectors = await context.vectors([row.tool for row in ranking[: self.depth]])
        remaining: list[ScoredTool] = []
        dropped: list[str] = []
        for row in ranking[: self.depth]:
            vector = vectors.get(row.tool)
            same = vector is not None and any(
                float(vectors[other.tool] @ vector) >= self.cosine
                for other in remaining
                if other.tool in vectors
            )
            if same:
                dropped.append(row.tool)
            else:
                remaining.append(row)
        if dropped:
            context.trace.note = f"left out as duplicates: {', '.join(dropped)}"
        return remaining + ranking[self.depth :]


def _diverse(
    tools: Sequence[ScoredTool], vectors: "Mapping[str, NDArray[np.float32]]", share: float
) -> list[str]:
    """The tools in the order of their marginal relevance; of equal ones the one that stood before
    comes first.
    """
    import numpy as np

    if not tools:
        return []
    matrix = np.stack([vectors[row.tool] for row in tools])
    cosines = np.vecdot(matrix[:, None], matrix)  # a matrix product would use all cores
    relevance = np.asarray(by_range([row.score for row in tools]), dtype=np.float64)
    nearest = np.zeros(len(tools))
    waiting = np.ones(len(tools), dtype=bool)
    order: list[str] = []
    for _ in tools:
        gains = np.where(waiting, share * relevance - (1 - share) * nearest, -np.inf)
        # Rounded, since sums differ in the last bits and must not decide between equals.
        best = int(np.argmax(np.round(gains, 9)))
        order.append(tools[best].tool)
        waiting[best] = False
        nearest = (
            np.maximum(nearest, cosines[best])
            if len(order) > 1
            else cosines[best].astype(np.float64)
        )
    return order
