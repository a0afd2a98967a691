"""Scoring a tool by several of its rows, in an index of the shape `multi`, where a search scores it
by its best one alone.
"""

from dataclasses import dataclass
from typing import ClassVar

from pegboard.errors import QueryError
from pegboard.retrieval.parts import Candidates, Context, Scored

DIGITS = 5


@dataclass(frozen=True, slots=True)
class MeanOfRows:
    """Orders the first tools anew by the mean of their best rows' cosines; the others stay behind
    them, as they were.

    A tool with fewer rows is scored by those that it has. `of=1` is the best row. With requests of
    several steps it belongs into
    `each`: it scores against the first text among `candidates.texts`.

    Args:
        of: how many of the best rows count.
        depth: how many tools are ordered anew.
    """

    part: ClassVar[str] = "mean-of-rows"
    of: int = 3
    depth: int = 50

    def __post_init__(self) -> None:
        if self.of < 1 or self.depth < 1:
            raise QueryError(
                f"mean-of-rows: of={self.of}, depth={self.depth}; expected 1 or more of each"
            )

    async def refine(self, candidates: Candidates, context: Context) -> list[Scored]:
        """The ranking with its first tools in the order of their mean cosine, which becomes their
        score.
        """
        import numpy as np

        first, rest = list(candidates.ranking[: self.depth]), list(candidates.ranking[self.depth :])
        text = next(iter(candidates.texts.values()), context.request.text)
        unit = (await context.units([text]))[0]
        rows = await context.rows_of([one.tool for one in first])
        means = {
            tool: float(np.sort(matrix @ unit)[::-1][: self.of].mean())
            for tool, matrix in rows.items()
        }
        scored = [
            Scored(one.tool, round(means[one.tool], DIGITS)) for one in first if one.tool in means
        ]
        unknown = [one for one in first if one.tool not in means]
        return [*sorted(scored, key=lambda one: (-one.score, one.tool)), *unknown, *rest]
