"""The expected accuracy of an agent with retrieved tools, without a run of both together.

    E[agent with retrieval at k of M tools] = E[agent with k tools] x E[retrieval at k of M tools]
    (Toolshed, appendix E)

The first factor is measured with all needed tools among the k, the second is the recall at k. Both
come from the same queries, so an interval is made by drawing these with replacement and multiplying
the two means of each draw.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import (
    CONFIDENCE,
    ONE_SIDED,
    RESAMPLES,
    SEED,
    Interval,
    is_no_worse,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    ByNumber = Mapping[int, NDArray[np.float64]]
    """For each number of tools the value of each query, of shape (queries,)."""


@dataclass(frozen=True, slots=True)
class ExpectedAccuracy:
    """What is expected of an agent that is given the first tools that are found.

    Attributes:
        by_k: for each number of tools the product, with its 95 % interval.
        k: the smallest number that is shown to be no worse than the best by more than `margin`.
        best: the number with the highest product.
        gap: how far `k` is from the best, with its 90 % interval.
    """

    by_k: Mapping[int, Interval]
    k: int
    best: int
    gap: Interval
    margin: float

    @classmethod
    def of(cls, scores: "ByNumber", retrieval: "ByNumber", margin: float) -> "ExpectedAccuracy":
        """Multiply the agent's scores with recall, and choose k by the rule of a sweep.

        Args:
            scores: the agent's score by its number of tools; at least one number.
            retrieval: recall at each of these numbers, of the same queries in the same order.
        """
        queries = len(next(iter(scores.values())))
        weights = _draws(queries)
        values = {k: float(scores[k].mean()) * float(retrieval[k].mean()) for k in sorted(scores)}
        draws = {k: (weights @ scores[k]) * (weights @ retrieval[k]) for k in values}
        best = max(values, key=lambda k: (values[k], -k))
        gaps = {
            k: _interval(values[k] - values[best], draws[k] - draws[best], queries, ONE_SIDED)
            for k in values
        }
        chosen = next(k for k in values if k == best or is_no_worse(gaps[k].low, margin))
        by_k = {k: _interval(values[k], draws[k], queries, CONFIDENCE) for k in values}
        return cls(by_k, chosen, best, gaps[chosen], margin)

    def to_dict(self) -> dict[str, Any]:
        """The choice as JSON values."""
        return {"k": self.k, "best": self.best, "gap": asdict(self.gap), "margin": self.margin}


def _interval(
    value: float, draws: "NDArray[np.float64]", queries: int, confidence: float
) -> Interval:
    import numpy as np

    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(value, float(low), float(high), queries)


def _draws(queries: int) -> "NDArray[np.float64]":
    """How often each query is in each draw, over the number of queries.

    Returns: shape (draws, queries); rows sum to 1.
    """
    import numpy as np

    counts = np.random.default_rng(SEED).multinomial(
        queries, np.full(queries, 1 / queries), size=RESAMPLES
    )
    return counts / queries
