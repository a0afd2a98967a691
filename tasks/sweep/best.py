"""Which index, strategy and k are best on the whole catalog under the given limits, and which
cheaper ones are not told apart from it.

Every candidate is compared with the best one, query by query: the paired randomisation test of
`pegboard.evaluation.intervals`, and Holm's correction for the number of candidates. Its 9,999 swaps
cannot give a p below 2 / 10,000, which a correction for a few hundred candidates makes
insignificant whatever the difference; so where a difference is plain, p is that of the normal
approximation of the same test."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import Difference, compare, holm
from tasks.settings.sweep import SweepSettings
from tasks.sweep.results import Results, of_all_seeds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNIFICANT = 0.05
PLAIN = 1e-3
"""Below this, p is that of the normal approximation, see `_normal`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate with its value, its interval and its cost.

    Attributes:
        tokens: mean prompt tokens of its k tools, an estimate.
        against: how far it is above the best (so below zero), with p as it is and corrected for all
            candidates; None for the best itself.
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
    def cost(self) -> tuple[float, float, float]:
        """Fewest tokens first, then fewest milliseconds, then the highest value."""
        return self.tokens, self.ms_p50 or 0.0, -self.value


@dataclass(frozen=True, slots=True)
class Best:
    """What is best, and what is recommended.

    Attributes:
        measure, tools: by which measure, and in which sample of the catalog.
        candidates, allowed: how many there are, and how many of them the limits allow.
        best: None if none is allowed.
        recommended: the cheapest of those that are not significantly worse than the best.
        near: all of those, cheapest first.
    """

    measure: str
    tools: int
    candidates: int
    allowed: int
    best: Choice | None = None
    recommended: Choice | None = None
    near: tuple[Choice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fall:
    """How much an index with a strategy is worth less in the largest sample than in the smallest,
    for the same queries.
    """

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


def choose(results: Results, settings: SweepSettings) -> Best:
    """The best candidate by the first measure in the largest sample, within the limits; and the one
    that is recommended.
    """
    import polars as pl

    measure = settings.measures[0]
    rows = of_all_seeds(results).filter(pl.col("measure") == measure)
    largest: int = rows.get_column("tools").max()  # pyright: ignore[reportAssignmentType]
    fields = [name for name in Choice.__dataclass_fields__ if name != "against"]
    all_of_them = [
        Choice(**row) for row in rows.filter(pl.col("tools") == largest).select(fields).to_dicts()
    ]
    allowed = [one for one in all_of_them if _within(one, settings)]
    if not allowed:
        return Best(measure, largest, len(all_of_them), 0)
    best = min(allowed, key=lambda one: (-one.value, *one.cost))
    values = _by_query(results, measure, largest)
    others = [one for one in allowed if one != best]
    ours = values[_name(best)]
    plain = {_name(one): _normal(values[_name(one)], ours) for one in others}
    tested = {name: compare(values[name], ours) for name, p in plain.items() if p >= PLAIN}
    p_values = holm({name: tested[name].p if name in tested else p for name, p in plain.items()})
    near = [
        _against(
            one, tested.get(_name(one)) or compare(values[_name(one)], ours), p_values[_name(one)]
        )
        for one in others
        if p_values[_name(one)] >= SIGNIFICANT
    ]
    near.sort(key=lambda one: one.cost)
    recommended = min([best, *near], key=lambda one: one.cost)
    return Best(measure, largest, len(all_of_them), len(allowed), best, recommended, tuple(near))


def falls(results: Results, settings: SweepSettings, k: int) -> list[Fall]:
    """What size alone does: each index and strategy in the largest sample against the smallest,
    over the queries of the smallest.
    """
    import polars as pl

    measure = settings.measures[0]
    sizes: list[int] = sorted(results.rows.get_column("tools").unique().to_list())
    if len(sizes) < 2:
        return []
    asked = results.values.filter((pl.col("measure") == measure) & (pl.col("k") == k))
    means = asked.group_by("index", "strategy", "tools", "place").agg(pl.col("value").mean())
    few, many = (
        means.filter(pl.col("tools") == size).drop("tools") for size in (sizes[0], sizes[-1])
    )
    both = few.join(many, on=["index", "strategy", "place"], suffix="_all").sort(
        "index", "strategy", "place"
    )
    found: list[Fall] = []
    for (index, strategy), group in both.group_by("index", "strategy", maintain_order=True):
        gap = compare(
            group.get_column("value_all").to_numpy(), group.get_column("value").to_numpy()
        )
        found.append(
            Fall(
                str(index),
                str(strategy),
                k,
                measure,
                sizes[0],
                sizes[-1],
                gap.value,
                gap.low,
                gap.high,
                gap.n,
            )
        )
    return found


def _within(one: Choice, settings: SweepSettings) -> bool:
    dear = settings.max_tokens is not None and one.tokens > settings.max_tokens
    slow = settings.max_ms is not None and (one.ms_p95 is None or one.ms_p95 > settings.max_ms)
    return not dear and not slow


def _by_query(results: Results, measure: str, tools: int) -> "dict[str, NDArray[np.float64]]":
    """For each candidate its value for each query, in the order of the golden file."""
    import polars as pl

    asked = results.values.filter((pl.col("measure") == measure) & (pl.col("tools") == tools))
    means = (
        asked.group_by("index", "strategy", "k", "place")
        .agg(pl.col("value").mean())
        .sort("index", "strategy", "k", "place")
    )
    return {
        f"{index} {strategy} {k}": group.get_column("value").to_numpy()
        for (index, strategy, k), group in means.group_by(
            "index", "strategy", "k", maintain_order=True
        )
    }


def _name(one: Choice) -> str:
    return f"{one.index} {one.strategy} {one.k}"


def _normal(ours: "NDArray[np.float64]", theirs: "NDArray[np.float64]") -> float:
    """p of the paired randomisation test by the normal distribution that its swaps tend to.

    It errs where few queries differ, but then it is not below PLAIN: with m equal differences the
    exact p is 2 / 2**m and this one erfc(sqrt(m / 2)). They meet near PLAIN, at m = 11 with .00098
    and .00091; from there on this one is the higher."""
    gaps = ours - theirs
    spread = float((gaps**2).sum())
    return math.erfc(abs(float(gaps.sum())) / math.sqrt(2 * spread)) if spread > 0 else 1.0


def _against(one: Choice, difference: Difference, p_holm: float) -> Choice:
    said = {
        "value": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p": difference.p,
        "p_holm": p_holm,
    }
    return Choice(
        **{name: getattr(one, name) for name in Choice.__dataclass_fields__ if name != "against"},
        against=said,
    )
