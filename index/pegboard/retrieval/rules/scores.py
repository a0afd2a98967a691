"""A refinement by score: drop tools below a threshold."""

from dataclasses import dataclass
from typing import ClassVar

from pegboard.errors import QueryError
from pegboard.ranking import ScoredTool
from pegboard.retrieval.context import Context
from pegboard.retrieval.parts import Part
from pegboard.retrieval.requests import Candidates

SIMILARITY = 0.5
"""The default cosine threshold, as in Armory's Tool RAG (`similarity_threshold`)."""


@dataclass(frozen=True, slots=True)
class AtLeast(Part):
    """Keeps every tool of the ranking that reaches a threshold, in the order of the ranking.

    A tool that no search found has neither a probability nor a cosine and is dropped, so use this
    part before an expansion. A good cosine threshold depends on the encoder and the catalog; a
    probability, which only a hybrid search gives, means the same on every index.

    Attributes:
        probability: the minimum probability: a number, or the name of a threshold of the ranker,
            such as `accept_95`.
        score: the minimum cosine, if `probability` is None; .5 if both are (Armory, "Tool RAG").
    """

    part: ClassVar[str] = "at-least"

    probability: float | str | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        Part.__post_init__(self)
        least = self.probability if isinstance(self.probability, int | float) else 0.0
        both = self.probability is not None and self.score is not None
        if both or not 0 <= least <= 1 or not -1 <= (self.score or 0.0) <= 1:
            raise QueryError(
                f"The part '{self.part}' has probability = {self.probability!r} and score = "
                f"{self.score!r}; expected one of them: a probability, 0 to 1, or a threshold's "
                f"name; or a cosine, -1 to 1."
            )

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the tools that reach the threshold.

        Raises:
            QueryError: the search gives no probability, or there is no such threshold; or vectors
                were not searched.
        """
        ranking = candidates.ranking
        if not ranking:
            return []
        values = context.cosines if self.probability is None else context.probabilities
        if values is None:
            raise QueryError(f"The part '{self.part}' {self._unavailable()}.")
        least = self._least(context)
        remaining = [row for row in ranking if row.tool in values and values[row.tool] >= least]
        kind = "cosine" if self.probability is None else "probability"
        note = f"{len(remaining)} of {len(ranking)} tools reach a {kind} of {least:.3g}"
        if not remaining:
            best = max((values[row.tool] for row in ranking if row.tool in values), default=0.0)
            note = f"{note}; the best has {best:.3g}"
        context.trace.note = note
        return remaining

    def _unavailable(self) -> str:
        if self.probability is None:
            return (
                "compares cosines, but vectors were not searched. Search in mode 'hybrid' or "
                "'vector', or ask for a probability"
            )
        return (
            "asks for a probability, which only a hybrid search gives. Search in both modes, or "
            "give `score`, a least cosine"
        )

    def _least(self, context: Context) -> float:
        threshold = self.probability
        if threshold is None:
            return SIMILARITY if self.score is None else self.score
        if not isinstance(threshold, str):
            return threshold
        thresholds = context.thresholds or {}
        if threshold not in thresholds:
            names = ", ".join(sorted(thresholds)) or "none"
            raise QueryError(
                f"The part '{self.part}' asks for the threshold '{threshold}', but the index has: "
                f"{names}. "
                "Name one of those, or give a probability, 0 to 1."
            )
        return thresholds[threshold]
