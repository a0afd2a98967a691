"""The cells of a sweep as tables, and which index, strategy and k are best on the whole catalog
within the limits, and which to choose.

A cheaper candidate is recommended only if it is shown to be no worse than the best by more than a
margin, as the gate compares releases: the lower end of the one-sided 95 % interval of their
difference, by a paired bootstrap over the queries, is not below minus the margin. That a difference
is not significant shows nothing: with few queries or many candidates none is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.intervals import ONE_SIDED, interval, is_no_worse
from tasks.settings.sweep import SweepSettings
from tasks.sweep.cells import Cell, SweepFolder
from tasks.sweep.design import Design

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

COST = ("tokens", "ms_p50", "ms_p95")
COLUMNS = (
    "index", "encoder", "parts", "shape", "questions", "strategy", "tools", "seed", "k", "measure",
    "value", "low", "high", "n", *COST, "without_llm",
)  # fmt: skip
"""Of `sweep.parquet`. `tools` is the size of the sample, `tokens` an estimate."""
ORDER = ["index", "strategy", "tools", "measure", "k"]


@dataclass(frozen=True, slots=True)
class Results:
    """The values of all cells.

    Attributes:
        rows: see COLUMNS; sorted.
        values: index, strategy, tools, seed, place, query, kind, measure, k, value: one row for
            each query.
    """

    rows: "pl.DataFrame"
    values: "pl.DataFrame"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, a strategy and a k, with their mean and their cost.

    Attributes:
        tokens: the mean prompt tokens of its k tools, an estimate.
        ms_p50, ms_p95: milliseconds per request.
        against: the difference from the best, `value` with `low` and `high` of its 90 % interval;
            empty for the best itself.
    """

    index: str
    strategy: str
    k: int
    value: float
    low: float
    high: float
    n: int
    tokens: float
    ms_p50: float
    ms_p95: float
    against: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> tuple[str, str, int]:
        """What distinguishes it from the others."""
        return self.index, self.strategy, self.k

    @property
    def cost(self) -> tuple[float, float, float]:
        """Sorts by tokens, then by milliseconds, then highest value first."""
        return self.tokens, self.ms_p50, -self.value


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
    """

    measure: str
    tools: int
    candidates: int
    allowed: int
    margin: float
    best: Candidate | None = None
    recommended: Candidate | None = None
    near: tuple[Candidate, ...] = ()


def collect(design: Design) -> Results:
    """Read all cells, and write `sweep.parquet` and `values.parquet`."""
    import polars as pl

    rows = pl.concat(_labelled(design, cell, cell.rows, design.indexes) for cell in design.cells)
    values = pl.concat(_labelled(design, cell, cell.values) for cell in design.cells)
    rows = rows.select(COLUMNS).sort(ORDER)
    files = SweepFolder(design.sweep.out)
    for path, frame in (("values.parquet", values), ("sweep.parquet", rows)):
        files.delete(path)
        files.write(path, frame)
    return Results(rows, values)


def _labelled(
    design: Design, cell: Cell, path: str, recipes: Mapping[str, Mapping[str, Any]] | None = None
) -> "pl.DataFrame":
    """A file of a cell with the columns that tell the cells apart."""
    import polars as pl

    recipe = dict(recipes[cell.index]) if recipes else {}
    if recipe:
        recipe |= {"parts": " + ".join(recipe["parts"])}
    labels = {"index": cell.index, "strategy": cell.strategy["name"], **recipe}
    numbers = {"tools": cell.sample.size, "seed": design.sweep.settings.seed}
    return cell.files.read(path).select(
        *(pl.lit(value).alias(name) for name, value in labels.items()),
        *(pl.lit(value, pl.Int32).alias(name) for name, value in numbers.items()),
        pl.all(),
    )


def choose(results: Results, settings: SweepSettings) -> Choice:
    """Return the best and the recommended candidate by the first measure in the largest sample."""
    import polars as pl

    measure = settings.measures[0]
    largest: int = results.rows.get_column("tools").max()  # pyright: ignore[reportAssignmentType]
    is_point = (pl.col("measure") == measure) & (pl.col("tools") == largest)
    columns = ["index", "strategy", "k", "value", "low", "high", "n", *COST]
    rows = results.rows.filter(is_point).sort(ORDER).select(columns)
    candidates = [Candidate(**row) for row in rows.iter_rows(named=True)]
    allowed = [
        candidate
        for candidate in candidates
        if (settings.max_tokens is None or candidate.tokens <= settings.max_tokens)
        and (settings.max_ms is None or candidate.ms_p95 <= settings.max_ms)
    ]
    choice = Choice(measure, largest, len(candidates), len(allowed), settings.margin)
    if not allowed:
        return choice
    best = min(allowed, key=lambda candidate: (-candidate.value, *candidate.cost))
    groups = (
        results.values.filter(is_point)
        .sort("place")
        .partition_by(columns[:3], maintain_order=True, as_dict=True)
    )
    values = {key: group.get_column("value").to_numpy() for key, group in groups.items()}
    compared = [
        replace(one, against=_difference(values[one.key], values[best.key]))
        for one in allowed
        if one != best
    ]
    others = sorted(compared, key=lambda candidate: candidate.cost)
    near = [one for one in others if is_no_worse(one.against["low"], settings.margin)]
    recommended = min([best, *near], key=lambda candidate: candidate.cost)
    return replace(choice, best=best, recommended=recommended, near=tuple(near))


def _difference(ours: "NDArray[np.float64]", best: "NDArray[np.float64]") -> dict[str, Any]:
    """The difference from the best: see `Candidate.against`."""
    gap = interval(ours - best, ONE_SIDED)
    return {"value": gap.value, "low": gap.low, "high": gap.high}
