"""The cells of a sweep as tables: a row for each cell, measure and k, and the values query by
query, so that anything can be tested later.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.evaluation.intervals import interval
from tasks.sweep.cells import Cell
from tasks.sweep.design import Design, IndexShape
from tasks.sweep.files import read_frame, write_frame

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "index", "encoder", "parts", "shape", "questions", "strategy", "tools", "seed", "k", "measure",
    "value", "low", "high", "n", "tokens", "ms_p50", "ms_p95", "without_llm",
)  # fmt: skip
"""Of `sweep.parquet`. `tools` is the size of the sample, `tokens` an estimate; `seed` is null where
the seeds are taken together.
"""


@dataclass(frozen=True, slots=True)
class Results:
    """What came of all cells.

    Attributes:
        rows: see COLUMNS; sorted.
        values: index, strategy, tools, seed, place, query, kind, measure, k, value: one row for
            each query.
    """

    rows: "pl.DataFrame"
    values: "pl.DataFrame"


def collect(design: Design) -> Results:
    """Read all cells, and write `sweep.parquet` and `values.parquet`.

    Where several samples of a size were drawn, there are also rows without a seed: every query
    counts once, by its mean over the samples that have its tools.
    """
    import polars as pl

    shapes = {one.name: one for one in design.indexes}
    rows = pl.concat(_rows(cell, shapes[cell.index]) for cell in design.cells)
    values = pl.concat(_values(cell) for cell in design.cells)
    if design.sweep.settings.samples > 1:
        rows = pl.concat([rows, _together(rows, values)])
    rows = rows.select(COLUMNS).sort(
        "index", "strategy", "tools", "seed", "measure", "k", nulls_last=False
    )
    write_frame(design.sweep.out / "values.parquet", values)
    write_frame(design.sweep.out / "sweep.parquet", rows)
    return Results(rows, values)


def of_all_seeds(results: Results) -> "pl.DataFrame":
    """One row for each index, strategy, size, measure and k: the one without a seed, where there is
    one.
    """
    cell = ["index", "strategy", "tools", "measure", "k"]
    return (
        results.rows.sort("seed", nulls_last=False)
        .unique(cell, keep="first", maintain_order=True)
        .sort(cell)
    )


def _rows(cell: Cell, shape: IndexShape) -> "pl.DataFrame":
    import polars as pl

    return read_frame(cell.rows).with_columns(
        index=pl.lit(cell.index),
        encoder=pl.lit(shape.encoder),
        parts=pl.lit(" + ".join(shape.parts)),
        shape=pl.lit(shape.shape),
        questions=pl.lit(shape.questions, pl.Int32),
        strategy=pl.lit(cell.strategy["name"]),
        tools=pl.lit(cell.size, pl.Int32),
        seed=pl.lit(cell.seed, pl.Int32),
    )


def _values(cell: Cell) -> "pl.DataFrame":
    import polars as pl

    return read_frame(cell.values).select(
        pl.lit(cell.index).alias("index"),
        pl.lit(cell.strategy["name"]).alias("strategy"),
        pl.lit(cell.size, pl.Int32).alias("tools"),
        pl.lit(cell.seed, pl.Int32).alias("seed"),
        pl.all(),
    )


def _together(rows: "pl.DataFrame", values: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    cell = ["index", "strategy", "tools", "measure", "k"]
    several = (
        rows.group_by(cell).agg(pl.len().alias("seeds")).filter(pl.col("seeds") > 1).drop("seeds")
    )
    means = (
        values.join(several, on=cell, how="semi")
        .group_by([*cell, "place"])
        .agg(pl.col("value").mean())
        .sort([*cell, "place"])
    )
    bounds = [
        dict(zip(cell, key, strict=True)) | _bounds(group.get_column("value"))
        for key, group in means.group_by(cell)
    ]
    if not bounds:
        return rows.clear()
    costs = ("tokens", "ms_p50", "ms_p95")
    known = rows.join(several, on=cell, how="semi").group_by(cell, maintain_order=True)
    rest = known.agg(
        pl.col("encoder", "parts", "shape", "questions", "without_llm").first(),
        pl.col(costs).mean(),
    )
    schema = {name: rows.schema[name] for name in (*cell, "value", "low", "high", "n")}
    seedless = rest.join(pl.DataFrame(bounds, schema=schema), on=cell).with_columns(
        seed=pl.lit(None, pl.Int32)
    )
    return seedless.select(rows.columns)


def _bounds(values: "Iterable[float]") -> dict[str, float | int]:
    return interval(list(values)).to_dict()
