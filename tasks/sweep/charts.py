"""The effect of the catalog's size, and of k, as SVG pictures (figures 4 and 5 of Toolshed).

One panel for each strategy, one colour for each index; bands are 95 % intervals. Drawn without a
browser and without the network."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.sweep.results import Results, over_seeds

if TYPE_CHECKING:
    import polars as pl

MAX_ROWS = 3
"""Rows of panels: values of k, or sizes."""
USUAL_K = (1, 5, 10, 3, 20, 2)
WIDTH, HEIGHT = 260, 170
DIGITS = 4


@dataclass(frozen=True, slots=True)
class _Style:
    """What all panels share: the measure, and the order of colours and columns."""

    measure: str
    indexes: tuple[str, ...]
    strategies: tuple[str, ...]


def draw(
    results: Results, measure: str, indexes: Iterable[str], strategies: Iterable[str]
) -> dict[str, str]:
    """Return SVG by name: `over-tools` for several sizes, and `over-k` for several k.

    Args:
        indexes, strategies: their names, in the order of the legend and of the panels.
    """
    import polars as pl

    style = _Style(measure, tuple(indexes), tuple(strategies))
    rows = over_seeds(results).filter(pl.col("measure") == measure)
    sizes: list[int] = sorted(rows.get_column("tools").unique().to_list())
    ks: list[int] = sorted(rows.get_column("k").unique().to_list())
    pictures: dict[str, str] = {}
    if len(sizes) > 1:
        some = sorted([k for k in USUAL_K if k in ks][:MAX_ROWS]) or _spread(ks)
        shown = rows.filter(pl.col("k").is_in(some)).with_columns(row=pl.format("k = {}", "k"))
        x = _axis("tools", "tools in the catalog", sizes, "log")
        pictures["over-tools"] = _chart(shown, style, x, [f"k = {k}" for k in some])
    if len(ks) > 1:
        some = _spread(sizes)
        shown = rows.filter(pl.col("tools").is_in(some))
        shown = shown.with_columns(row=pl.format("{} tools", "tools"))
        x = _axis("k", "k", None, "linear")
        pictures["over-k"] = _chart(shown, style, x, [f"{size} tools" for size in some])
    return pictures


def _spread(values: Sequence[int]) -> list[int]:
    """The first, the last and one in the middle."""
    return sorted({values[0], values[len(values) // 2], values[-1]})


def _axis(field: str, title: str, ticks: Sequence[int] | None, scale: Any) -> Any:
    import altair as alt

    axis = alt.Axis(values=list(ticks), labelOverlap="greedy") if ticks else alt.Axis(tickMinStep=1)
    return alt.X(
        f"{field}:Q", title=title, axis=axis, scale=alt.Scale(type=scale, zero=False, nice=False)
    )


def _chart(rows: "pl.DataFrame", style: _Style, x: Any, order: Sequence[str]) -> str:
    import altair as alt
    import polars as pl
    import vl_convert

    fields = ["index", "strategy", "tools", "k", "row", "value", "low", "high"]
    rounded = rows.select(fields).with_columns(pl.col("value", "low", "high").round(DIGITS))
    data = alt.Data(values=rounded.to_dicts())
    lowest = max(0.0, float(rows.get_column("low").to_numpy().min()) - 0.02)
    scale = alt.Scale(domain=[round(lowest, 2), 1], nice=False, zero=False)
    axis = alt.Axis(format=".0%", title=style.measure)
    colour = alt.Color(
        "index:N",
        title="index",
        scale=alt.Scale(
            domain=list(style.indexes),
            scheme="category10" if len(style.indexes) <= 10 else "category20",
        ),
        legend=alt.Legend(
            orient="bottom",
            columns=3,
            symbolOpacity=1,
            symbolType="stroke",
            symbolStrokeWidth=3,
            labelLimit=300,
        ),
    )
    base = alt.Chart(data).encode(x=x, color=colour)
    band = base.mark_area(opacity=0.12).encode(
        y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=1.6).encode(y=alt.Y("value:Q", scale=scale, axis=axis))
    chart = (
        alt.layer(band, line)
        .properties(width=WIDTH, height=HEIGHT)
        .facet(
            row=alt.Row("row:N", title=None, sort=list(order)),
            column=alt.Column("strategy:N", title=None, sort=list(style.strategies)),
        )
        .configure_view(stroke="#ccc")
    )
    return vl_convert.vegalite_to_svg(chart.to_json(validate=False), vl_version="6.1")
