"""The baseline of Retrieval-Plan-Select for a decomposition that understands the request."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from pegboard.errors import QueryError
from pegboard.retrieval.context import Context
from pegboard.retrieval.parts import Query


@dataclass(frozen=True, slots=True)
class DummySteps:
    """Cuts the request into parts with the same number of words (algorithm 1, line 3).

    Attributes:
        steps: how many parts.
    """

    steps: int = 3
    part: ClassVar[str] = "dummy-steps"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise QueryError(f"dummy-steps has steps = {self.steps}; expected 1 or more.")

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the parts as steps 1, 2, ...; a request of one word stays as it is."""
        request = next((query for query in reversed(queries) if query.step == 0), None)
        words = request.text.split() if request else []
        count = min(self.steps, len(words))
        if count < 2:
            return list(queries)
        bounds = [round(place * len(words) / count) for place in range(count + 1)]
        parts = [" ".join(words[start:end]) for start, end in pairwise(bounds)]
        first = max(query.step for query in queries) + 1
        others = [query for query in queries if query.step]
        return others + [Query(part, step, "step") for step, part in enumerate(parts, start=first)]
