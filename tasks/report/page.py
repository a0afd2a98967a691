"""The page of a report: one HTML file without dependencies, made from the report's values alone.

It carries Vega-Lite, the charts and the texts, and may load nothing: its Content-Security-Policy
allows the two scripts it carries, by their digests, and no connection. Vega's expressions are
interpreted, so that no `eval` is needed. Catalog text is escaped by Jinja, or stands in JSON of
which no character can end a script.

Every number names its place in the JSON (a pointer, RFC 6901), so that a page cannot show another
number than the JSON has, and a program that reads the page finds the exact value."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from tasks.report.charts import MAP_COLOURS, charts, system_label

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

BUNDLE_EXPORTS = "window.vegaEmbed = vegaEmbed;"
"""What the bundle of the plotting library defines for the page."""
FOLDER = Path(__file__).parent
UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""Characters that could end a script or a line of one; in JSON they occur in strings only."""
NO_NUMBER = "–"
STYLES = {
    "count": "{:,.0f}",
    "share": "{:.3f}",
    "percent": "{:.3f}",
    "seconds": "{:,.1f}",
    "usd": "{:,.4f}",
}
"""How a number is written. `percent` is a share times 100."""


def report_page(data: Mapping[str, Any], library: str | None = None) -> str:
    """Return the HTML page for the values of `report_data`; equal values give an equal page.

    Args:
        library: what `vega` returns, if it is at hand; made anew if None, which takes 3 s.
    """
    from markupsafe import Markup

    scripts = [library or vega(), _file("page.js")]
    style = _file("page.css")
    values = {"charts": charts(data), "map": data["map"], "colours": MAP_COLOURS}
    chosen = data["gate"].get("chosen") or {}
    return _template().render(
        data=data,
        n=partial(number, data),
        measures=_measure_tables(data["measures"]["rows"], chosen),
        live={"systems": _places(data["measures"]["live"])},
        main=chosen.get("measure"),
        drawn=sorted(values["charts"]),
        policy=_policy(scripts, style),
        style=Markup(style),  # noqa: S704 - a file of this package
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - likewise, and a library
        values=Markup(safe_json(values)),  # noqa: S704 - escaped
    )


def number(data: Mapping[str, Any], pointer: str, style: str = "count") -> "Markup":
    """Return the number at a JSON pointer as HTML with its pointer and style; a dash for None."""
    from markupsafe import Markup

    value = resolve(data, pointer)
    text = NO_NUMBER if value is None else format_number(value, style)
    return Markup('<span class="n" data-json="{}" data-style="{}">{}</span>').format(
        pointer, style, text
    )


def format_number(value: float, style: str) -> str:
    """Return a number as a page writes it in one of `STYLES`."""
    return STYLES[style].format(100 * value if style == "percent" else value)


def resolve(data: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer; None if there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, list):
            data = data[int(key)] if int(key) < len(data) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif isinstance(data, Mapping):
            data = data.get(key)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        else:
            return None
    return data  # pyright: ignore[reportUnknownVariableType]


def safe_json(values: Any) -> str:
    """Return JSON that may stand in a <script> element."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).translate(UNSAFE)


@cache
def vega() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script that defines `vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle(BUNDLE_EXPORTS).replace("</script", "<\\/script")


def vega_digest() -> str:
    """Return a digest that is equal where `vega` returns the same script."""
    return digest(version("vl-convert-python"), BUNDLE_EXPORTS)


def _measure_tables(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The measures, and a table of the default system and one of the others."""
    places = _places(rows)
    default = system_label(chosen) if chosen else ""
    return {
        "measures": list(dict.fromkeys(row["measure"] for row in rows)),
        "count": len(places),
        "default": {"systems": {name: places[name] for name in places if name == default}},
        "others": {"systems": {name: places[name] for name in places if name != default}},
    }


def _places(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """For each system the places of its rows among all, by measure."""
    places: dict[str, dict[str, int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(system_label(row), {})[row["measure"]] = place
    return places


def _policy(scripts: list[str], style: str) -> str:
    allowed = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_sha256(style)}'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


@cache
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["named"] = _name_and_agent
    return environment.get_template("page.html.jinja")


def _name_and_agent(tool: str) -> tuple[str, str]:
    agent, _, name = tool.rpartition("/")
    return name, agent


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
