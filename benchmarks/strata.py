"""Means over several sets of queries with equal weight, whatever the number of queries of each.

The bootstrap draws queries within each set; the paired test swaps two systems query by query.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pegboard.evaluation.intervals import (
    CONFIDENCE,
    RESAMPLES,
    SEED,
    SWAPS,
    Difference,
    Interval,
    holm,
)

Name = TypeVar("Name")

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sets = Sequence[NDArray[np.float64]]


def mean_interval(sets: "Sets") -> Interval:
    """The mean of the sets' means, with its percentile bootstrap interval.

    Args:
        sets: values per query of each set, none empty.
    """
    return Interval(_mean(sets), *_bounds(sets), sum(map(len, sets)))


def mean_difference(ours: "Sets", theirs: "Sets") -> Difference:
    """How far one system's mean over the sets is above another's over the same queries."""
    gaps = [first - second for first, second in zip(ours, theirs, strict=True)]
    low, high = _bounds(gaps)
    return Difference(_mean(gaps), low, high, _p_value(gaps), sum(map(len, gaps)))


def corrected_values(gaps: Mapping[Name, Difference]) -> dict[Name, dict[str, Any]]:
    """Differences as JSON values by name, with `p_holm`, corrected for their number."""
    names = {str(number): name for number, name in enumerate(gaps)}
    corrected = holm({number: gaps[name].p for number, name in names.items()})
    return {
        name: gaps[name].to_dict() | {"p_holm": corrected[number]} for number, name in names.items()
    }


def _mean(sets: "Sets") -> float:
    return float(np.mean([values.mean() for values in sets]))


def _bounds(sets: "Sets") -> tuple[float, float]:
    rng = np.random.default_rng(SEED)
    draws = [rng.choice(values, (RESAMPLES, len(values))).mean(axis=1) for values in sets]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.mean(draws, axis=0), [tail, 1 - tail])
    return float(low), float(high)


def _p_value(gaps: "Sets") -> float:
    """How often signs drawn at random give a mean as far from 0."""
    weighted = np.concatenate([values / len(values) / len(gaps) for values in gaps])
    weighted = weighted[weighted != 0]
    if len(weighted) < 2:  # one difference is as large with either sign
        return 1.0
    rng, least = np.random.default_rng(SEED), abs(weighted.sum()) - 1e-12
    sums = [abs(rng.choice([-1.0, 1.0], len(weighted)) @ weighted) for _ in range(SWAPS)]
    return float((np.sum(np.array(sums) >= least) + 1) / (SWAPS + 1))
