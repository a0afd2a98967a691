"""The page of a report: one HTML file without external resources, made from the report's values.

It has no script. Its Content-Security-Policy allows only its style sheet, by digest. Jinja escapes
catalog text. All lists of the values are bounded, so the size of the page is, too."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

FOLDER = Path(__file__).parent
NO_NUMBER = "–"
"""Text in place of an unknown number."""
STYLES = {"count": "{:,.0f}", "share": "{:.3f}", "seconds": "{:,.1f}", "usd": "{:,.4f}"}
"""Format strings for numbers, by name."""


def report_page(data: Mapping[str, Any]) -> str:
    """Return the HTML page for the values of `report_data`; equal values give an equal page."""
    from markupsafe import Markup

    style = (FOLDER / "page.css").read_text("utf-8")
    chosen = data["gate"].get("chosen") or {}
    return _template().render(
        data=data,
        n=number,
        named=partial(_name_and_agent, several=data["counts"].get("agents", 0) > 1),
        systems=_systems(data["measures"]),
        main=chosen.get("measure"),
        policy=_policy(style),
        style=Markup(style),  # noqa: S704 - a file of this package
    )


def number(value: float | None, style: str = "count") -> "Markup":
    """Return a number as HTML in one of `STYLES`; a dash for None."""
    from markupsafe import Markup

    text = NO_NUMBER if value is None else STYLES[style].format(value)
    return Markup('<span class="n">{}</span>').format(text)


def _systems(measures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of the measures, and for the new and the live release, if they were
    measured, the default strategy and index with the row of each measure.
    """
    systems = [
        {
            "label": f"{rows[0]['strategy']} in {rows[0]['index']}",
            "role": role,
            "rows": {row["measure"]: row for row in rows},
        }
        for role, rows in (("default", measures["rows"]), ("live", measures["live"]))
        if rows
    ]
    return {"measures": [row["measure"] for row in measures["rows"]], "rows": systems}


def _policy(style: str) -> str:
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


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
    return environment.get_template("page.html.jinja")


def _name_and_agent(tool: str, *, several: bool) -> tuple[str, str]:
    """Return a tool's name, and its agent's name if the release has several, without escapes."""
    agent, _, name = tool.rpartition("/")
    return unquote(name), unquote(agent.rpartition("/")[2]) if several else ""
