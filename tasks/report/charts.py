"""The charts of a report, as Vega-Lite specifications made with Altair from the report's values.

A colour such as `--accent` names a property of the page's style sheet, so that charts follow its
light and its dark scheme. The points of the
map are no part of its specification: the page puts those in that are looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

MAP_COLOURS = 10
"""Agents have one of so many colours, in turn: people tell about as many apart."""
LABELLED = (1, 3, 5, 10, 20)
"""The k that are written beside the curve."""
ROW = 30
"""Pixels of a configuration."""


def charts(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The specifications by the id of their place on the page; only those for which there is
    something to show.
    """
    made: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
        "chart-measures": _measures,
        "chart-curve": _curve,
        "chart-history": _history,
        "chart-map": _map,
    }
    found = {name: chart(data) for name, chart in made.items()}
    return {name: _specification(chart) for name, chart in found.items() if chart is not None}


def system_name(row: Mapping[str, Any]) -> str:
    """What a configuration is called: its strategy and its index."""
    return f"{row['strategy']} · {row['index']}"


def _specification(chart: Any) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    specification.pop("config", None)  # the page has its own
    return specification


def _measures(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Every configuration by the measure that the page's list of measures names, with its
    interval.
    """
    import altair as alt

    rows: Sequence[Mapping[str, Any]] = data["measures"]["rows"]
    if not rows:
        return None
    chosen: Mapping[str, Any] = data["gate"].get("chosen") or {}
    values = [_row(row, _role(row, chosen)) for row in rows]
    live = data["release"]["id"] != data["gate"].get("live") and data["measures"]["live"]
    values += [_row(row, "live") | {"system": f"live: {system_name(row)}"} for row in live or ()]
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
    bars = base.mark_rule(strokeWidth=3, opacity=0.45).encode(x=x, x2="high:Q", y=y, color=colour)
    points = base.mark_circle(size=90, opacity=1).encode(
        x="value:Q", y=y, color=colour, tooltip=_tooltip()
    )
    wide = base.mark_rule(strokeWidth=18, opacity=0).encode(
        x="low:Q", x2="high:Q", y=y, tooltip=_tooltip()
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
    kept = {name: row[name] for name in ("measure", "value", "low", "high", "n")}
    return {"system": system_name(row), "role": role, **kept}


def _tooltip() -> "list[alt.Tooltip]":
    import altair as alt

    return [
        alt.Tooltip("system:N", title="configuration"),
        alt.Tooltip("measure:N", title="measure"),
        alt.Tooltip("value:Q", title="mean", format=".3f"),
        alt.Tooltip("low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("high:Q", title="95 % to", format=".3f"),
        alt.Tooltip("n:Q", title="queries"),
    ]


def _curve(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Recall over the tokens that the first k tools take in a prompt."""
    import altair as alt

    rows: Sequence[Mapping[str, Any]] = data["curve"]
    if not rows:
        return None
    values = [
        {name: row[name] for name in ("k", "value", "low", "high", "tokens", "n")}
        | {"system": system_name(row)}
        for row in rows
    ]
    base = alt.Chart(alt.Data(values=values))
    x = alt.X(
        "tokens:Q", title="tokens in the prompt, about", axis=alt.Axis(tickCount=5, format="~s")
    )
    scale = alt.Scale(zero=False, nice=True)
    detail = alt.Detail("system:N")
    band = base.mark_area(opacity=0.15, color="--accent").encode(
        x=x, y=alt.Y("low:Q", title="Recall", scale=scale), y2="high:Q", detail=detail
    )
    line = base.mark_line(color="--accent", strokeWidth=2).encode(x=x, y="value:Q", detail=detail)
    points = base.mark_circle(size=45, color="--accent", opacity=1).encode(
        x=x, y="value:Q", tooltip=_curve_tooltip()
    )
    labels = (
        base.transform_filter(alt.FieldOneOfPredicate("k", list(LABELLED)))
        .transform_calculate(label="'k = ' + datum.k")
        .mark_text(dy=14, dx=4, align="left", color="--ink-soft")
        .encode(x=x, y="value:Q", text="label:N")
    )
    return alt.layer(band, line, points, labels).properties(width="container", height=280)


def _curve_tooltip() -> "list[alt.Tooltip]":
    import altair as alt

    return [
        alt.Tooltip("k:Q", title="tools"),
        alt.Tooltip("value:Q", title="Recall", format=".3f"),
        alt.Tooltip("low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("high:Q", title="95 % to", format=".3f"),
        alt.Tooltip("tokens:Q", title="tokens", format=",.0f"),
        alt.Tooltip("system:N", title="configuration"),
    ]


def _history(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """The measure of the gate, release by release, oldest first; None if there are not two with
    that measure.
    """
    import altair as alt

    measure = (data["gate"].get("chosen") or {}).get("measure")
    past = [
        one
        for one in data["history"]["shown"]
        if one["measure"] == measure and one["value"] is not None
    ]
    if measure is None or len(past) < 2:
        return None
    names = ("release", "created_at", "value", "low", "high", "strategy", "index")
    values = [
        {name: one[name] for name in names} | {"gate": "passed" if one["passed"] else "held"}
        for one in reversed(past)
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
    tooltip = [
        alt.Tooltip("release:N", title="release"),
        alt.Tooltip("created_at:N", title="made"),
        alt.Tooltip("gate:N", title="gate"),
        alt.Tooltip("value:Q", title=measure, format=".3f"),
        alt.Tooltip("strategy:N", title="strategy"),
        alt.Tooltip("index:N", title="index"),
    ]
    points = base.mark_circle(size=80, opacity=1).encode(
        x=x, y="value:Q", color=colour, tooltip=tooltip
    )
    return alt.layer(line, bars, points).properties(width="container", height=220)


def _map(data: Mapping[str, Any]) -> "alt.TopLevelMixin | None":
    """Tools as points, agents as rings. The page fills `faint`, `tools`, `agents` and `picked`, and
    finds what is pointed at itself.
    """
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
