"""The expected accuracy of an agent with retrieved tools, without a run of
both together.

    E[agent with retrieval at k of M tools] = E[agent with k tools] x E[retrieval at k of M tools]
    (Toolshed, appendix E)

The first factor is measured with all needed tools among the k, the second is the recall at k. Both
come from the same queries, so an interval is made by drawing these with replacement and multiplying
the two means of each draw. Between two measured numbers of tools the agent's accuracy is
interpolated, linearly in the logarithm of the number; outside of them nothing is said."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import CONFIDENCE, RESAMPLES, SEED, Interval, interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDING = 1e-12
"""A difference that is no more than this comes from adding floats in another order."""


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """What is expected of an agent that is given the first `k` tools that are found among `tools`.

    Attributes:
        agent: its accuracy with k tools, all needed ones among them; None outside of what was
            measured.
        interpolated: whether that was read between two measured numbers of tools.
        retrieval: recall at k.
        expected, low, high: their product, with its 95 % interval; None where `agent` is.
        tokens: mean tokens of the prompt; None outside of what was measured.
        measured: what the agent reached with the tools that were found, if that was tried.
        gap: by how much that is above the product, with its interval.
    """

    k: int
    tools: int
    agent: float | None
    interpolated: bool
    retrieval: float
    expected: float | None
    low: float | None
    high: float | None
    tokens: float | None
    measured: Interval | None = None
    gap: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The smallest k whose expected accuracy is not significantly below the best.

    Attributes:
        row: that k.
        best: the k with the highest expected accuracy.
        below: by how much the chosen one is below the best, with its interval.
        max_tokens: the bound under which both were looked for, if there was one.
    """

    row: ExpectedRow
    best: ExpectedRow
    below: Interval
    max_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "k": self.row.k,
            "expected": self.row.expected,
            "low": self.row.low,
            "high": self.row.high,
            "tokens": self.row.tokens,
            "interpolated": self.row.interpolated,
            "best": {"k": self.best.k, "expected": self.best.expected, "tokens": self.best.tokens},
            "below": self.below.to_dict(),
            "max_tokens": self.max_tokens,
        }


class AgentCurve:
    """An agent's accuracy by the number of its tools.

    Args:
        values: for each number of tools that was tried the score of each query, of shape
            (queries,).
        tokens: for each such number the mean tokens of the prompt; may lack some.
    """

    def __init__(
        self, values: "Mapping[int, NDArray[np.float64]]", tokens: Mapping[int, float] | None = None
    ) -> None:
        self.values = dict(sorted(values.items()))
        self.tokens = dict(sorted((tokens or {}).items()))

    def at(self, k: int) -> "tuple[NDArray[np.float64], bool] | None":
        """The score of each query with k tools, and if it is interpolated; None out of range."""
        if k in self.values:
            return self.values[k], False
        below, above = _around(list(self.values), k)
        if below is None or above is None:
            return None
        share = (math.log(k) - math.log(below)) / (math.log(above) - math.log(below))
        return self.values[below] * (1 - share) + self.values[above] * share, True

    def tokens_at(self, k: int) -> float | None:
        """Mean prompt tokens with k tools, interpolated linearly; None out of range."""
        if k in self.tokens:
            return self.tokens[k]
        below, above = _around(list(self.tokens), k)
        if below is None or above is None:
            return None
        share = (k - below) / (above - below)
        return self.tokens[below] * (1 - share) + self.tokens[above] * share


class ExpectedAccuracy:
    """The model for one set of tools.

    Args:
        curve: the agent.
        retrieval: recall of each query at each k, of shape (queries,), of the queries that the
            agent was asked, in the same order.
        tools: among how many tools was searched.

    Raises ConfigurationError where the two are not of the same queries.
    """

    def __init__(
        self, curve: AgentCurve, retrieval: "Mapping[int, NDArray[np.float64]]", tools: int
    ) -> None:
        sizes = {len(values) for values in (*curve.values.values(), *retrieval.values())}
        if len(sizes) != 1 or not all(sizes):
            raise ConfigurationError(
                f"The agent and the retrieval have to be measured on the same queries; they are "
                f"{sorted(sizes)} queries."
            )
        self._weights = _draws(sizes.pop())
        self._retrieval = dict(sorted(retrieval.items()))
        self._curve, self._tools = curve, tools
        self.rows = [self._row(k) for k in self._retrieval]

    def chosen(self, max_tokens: int | None = None) -> Chosen | None:
        """The k to take; None if nothing is expected of any, or none is within the bound.

        Args:
            max_tokens: the most tokens of the prompt; a k whose tokens are not known is not taken
                then.
        """
        rows = [row for row in self.rows if row.expected is not None and _within(row, max_tokens)]
        if not rows:
            return None
        best = max(rows, key=lambda row: (row.expected or 0.0, -row.k))
        for row in rows:
            below = self._difference(best.k, row.k)
            if below.low <= ROUNDING or row is best:
                return Chosen(row, best, below, max_tokens)
        return None

    def with_measured(self, measured: "Mapping[int, NDArray[np.float64]]") -> list[ExpectedRow]:
        """The rows with what the agent reached with the tools found.

        Args:
            measured: its score for each query at some k, of shape (queries,).
        """
        return [
            replace(row, **self._against(row.k, measured[row.k])) if row.k in measured else row
            for row in self.rows
        ]

    def _row(self, k: int) -> ExpectedRow:
        recall = self._retrieval[k]
        at = self._curve.at(k)
        retrieval, tokens = float(recall.mean()), self._curve.tokens_at(k)
        if at is None:
            return ExpectedRow(k, self._tools, None, False, retrieval, None, None, None, tokens)
        agent = float(at[0].mean())
        low, high = _ends(self._products(k))
        return ExpectedRow(
            k, self._tools, agent, at[1], retrieval, agent * retrieval, low, high, tokens
        )

    def _products(self, k: int) -> "NDArray[np.float64]":
        """The product of both means in each draw, of shape (draws,)."""
        at = self._curve.at(k)
        assert at is not None
        return (self._weights @ at[0]) * (self._weights @ self._retrieval[k])

    def _difference(self, first: int, second: int) -> Interval:
        values = {row.k: row.expected or 0.0 for row in self.rows}
        low, high = _ends(self._products(first) - self._products(second))
        return Interval(values[first] - values[second], low, high, self._weights.shape[1])

    def _against(self, k: int, measured: "NDArray[np.float64]") -> dict[str, Interval | None]:
        reached = interval(measured)
        at = self._curve.at(k)
        if at is None:
            return {"measured": reached, "gap": None}
        low, high = _ends(self._weights @ measured - self._products(k))
        product = float(at[0].mean()) * float(self._retrieval[k].mean())
        return {
            "measured": reached,
            "gap": Interval(reached.value - product, low, high, len(measured)),
        }


def _within(row: ExpectedRow, max_tokens: int | None) -> bool:
    return max_tokens is None or (row.tokens is not None and row.tokens <= max_tokens)


def _around(sizes: Sequence[int], k: int) -> tuple[int | None, int | None]:
    below = max((size for size in sizes if size < k), default=None)
    above = min((size for size in sizes if size > k), default=None)
    return below, above


def _draws(queries: int) -> "NDArray[np.float64]":
    """How often each query is in each draw, over the number of queries.

    Returns: shape (draws, queries); rows sum to 1.
    """
    import numpy as np

    counts = np.random.default_rng(SEED).multinomial(
        queries, np.full(queries, 1 / queries), size=RESAMPLES
    )
    return counts / queries


def _ends(values: "NDArray[np.float64]") -> tuple[float, float]:
    """Between which bounds the middle 95 % of the values lie."""
    import numpy as np

    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
