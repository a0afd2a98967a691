"""Logistic regression for a handful of measures, fitted by iteratively reweighted least squares. No
measure counts against.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RIDGE = 1e-3
"""Of the mean loss, on standardised measures: keeps the weights finite where a measure separates
the classes completely.
"""
ROUNDS = 100
SETTLED = 1e-9
LARGEST_STEP = 5.0
"""Newton's step in any weight; longer ones overshoot where the classes are nearly separable."""
FLAT = 1e-9
"""A measure that varies less than that says nothing."""


def fit_logistic(
    measures: "NDArray[np.float64]", labels: "NDArray[np.bool_]", share: float = 0.5
) -> tuple[float, "NDArray[np.float64]"]:
    """The bias and the weights, none negative, of the logistic curve through examples of both
    classes.

    A weight that comes out negative is set to 0, and the others are fitted again, so that the curve
    rises with every measure.

    Args:
        measures: shape (examples, measures).
        labels: shape (examples,), both values present.
        share: what share of those to come are taken to be True; the examples are weighted so,
            however many of each there are.
    """
    import numpy as np

    means, spread = measures.mean(axis=0), measures.std(axis=0)
    counted = np.where(labels, share / labels.mean(), (1 - share) / (1 - labels.mean())) / len(
        labels
    )
    kept = np.flatnonzero(spread > FLAT)
    while True:
        scaled = (measures[:, kept] - means[kept]) / spread[kept]
        fitted = _newton(
            np.column_stack([np.ones(len(labels)), scaled]), labels.astype(np.float64), counted
        )
        if not (fitted[1:] < 0).any():
            break
        kept = np.delete(kept, fitted[1:].argmin())
    weights = np.zeros(measures.shape[1])
    weights[kept] = fitted[1:] / spread[kept]
    return float(fitted[0] - weights @ means), weights


def _newton(
    examples: "NDArray[np.float64]", labels: "NDArray[np.float64]", counted: "NDArray[np.float64]"
) -> "NDArray[np.float64]":
    """The weights that minimise the weighted loss with a ridge on all but the first."""
    import numpy as np

    weights = np.zeros(examples.shape[1])
    ridge = np.diag([0.0, *[RIDGE] * (len(weights) - 1)])
    for _ in range(ROUNDS):
        likely = 0.5 * (1 + np.tanh(examples @ weights / 2))
        slope = examples.T @ (counted * (likely - labels)) + ridge @ weights
        bend = (examples * (counted * likely * (1 - likely))[:, None]).T @ examples + ridge
        bend[0, 0] += SETTLED
        step = np.linalg.solve(bend, slope)
        step *= min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), SETTLED))
        weights -= step
        if np.abs(step).max() < SETTLED:
            break
    return weights
