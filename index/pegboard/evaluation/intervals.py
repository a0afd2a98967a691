"""Confidence of a mean over queries: bootstrap intervals, and paired tests between two systems."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.extras import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2_000
"""Number of bootstrap resamples; at 500 queries the ends of a 95 % interval differ by about .001
from seed to seed.
"""
CONFIDENCE = 0.95
"""Confidence of a two-sided interval."""
ONE_SIDED = 0.9
"""Confidence of the two-sided interval whose lower end is a one-sided 95 % bound."""
TOLERANCE = 1e-9
"""Largest difference that is attributed to floating-point summation order."""
SEED = 0
"""Seed of the resampling, fixed so that equal values give equal intervals on every machine."""
SWAPS = 9_999
"""Number of random swaps in the paired randomisation test; p is therefore at least 2 / 10,000."""
POWER = 0.8
"""Statistical power that `queries_needed` plans for."""
BATCH = 200
"""Number of resamples held at a time; bounds memory to 160 MB at 100,000 queries."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `n` queries with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the means of two systems over the same `n` queries.

    Attributes:
        value: the difference of the means.
        low, high: its 95 % confidence interval, by a paired bootstrap.
        p: the two-sided p value of a paired randomisation test, which swaps the two systems query
            by query (Smucker, Allan, Carterette, CIKM 2007).
        n: the number of queries.
    """

    value: float
    low: float
    high: float
    p: float
    n: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def interval(
    values: "Sequence[float] | NDArray[np.float64]", confidence: float = CONFIDENCE
) -> Interval:
    """The mean of values per query with its percentile bootstrap interval.

    Raises ConfigurationError for no values.
    """
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ConfigurationError(
            "There are no queries to measure. Add golden queries, or choose others."
        )
    low, high = _bounds(array, confidence)
    return Interval(float(array.mean()), low, high, array.size)


def compare(
    ours: "Sequence[float] | NDArray[np.float64]",
    theirs: "Sequence[float] | NDArray[np.float64]",
) -> Difference:
    """Return the paired difference between the means of `ours` and `theirs`.

    Raises ConfigurationError if their numbers differ.
    """
    import numpy as np

    our_values = np.asarray(ours, dtype=np.float64)
    their_values = np.asarray(theirs, dtype=np.float64)
    if our_values.shape != their_values.shape or not our_values.size:
        raise ConfigurationError(
            f"{our_values.size} and {their_values.size} values cannot be compared in pairs: both "
            f"systems have to answer the same queries."
        )
    gaps = our_values - their_values
    low, high = _bounds(gaps, CONFIDENCE)
    p = _randomised(our_values, their_values)
    return Difference(float(gaps.mean()), low, high, p, gaps.size)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The p values of several comparisons, corrected for their number (Holm 1979), by name."""
    corrected: dict[str, float] = {}
    least = 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        least = max(least, min(1.0, p * (len(p_values) - place)))
        corrected[name] = least
    return {name: corrected[name] for name in p_values}


def is_no_worse(low: float, margin: float) -> bool:
    """Whether a system is shown not to be worse than another by more than a margin.

    A difference that is not significant is not enough: with few queries no difference is.

    Args:
        low: the lower end of the `ONE_SIDED` interval of their difference.
    """
    return low >= -margin - TOLERANCE


def queries_needed(spread: float, margin: float, confidence: float = CONFIDENCE) -> int | None:
    """Return the number of queries needed to show non-inferiority within a margin.

    For a one-sided test with `POWER`, by the normal approximation: n is the square of
    (z(confidence) + z(power)) * spread / margin.

    Args:
        spread: the standard deviation of the differences, query by query.
        margin: the largest accepted loss, less the known loss of the mean. If none is left, no
            number of queries is enough, and None is returned.
    """
    if margin <= 0:
        return None
    z = NormalDist().inv_cdf(confidence) + NormalDist().inv_cdf(POWER)
    return max(1, math.ceil((z * spread / margin) ** 2))


def bootstrap_bounds(
    samples: "Sequence[NDArray[np.float64]]", statistic: Any, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the ends of the percentile bootstrap interval of a statistic over queries.

    Args:
        samples: each of shape (queries,), of at least two queries; all are resampled alike.
        statistic: of these samples, with `axis` as in NumPy.
    """
    result = evaluation_module("scipy.stats", "scipy").bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        batch=BATCH,
        paired=True,
        confidence_level=confidence,
        method="percentile",
        rng=SEED,
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _bounds(values: "NDArray[np.float64]", confidence: float) -> tuple[float, float]:
    if (values == values[0]).all():  # every resample has the same mean
        return float(values[0]), float(values[0])
    return bootstrap_bounds([values], _mean, confidence)


def _randomised(ours: "NDArray[np.float64]", theirs: "NDArray[np.float64]") -> float:
    differing = ours != theirs  # where both are equal, swapping them changes nothing
    if differing.sum() < 2:  # one difference is as large with either sign
        return 1.0
    result = evaluation_module("scipy.stats", "scipy").permutation_test(
        (ours[differing], theirs[differing]),
        _gap,
        permutation_type="samples",
        n_resamples=SWAPS,
        batch=BATCH,
        vectorized=True,
        rng=SEED,
    )
    return min(1.0, float(result.pvalue))


def _mean(values: Any, axis: int = -1) -> Any:
    return values.mean(axis=axis)


def _gap(ours: Any, theirs: Any, axis: int = -1) -> Any:
    return ours.mean(axis=axis) - theirs.mean(axis=axis)


def evaluation_module(name: str, package: str) -> Any:
    """Import a module of a package that the extra `eval` brings.

    Raises ConfigurationError with the command that installs the package.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"Evaluations need the package {package}, which cannot be imported ({error}). Install "
            f"it: {install_command(package)}"
        ) from error
