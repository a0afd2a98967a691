"""Which index, strategy and k are best on the whole catalog within the limits, and which to choose.

Every candidate is compared with the best one query by query: the paired randomisation test of
`pegboard.evaluation.intervals`, with Holm's correction for the number of candidates. Its 9,999
swaps cannot give a p below 2 / 10,000, which the correction for a few hundred candidates makes
insignificant whatever the difference. So below `SMALL_P`, p is that of the normal approximation of
the same test."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import Difference, compare, holm
from tasks.settings.sweep import SweepSettings
from tasks.sweep.results import Results, over_seeds

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

SIGNIFICANT = 0.05
SMALL_P = 1e-3
"""Below this, p is that of the normal approximation, see `_normal_p`."""
COLUMNS = ("index", "strategy", "k", "value", "low", "high", "n", "tokens", "ms_p50", "ms_p95")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, a strategy and a k, with their mean and their cost.

    Attributes:
        tokens: the mean prompt tokens of its k tools, an estimate.
        ms_p50, ms_p95: milliseconds per request; None if no request was timed.
        against: the difference from the best with p, and p corrected for all candidates; None for
            the best itself.
    """

    index: str
    strategy: str
    k: int
    value: float
    low: float
    high: float
    n: int
    tokens: float
    ms_p50: float | None
    ms_p95: float | None
    against: Mapping[str, float] | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What distinguishes it from the others."""
        return self.index, self.strategy, self.k

    @property
    def cost(self) -> tuple[float, float, float]:
        """Sorts by tokens, then by milliseconds, then highest value first."""
        return self.tokens, self.ms_p50 or 0.0, -self.value


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate, and the recommended one.

    Attributes:
        measure, tools: the measure that decides, and the size of the sample.
        candidates, allowed: the number of candidates, and of those within the limits.
        best: None if no candidate is within the limits.
        recommended: the cheapest of those that are not significantly worse than the best.
        near: all of those, cheapest first.
    """

    measure: str
    tools: int
    candidates: int
    allowed: int
    best: Candidate | None = None
    recommended: Candidate | None = None
    near: tuple[Candidate, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """The difference of the largest sample from the smallest, for the same queries."""

    index: str
    strategy: str
    k: int
    measure: str
    smallest: int
    largest: int
    value: float
    low: float
    high: float
    n: int


def choose(results: Results, settings: SweepSettings) -> Choice:
    """Return the best and the recommended candidate by the first measure in the largest sample."""
    import polars as pl

    measure = settings.measures[0]
    rows = over_seeds(results).filter(pl.col("measure") == measure)
    largest: int = rows.get_column("tools").max()  # pyright: ignore[reportAssignmentType]
    rows = rows.filter(pl.col("tools") == largest).select(COLUMNS).to_dicts()
    candidates = [Candidate(**row) for row in rows]
    allowed = [candidate for candidate in candidates if _within_limits(candidate, settings)]
    if not allowed:
        return Choice(measure, largest, len(candidates), 0)
    best = min(allowed, key=lambda candidate: (-candidate.value, *candidate.cost))
    others = [candidate for candidate in allowed if candidate != best]
    near = _not_worse(others, best, _values_by_candidate(results, measure, largest))
    return Choice(
        measure=measure,
        tools=largest,
        candidates=len(candidates),
        allowed=len(allowed),
        best=best,
        recommended=min([best, *near], key=lambda candidate: candidate.cost),
        near=tuple(sorted(near, key=lambda candidate: candidate.cost)),
    )


def _within_limits(candidate: Candidate, settings: SweepSettings) -> bool:
    if settings.max_tokens is not None and candidate.tokens > settings.max_tokens:
        return False
    if settings.max_ms is None:
        return True
    return candidate.ms_p95 is not None and candidate.ms_p95 <= settings.max_ms


def _values_by_candidate(
    results: Results, measure: str, tools: int
) -> "dict[tuple[str, str, int], NDArray[np.float64]]":
    """For each candidate its value for each query, in the order of the golden file."""
    import polars as pl

    columns = ["index", "strategy", "k"]
    is_point = (pl.col("measure") == measure) & (pl.col("tools") == tools)
    groups = _query_means(results.values.filter(is_point), columns).group_by(
        columns, maintain_order=True
    )
    return {
        (str(index), str(strategy), int(k)): group.get_column("value").to_numpy()  # pyright: ignore[reportArgumentType]
        for (index, strategy, k), group in groups
    }


def _query_means(values: "pl.DataFrame", columns: list[str]) -> "pl.DataFrame":
    """The mean of each query over the seeds, in the order of the golden file."""
    import polars as pl

    by = [*columns, "place"]
    return values.group_by(by).agg(pl.col("value").mean()).sort(by)


def _not_worse(
    others: list[Candidate],
    best: Candidate,
    values: "Mapping[tuple[str, str, int], NDArray[np.float64]]",
) -> list[Candidate]:
    """The candidates that are not significantly worse than the best, with their differences."""
    p_values: dict[str, float] = {}
    differences: dict[str, Difference] = {}
    for place, candidate in enumerate(others):
        p = _normal_p(values[candidate.key], values[best.key])
        if p >= SMALL_P:
            differences[str(place)] = compare(values[candidate.key], values[best.key])
            p = differences[str(place)].p
        p_values[str(place)] = p
    near: list[Candidate] = []
    for place, p_holm in holm(p_values).items():
        if p_holm < SIGNIFICANT:
            continue
        candidate = others[int(place)]
        gap = differences.get(place) or compare(values[candidate.key], values[best.key])
        against = {name: value for name, value in gap.to_dict().items() if name != "n"}
        near.append(replace(candidate, against={**against, "p_holm": p_holm}))
    return near


def _normal_p(ours: "NDArray[np.float64]", theirs: "NDArray[np.float64]") -> float:
    """p of the paired randomisation test by the normal distribution that its swaps tend to.

    It errs where few queries differ, but then it is not below SMALL_P: with m equal differences the
    exact p is 2 / 2**m and this one erfc(sqrt(m / 2)). They meet near SMALL_P, at m = 11 with
    .00098 and .00091; from there on this one is the higher."""
    gaps = ours - theirs
    spread = float((gaps**2).sum())
    return math.erfc(abs(float(gaps.sum())) / math.sqrt(2 * spread)) if spread > 0 else 1.0


def size_effects(results: Results, settings: SweepSettings, k: int) -> list[SizeEffect]:
    """Return how far each index and strategy falls from the smallest to the largest sample.

    Only the queries of the smallest sample count, so that nothing but the size differs.
    """
    import polars as pl

    measure = settings.measures[0]
    sizes: list[int] = sorted(results.rows.get_column("tools").unique().to_list())
    if len(sizes) < 2:
        return []
    values = results.values.filter((pl.col("measure") == measure) & (pl.col("k") == k))
    columns = ["index", "strategy"]
    small, large = (
        _query_means(values.filter(pl.col("tools") == size), columns)
        for size in (sizes[0], sizes[-1])
    )
    pairs = small.join(large, on=[*columns, "place"], suffix="_large").sort(*columns, "place")
    effects: list[SizeEffect] = []
    for (index, strategy), group in pairs.group_by(columns, maintain_order=True):
        gap = compare(
            group.get_column("value_large").to_numpy(), group.get_column("value").to_numpy()
        )
        effects.append(
            SizeEffect(
                index=str(index),
                strategy=str(strategy),
                k=k,
                measure=measure,
                smallest=sizes[0],
                largest=sizes[-1],
                value=gap.value,
                low=gap.low,
                high=gap.high,
                n=gap.n,
            )
        )
    return effects
