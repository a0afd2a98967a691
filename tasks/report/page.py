"""The page of a report: one HTML file that needs nothing else, made from the report's values and
nothing beside them.

It holds Vega-Lite, the charts and the texts, and may not load anything: its Content-Security-Policy
allows the two scripts that it carries, by their digests, and no connection. Vega's expressions are
interpreted, not compiled, so that no `eval` is needed. Catalog text is escaped by Jinja or stands
in JSON of which no character can end a script."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from tasks.report.charts import MAP_COLOURS, charts, system_name
from tasks.report.figures import figure

if TYPE_CHECKING:
    from jinja2 import Template

OFFERED = "window.vegaEmbed = vegaEmbed;"
"""What the bundle of the plotting library leaves to the page."""
FOLDER = Path(__file__).parent
UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""Characters that could end a script or a line of one; in JSON they stand within strings only."""


def safe_json(values: Any) -> str:
    """JSON that may stand in a <script> element."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).translate(UNSAFE)


def page(data: Mapping[str, Any], library: str | None = None) -> str:
    """The whole page for the values that `report_data` gathers; equal values give an equal page.

    Args:
        library: what `vega` returns, from wherever it is known; made anew if None, which takes 3 s.
    """
    from markupsafe import Markup

    scripts = [library or vega(), _file("page.js")]
    style = _file("page.css")
    values = {"charts": charts(data), "map": data["map"], "colours": MAP_COLOURS}
    return _template().render(
        data=data,
        n=partial(figure, data),
        measures=_tables(data["measures"]["rows"], data["gate"].get("chosen") or {}),
        live=_table(data["measures"]["live"]),
        main=(data["gate"].get("chosen") or {}).get("measure"),
        drawn=sorted(values["charts"]),
        policy=_policy(scripts, style),
        style=Markup(style),  # noqa: S704 - a file of this package
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - likewise, and a library
        values=Markup(safe_json(values)),  # noqa: S704 - escaped
    )


@cache
def vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which defines `vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle(OFFERED).replace("</script", "<\\/script")


def vega_digest() -> str:
    """What `vega` would return, known beforehand."""
    return digest(version("vl-convert-python"), OFFERED)


def _tables(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The measures, and a table of the default configuration and one of the others."""
    systems = _table(rows)["systems"]
    default = system_name(chosen) if chosen else ""
    return {
        "measures": list(dict.fromkeys(row["measure"] for row in rows)),
        "count": len(systems),
        "default": {
            "systems": {name: places for name, places in systems.items() if name == default}
        },
        "others": {
            "systems": {name: places for name, places in systems.items() if name != default}
        },
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For each configuration the places of its rows among all, by measure."""
    systems: dict[str, dict[str, int]] = {}
    for at, row in enumerate(rows):
        systems.setdefault(system_name(row), {})[row["measure"]] = at
    return {"systems": systems}


def _policy(scripts: list[str], style: str) -> str:
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_digest(style)}'; img-src "
        f"data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
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
    environment.filters["named"] = _named
    return environment.get_template("page.html.jinja")


def _named(tool: str) -> tuple[str, str]:
    """A tool's id as its name and its agent."""
    agent, _, name = tool.rpartition("/")
    return name, agent


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
