"""The expected accuracy of an agent with retrieved tools, without a run of both together.

    E[agent with retrieval at k of M tools] = E[agent with k tools] x E[retrieval at k of M tools]
    (Toolshed, appendix E)

The first factor is measured with all needed tools among the k, the second is the recall at k. Both
come from the same queries, so an interval is made by drawing these with replacement and multiplying
the two means of each draw. Between two measured numbers of tools the agent's accuracy is
interpolated, linearly in the logarithm of the number; outside of them nothing is said."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import (
    CONFIDENCE,
    ONE_SIDED,
    RESAMPLES,
    SEED,
    Interval,
    interval,
    is_no_worse,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    ByNumber = Mapping[int, NDArray[np.float64]]
    """For each number of tools the value of each query, of shape (queries,)."""


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """What is expected of an agent that is given the first `k` tools that are found.

    Attributes:
        agent: its accuracy with k tools, all needed ones among them; None outside of what was
            measured.
        interpolated: whether that was read between two measured numbers of tools.
        retrieval: recall at k.
        expected: their product, with its 95 % interval; None where `agent` is.
        tokens: mean tokens of the prompt; None outside of what was measured.
        measured: what the agent reached with the tools that were found, if that was tried.
        gap: by how much that is above the product, with its interval.
    """

    k: int
    agent: float | None
    interpolated: bool
    retrieval: float
    expected: Interval | None
    tokens: float | None
    measured: Interval | None = None
    gap: Interval | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The smallest k that is shown to be no worse than the best by more than `margin`.

    Attributes:
        best: the k with the highest expected accuracy.
        gap: how far the chosen k is from the best, with its 90 % interval.
    """

    row: ExpectedRow
    best: ExpectedRow
    gap: Interval
    margin: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"k": self.row.k}


class ExpectedAccuracy:
    """The model for one release.

    Args:
        scores: the agent's score by its number of tools, of the queries of `retrieval`.
        tokens: mean tokens of the prompt by the number of tools; may lack some.
        retrieval: recall by k.
        measured: the agent's score with the k tools found, where that was tried.

    Raises ConfigurationError where scores and retrieval are not of the same queries.
    """

    def __init__(
        self,
        scores: "ByNumber",
        retrieval: "ByNumber",
        tokens: Mapping[int, float] | None = None,
        measured: "ByNumber | None" = None,
    ) -> None:
        sizes = {len(values) for values in (*scores.values(), *retrieval.values())}
        if len(sizes) != 1 or not all(sizes):
            raise ConfigurationError(
                f"The agent and the retrieval have to be measured on the same queries; they are "
                f"{sorted(sizes)} queries."
            )
        self._queries = sizes.pop()
        self._weights = _draws(self._queries)
        self._scores, self._retrieval = scores, retrieval
        self._tokens, self._measured = tokens or {}, measured or {}
        self.rows = [self._row(k) for k in sorted(retrieval)]

    def chosen(self, margin: float) -> Chosen | None:
        """The k to take, by the rule of a sweep; None if nothing is expected of any."""
        rows = [row for row in self.rows if row.expected is not None]
        if not rows:
            return None
        best = max(rows, key=lambda row: (row.expected.value if row.expected else 0.0, -row.k))
        for row in rows:
            gap = self._interval(
                self._product(row.k) - self._product(best.k),
                self._draw(row.k) - self._draw(best.k),
                ONE_SIDED,
            )
            if row is best or is_no_worse(gap.low, margin):
                return Chosen(row, best, gap, margin)
        return None

    def _row(self, k: int) -> ExpectedRow:
        at = _between(self._scores, k, math.log)
        tokens = _between(self._tokens, k, float)
        reached = self._measured.get(k)
        product = None if at is None else self._product(k)
        gap = None
        if product is not None and reached is not None:
            draws = self._weights @ reached - self._draw(k)
            gap = self._interval(float(reached.mean()) - product, draws)
        return ExpectedRow(
            k=k,
            agent=None if at is None else float(at[0].mean()),
            interpolated=at is not None and at[1],
            retrieval=float(self._retrieval[k].mean()),
            expected=None if product is None else self._interval(product, self._draw(k)),
            tokens=None if tokens is None else tokens[0],
            measured=None if reached is None else interval(reached),
            gap=gap,
        )

    def _agent(self, k: int) -> "NDArray[np.float64]":
        at = _between(self._scores, k, math.log)
        assert at is not None
        return at[0]

    def _product(self, k: int) -> float:
        return float(self._agent(k).mean()) * float(self._retrieval[k].mean())

    def _draw(self, k: int) -> "NDArray[np.float64]":
        """The product of both means in each draw, of shape (draws,)."""
        return (self._weights @ self._agent(k)) * (self._weights @ self._retrieval[k])

    def _interval(
        self, value: float, draws: "NDArray[np.float64]", confidence: float = CONFIDENCE
    ) -> Interval:
        import numpy as np

        tail = (1 - confidence) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Interval(value, float(low), float(high), self._queries)


def _between(
    known: Mapping[int, Any], k: int, scale: Callable[[int], float]
) -> tuple[Any, bool] | None:
    """The value at k, and whether it is interpolated; None out of range."""
    if k in known:
        return known[k], False
    below = max((size for size in known if size < k), default=None)
    above = min((size for size in known if size > k), default=None)
    if below is None or above is None:
        return None
    share = (scale(k) - scale(below)) / (scale(above) - scale(below))
    return known[below] * (1 - share) + known[above] * share, True


def _draws(queries: int) -> "NDArray[np.float64]":
    """How often each query is in each draw, over the number of queries.

    Returns: shape (draws, queries); rows sum to 1.
    """
    import numpy as np

    counts = np.random.default_rng(SEED).multinomial(
        queries, np.full(queries, 1 / queries), size=RESAMPLES
    )
    return counts / queries
