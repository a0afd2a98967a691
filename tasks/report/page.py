"""The page of a report: one HTML file that loads nothing, made from the report's values alone.

Everything can be read without JavaScript; the one script filters the list of tools and points at
the map. The page's Content-Security-Policy allows this script and the style sheet by their digests,
and no connection. Catalog text is escaped by Jinja.

The page is bounded: every list of the values is, and at most 5,000 tools are listed and drawn, so
that the page of a release of any size has at most 8 MB, whatever the texts are.

Every number names its place in the JSON (a pointer, RFC 6901), so that a page cannot show another
number than the JSON has, and a program that reads the page finds the exact value."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tasks.report.charts import interval_bar, map_picture

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

FOLDER = Path(__file__).parent
NO_NUMBER = "–"
STYLES = {
    "count": "{:,.0f}",
    "share": "{:.3f}",
    "percent": "{:.3f}",
    "seconds": "{:,.1f}",
    "usd": "{:,.4f}",
}
"""How a number is written. `percent` is a share times 100."""


def report_page(data: Mapping[str, Any]) -> str:
    """Return the HTML page for the values of `report_data`; equal values give an equal page."""
    from markupsafe import Markup

    script, style = _file("page.js"), _file("page.css")
    chosen = data["gate"].get("chosen") or {}
    agents = data["tools"].get("agents") or ()
    numbers = {tool: at for at, tool in enumerate(row["id"] for a in agents for row in a["shown"])}
    drawn = data["map"].get("tools")
    return _template().render(
        data=data,
        n=partial(number, data),
        bar=interval_bar,
        named=partial(_name_and_agent, several=len(agents) > 1),
        numbers=numbers,
        systems=_systems(data["measures"], chosen),
        main=chosen.get("measure"),
        map_picture=map_picture(data["map"], numbers) if drawn else None,
        policy=_policy(script, style),
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - likewise
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


def system_label(row: Mapping[str, Any]) -> str:
    """Return what a system is called: its strategy and its index."""
    return f"{row['strategy']} in {row['index']}"


def _systems(measures: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the measures, and for each system the pointer to its row of each measure.

    The default comes first, then the live release, then the others.
    """
    default = system_label(chosen) if chosen else ""
    systems: dict[tuple[int, str], dict[str, Any]] = {}
    for key in ("rows", "live"):
        for place, row in enumerate(measures[key]):
            label = system_label(row)
            rank = 1 if key == "live" else 0 if label == default else 2
            role = ("default", "live", "")[rank]
            system = systems.setdefault((rank, label), {"label": label, "role": role, "rows": {}})
            system["rows"][row["measure"]] = f"/measures/{key}/{place}"
    names = dict.fromkeys(row["measure"] for row in measures["rows"])
    in_order = sorted(systems.items(), key=lambda item: item[0][0])
    return {"measures": list(names), "rows": [system for _, system in in_order]}


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
