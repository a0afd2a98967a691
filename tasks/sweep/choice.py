"""Which index, strategy and k are best on the whole catalog within the limits, and which to choose.

A cheaper candidate is recommended only if it is shown to be no worse than the best by more than a
margin, as the gate compares releases: the lower end of the one-sided 95 % interval of their
difference, by a paired bootstrap over the queries, is not below minus the margin. That a difference
is not significant shows nothing: with few queries or many candidates none is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import (
    ONE_SIDED,
    compare,
    interval,
    is_no_worse,
    queries_needed,
)
from tasks.settings.sweep import SweepSettings
from tasks.sweep.results import Results, over_seeds

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

COLUMNS = ("index", "strategy", "k", "value", "low", "high", "n", "tokens", "ms_p50", "ms_p95")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, a strategy and a k, with their mean and their cost.

    Attributes:
        tokens: the mean prompt tokens of its k tools, an estimate.
        ms_p50, ms_p95: milliseconds per request; None if no request was timed.
        against: the difference from the best, `value` with `low` and `high` of its 90 % interval,
            and `queries`, how many would show that it is within the margin, or None where it is
            not; None for the best itself.
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
    against: Mapping[str, Any] | None = None

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
        margin: by how much a cheaper candidate may be worse than the best.
        best: None if no candidate is within the limits.
        recommended: the cheapest of those that are shown to be within the margin of the best.
        near: all of those, cheapest first.
        undecided: the cheapest that costs less than the recommended one and is within the margin
            by its mean, which too few queries show.
    """

    measure: str
    tools: int
    candidates: int
    allowed: int
    margin: float
    best: Candidate | None = None
    recommended: Candidate | None = None
    near: tuple[Candidate, ...] = ()
    undecided: Candidate | None = None

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
        return Choice(measure, largest, len(candidates), 0, settings.margin)
    best = min(allowed, key=lambda candidate: (-candidate.value, *candidate.cost))
    values = _values_by_candidate(results, measure, largest)
    others = sorted(
        (
            _compared(candidate, best, values, settings.margin)
            for candidate in allowed
            if candidate != best
        ),
        key=lambda candidate: candidate.cost,
    )
    near = [
        candidate
        for candidate in others
        if candidate.against and is_no_worse(candidate.against["low"], settings.margin)
    ]
    recommended = min([best, *near], key=lambda candidate: candidate.cost)
    undecided = [
        candidate
        for candidate in others
        if candidate.against and candidate.against["queries"] and candidate.cost < recommended.cost
    ]
    return Choice(
        measure=measure,
        tools=largest,
        candidates=len(candidates),
        allowed=len(allowed),
        margin=settings.margin,
        best=best,
        recommended=recommended,
        near=tuple(near),
        undecided=undecided[0] if undecided else None,
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


def _compared(
    candidate: Candidate,
    best: Candidate,
    values: "Mapping[tuple[str, str, int], NDArray[np.float64]]",
    margin: float,
) -> Candidate:
    """The candidate with its difference from the best."""
    gaps = values[candidate.key] - values[best.key]
    gap, spread = interval(gaps, ONE_SIDED), float(gaps.std(ddof=1)) if gaps.size > 1 else 0.0
    queries = queries_needed(spread, margin + gap.value)
    against = {"value": gap.value, "low": gap.low, "high": gap.high, "queries": queries}
    return replace(candidate, against=against)


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
