"""The page of a report: one HTML file that loads nothing, made from the report's values alone.

Everything can be read without JavaScript; the one script filters the list of tools. The page's
Content-Security-Policy allows this script and the style sheet by their digests, and no connection.
Catalog text is escaped by Jinja.

The page is bounded: every list of the values is, and at most 5,000 tools are listed, so that the
page of a release of any size has at most 8 MB, whatever the texts are."""

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
STYLES = {"count": "{:,.0f}", "share": "{:.3f}", "seconds": "{:,.1f}", "usd": "{:,.4f}"}
"""How a number is written."""


def report_page(data: Mapping[str, Any]) -> str:
    """Return the HTML page for the values of `report_data`; equal values give an equal page."""
    from markupsafe import Markup

    script, style = _file("page.js"), _file("page.css")
    chosen = data["gate"].get("chosen") or {}
    agents = data["tools"].get("agents") or ()
    return _template().render(
        data=data,
        n=number,
        named=partial(_name_and_agent, several=len(agents) > 1),
        systems=_systems(data["measures"]),
        main=chosen.get("measure"),
        policy=_policy(script, style),
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - likewise
    )


def number(value: float | None, style: str = "count") -> "Markup":
    """Return a number as HTML in one of `STYLES`; a dash for None."""
    from markupsafe import Markup

    text = NO_NUMBER if value is None else STYLES[style].format(value)
    return Markup('<span class="n">{}</span>').format(text)


def _systems(measures: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the measures; and of the default and of the live release, as far as they were
    measured, the strategy and index with the row of each measure.
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


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src 'sha256-{_sha256(script)}'; "
        f"style-src 'sha256-{_sha256(style)}'; base-uri 'none'; form-action 'none'"
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
    return environment.get_template("page.html.jinja")


def _name_and_agent(tool: str, *, several: bool) -> tuple[str, str]:
    """A tool's name, and its agent where a release has several, as people write them."""
    agent, _, name = tool.rpartition("/")
    return unquote(name), unquote(agent.rpartition("/")[2]) if several else ""


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
