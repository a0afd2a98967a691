"""The cells of a sweep as tables: a row for each cell, measure and k, and the values by query."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.evaluation.intervals import interval
from tasks.sweep.cells import Cell
from tasks.sweep.design import Design, IndexRecipe
from tasks.sweep.files import SweepFolder

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "index", "encoder", "parts", "shape", "questions", "strategy", "tools", "seed", "k", "measure",
    "value", "low", "high", "n", "tokens", "ms_p50", "ms_p95", "without_llm",
)  # fmt: skip
"""Of `sweep.parquet`. `tools` is the size of the sample, `tokens` an estimate; `seed` is null where
the seeds are averaged.
"""
POINT = ["index", "strategy", "tools", "measure", "k"]
"""The columns that rows of different seeds share."""


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


def collect(design: Design) -> Results:
    """Read all cells, and write `sweep.parquet` and `values.parquet`.

    Where several samples of a size were drawn, there are also rows without a seed: every query
    counts once, by its mean over the samples that have its tools.
    """
    import polars as pl

    shapes = {shape.name: shape for shape in design.indexes}
    rows = pl.concat(_rows(cell, shapes) for cell in design.cells)
    values = pl.concat(_values(cell) for cell in design.cells)
    if design.sweep.settings.samples > 1:
        rows = pl.concat([rows, _averaged(rows, values)])
    order = ["index", "strategy", "tools", "seed", "measure", "k"]
    rows = rows.select(COLUMNS).sort(order, nulls_last=False)
    files = SweepFolder(design.sweep.out)
    files.replace("values.parquet", values)
    files.replace("sweep.parquet", rows)
    return Results(rows, values)


def over_seeds(results: Results) -> "pl.DataFrame":
    """Return one row for each index, strategy, size, measure and k: the averaged one if any."""
    rows = results.rows.sort("seed", nulls_last=False)
    return rows.unique(POINT, keep="first", maintain_order=True).sort(POINT)


def _rows(cell: Cell, shapes: Mapping[str, IndexRecipe]) -> "pl.DataFrame":
    import polars as pl

    shape = shapes[cell.index]
    return cell.files.read(cell.rows).with_columns(
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

    return cell.files.read(cell.values).select(
        pl.lit(cell.index).alias("index"),
        pl.lit(cell.strategy["name"]).alias("strategy"),
        pl.lit(cell.size, pl.Int32).alias("tools"),
        pl.lit(cell.seed, pl.Int32).alias("seed"),
        pl.all(),
    )


def _averaged(rows: "pl.DataFrame", values: "pl.DataFrame") -> "pl.DataFrame":
    """The rows over all seeds, where there are several."""
    import polars as pl

    repeated = rows.group_by(POINT).len().filter(pl.col("len") > 1).drop("len")
    if not repeated.height:
        return rows.clear()
    means = (
        values.join(repeated, on=POINT, how="semi")
        .group_by([*POINT, "place"])
        .agg(pl.col("value").mean())
        .sort([*POINT, "place"])
    )
    intervals = [
        dict(zip(POINT, point, strict=True)) | interval(group["value"].to_list()).to_dict()
        for point, group in means.group_by(POINT)
    ]
    schema = {name: rows.schema[name] for name in (*POINT, "value", "low", "high", "n")}
    labels = (
        rows.join(repeated, on=POINT, how="semi")
        .group_by(POINT, maintain_order=True)
        .agg(
            pl.col("encoder", "parts", "shape", "questions", "without_llm").first(),
            pl.col("tokens", "ms_p50", "ms_p95").mean(),
        )
    )
    averaged = labels.join(pl.DataFrame(intervals, schema=schema), on=POINT)
    return averaged.with_columns(seed=pl.lit(None, pl.Int32)).select(rows.columns)
