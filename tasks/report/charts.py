"""The charts of a report, as Vega-Lite specifications made with Altair from the report's values.

A colour such as `--accent` names a property of the page's style sheet, so that charts follow its
light and its dark scheme. The points of the map are not in its specification: the page adds those
that are visible."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

MAP_COLOURS = 10
"""Colours of agents, used in turn: people tell about as many apart."""
LABELLED = (1, 3, 5, 10, 20)
"""The k whose points on the curve have a label."""
ROW = 30
"""Pixels of a system."""


def charts(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the specifications by the id of their element; none for a chart without data."""
    specifications: dict[str, dict[str, Any]] = {}
    for name, make in CHARTS.items():
        if (chart := make(data)) is not None:
            specifications[name] = chart.to_dict()
            specifications[name].pop("config", None)  # the page has its own
    return specifications


def system_label(row: Mapping[str, Any]) -> str:
    """Return what a system is called: its strategy and its index."""
    return f"{row['strategy']} · {row['index']}"


def _measures(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Every system by the measure that is selected on the page, with its interval."""
    import altair as alt

    rows: Sequence[Mapping[str, Any]] = data["measures"]["rows"]
    if not rows:
        return None
    chosen: Mapping[str, Any] = data["gate"].get("chosen") or {}
    values = [_row(row, _role(row, chosen)) for row in rows]
    live = data["release"]["id"] != data["gate"].get("live") and data["measures"]["live"]
    values += [_row(row, "live") | {"system": f"live: {system_label(row)}"} for row in live or ()]
    measure = alt.param(name="measure", value=chosen.get("measure") or rows[0]["measure"])
    base = alt.Chart(alt.Data(values=values)).transform_filter("datum.measure === measure")
    y = alt.Y(
        "system:N", title=None, sort=alt.EncodingSortField("value", op="max", order="descending")
    )
    colour = alt.Color(
        "role:N",
        legend=None,
        scale=alt.Scale(
            domain=["chosen", "other", "live"], range=["--accent", "--ink-soft", "--warm"]
        ),
    )
    x = alt.X(
        "low:Q", title=None, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5)
    )
    tooltips = _tooltips(
        ("system:N", "configuration", ""),
        ("measure:N", "measure", ""),
        ("value:Q", "mean", ".3f"),
        ("low:Q", "95 % from", ".3f"),
        ("high:Q", "95 % to", ".3f"),
        ("n:Q", "queries", ""),
    )
    bars = base.mark_rule(strokeWidth=3, opacity=0.45).encode(x=x, x2="high:Q", y=y, color=colour)
    points = base.mark_circle(size=90, opacity=1).encode(
        x="value:Q", y=y, color=colour, tooltip=tooltips
    )
    wide = base.mark_rule(strokeWidth=18, opacity=0).encode(
        x="low:Q", x2="high:Q", y=y, tooltip=tooltips
    )
    systems = len({row["system"] for row in values})
    return (
        alt.layer(bars, points, wide)
        .add_params(measure)
        .properties(width="container", height=ROW * systems)
    )


def _role(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    return (
        "chosen"
        if (row["strategy"], row["index"]) == (chosen.get("strategy"), chosen.get("index"))
        else "other"
    )


def _row(row: Mapping[str, Any], role: str) -> dict[str, Any]:
    values = {name: row[name] for name in ("measure", "value", "low", "high", "n")}
    return {"system": system_label(row), "role": role, **values}


def _tooltips(*fields: tuple[str, str, str]) -> "list[alt.Tooltip]":
    """Tooltips of (field, title, format); an empty format leaves values as they are."""
    import altair as alt

    return [
        alt.Tooltip(field, title=title, format=style) if style else alt.Tooltip(field, title=title)
        for field, title, style in fields
    ]


def _curve(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Recall over the prompt tokens of the first k tools."""
    import altair as alt

    rows: Sequence[Mapping[str, Any]] = data["curve"]
    if not rows:
        return None
    values = [
        {name: row[name] for name in ("k", "value", "low", "high", "tokens", "n")}
        | {"system": system_label(row)}
        for row in rows
    ]
    base = alt.Chart(alt.Data(values=values))
    x = alt.X(
        "tokens:Q", title="tokens in the prompt, about", axis=alt.Axis(tickCount=5, format="~s")
    )
    scale = alt.Scale(zero=False, nice=True)
    detail = alt.Detail("system:N")
    tooltips = _tooltips(
        ("k:Q", "tools", ""),
        ("value:Q", "Recall", ".3f"),
        ("low:Q", "95 % from", ".3f"),
        ("high:Q", "95 % to", ".3f"),
        ("tokens:Q", "tokens", ",.0f"),
        ("system:N", "configuration", ""),
    )
    band = base.mark_area(opacity=0.15, color="--accent").encode(
        x=x, y=alt.Y("low:Q", title="Recall", scale=scale), y2="high:Q", detail=detail
    )
    line = base.mark_line(color="--accent", strokeWidth=2).encode(x=x, y="value:Q", detail=detail)
    points = base.mark_circle(size=45, color="--accent", opacity=1).encode(
        x=x, y="value:Q", tooltip=tooltips
    )
    labels = (
        base.transform_filter(alt.FieldOneOfPredicate("k", list(LABELLED)))
        .transform_calculate(label="'k = ' + datum.k")
        .mark_text(dy=14, dx=4, align="left", color="--ink-soft")
        .encode(x=x, y="value:Q", text="label:N")
    )
    return alt.layer(band, line, points, labels).properties(width="container", height=280)


def _history(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """The measure of the gate by release, oldest first; None for fewer than two releases."""
    import altair as alt

    measure = (data["gate"].get("chosen") or {}).get("measure")
    rows = [
        row
        for row in data["history"]["shown"]
        if row["measure"] == measure and row["value"] is not None
    ]
    if measure is None or len(rows) < 2:
        return None
    names = ("release", "created_at", "value", "low", "high", "strategy", "index")
    values = [
        {name: row[name] for name in names} | {"gate": "passed" if row["passed"] else "held"}
        for row in reversed(rows)
    ]
    base = alt.Chart(alt.Data(values=values))
    x = alt.X(
        "release:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelAngle=-40, labelLimit=90, labelOverlap=True),
    )
    colour = alt.Color(
        "gate:N", legend=None, scale=alt.Scale(domain=["passed", "held"], range=["--good", "--bad"])
    )
    bars = base.mark_rule(strokeWidth=3, opacity=0.4).encode(
        x=x, y=alt.Y("low:Q", title=measure, scale=alt.Scale(zero=False)), y2="high:Q", color=colour
    )
    line = base.mark_line(color="--ink-faint", strokeWidth=1).encode(x=x, y="value:Q")
    tooltips = _tooltips(
        ("release:N", "release", ""),
        ("created_at:N", "made", ""),
        ("gate:N", "gate", ""),
        ("value:Q", measure, ".3f"),
        ("strategy:N", "strategy", ""),
        ("index:N", "index", ""),
    )
    points = base.mark_circle(size=80, opacity=1).encode(
        x=x, y="value:Q", color=colour, tooltip=tooltips
    )
    return alt.layer(line, bars, points).properties(width="container", height=220)


def _map(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Tools as points, agents as rings; the page fills `faint`, `tools`, `agents` and `picked`."""
    import altair as alt

    if not data["map"].get("tools"):
        return None
    scale = alt.Scale(domain=[-0.02, 1.02], nice=False)
    x, y = (alt.X("x:Q", axis=None, scale=scale), alt.Y("y:Q", axis=None, scale=scale))
    colour = alt.Color(
        "colour:N",
        legend=None,
        scale=alt.Scale(
            domain=list(range(MAP_COLOURS)), range=[f"--map-{at}" for at in range(MAP_COLOURS)]
        ),
    )
    faint = (
        alt.Chart(alt.NamedData("faint"))
        .mark_circle(size=16, color="--map-faint", opacity=1)
        .encode(x=x, y=y)
    )
    tools = (
        alt.Chart(alt.NamedData("tools"))
        .mark_circle(size=34, opacity=0.85)
        .encode(x=x, y=y, color=colour)
    )
    agents = (
        alt.Chart(alt.NamedData("agents"))
        .mark_point(size=150, filled=False, strokeWidth=1.6, opacity=0.9)
        .encode(x=x, y=y, color=colour)
    )
    picked = (
        alt.Chart(alt.NamedData("picked"))
        .mark_point(size=240, filled=False, strokeWidth=2.5, color="--ink", opacity=1)
        .encode(x=x, y=y)
    )
    return alt.layer(faint, tools, agents, picked).properties(width="container", height=460)


CHARTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "chart-measures": _measures,
    "chart-curve": _curve,
    "chart-history": _history,
    "chart-map": _map,
}
"""The charts by the id of their element on the page."""
