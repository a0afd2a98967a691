"""The results as one page that needs nothing beside it: the choice, the table, the pictures."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; } figure { margin: 2rem 0; overflow-x: auto; }
.warning { color: #8a4b00; }
"""
CAPTIONS = {
    "over-tools": "What the size of the catalog does. Samples are nested; each is asked the "
    "queries whose tools it has, so the queries differ between sizes.",
    "over-k": "What the number of tools that are given does.",
}


def page(summary: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The page as HTML. Names of strategies and files are shown as text, whatever they hold."""
    title = f"Sweep of release {escape(summary['release'])}"
    golden = summary["golden"]
    parts = [
        f"<!doctype html>\n<html lang='en'><head><meta "
        f"charset='utf-8'><title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>{summary['tools']} tools, {golden['queries']} golden queries, "
        f"{len(summary['indexes'])} indexes, {len(summary['strategies'])} strategies, "
        f"{summary['cells']['total']} cells. Means with 95 % intervals.</p>",
        *(f"<p>{escape(line)}</p>" for line in summary["says"]),
        *(f"<p class='warning'>{escape(line)}</p>" for line in summary["warnings"]),
        _values(summary),
        _falls(summary),
        _indexes(summary),
        *(
            f"<figure>{picture}<figcaption>{CAPTIONS[name]}</figcaption></figure>"
            for name, picture in pictures.items()
        ),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _values(summary: Mapping[str, Any]) -> str:
    rows = summary["table"]
    sizes = sorted({row["tools"] for row in rows})
    systems = list(dict.fromkeys((row["index"], row["strategy"]) for row in rows))
    found = {(row["index"], row["strategy"], row["tools"]): row for row in rows}
    counts = {row["tools"]: row["n"] for row in rows}
    head = [
        "index",
        "strategy",
        *(f"{size} tools ({counts[size]} queries)" for size in sizes),
        "tokens",
        "ms",
    ]
    body = [
        [
            index,
            strategy,
            *(_interval(found[index, strategy, size]) for size in sizes),
            *_costs(found[index, strategy, sizes[-1]]),
        ]
        for index, strategy in systems
    ]
    name = f"{rows[0]['measure']}@{rows[0]['k']}"
    return f"<h2>{escape(name)}</h2>{_html_table(head, body)}"


def _falls(summary: Mapping[str, Any]) -> str:
    falls = summary["falls"]
    if not falls:
        return ""
    first = falls[0]
    said = (
        f"{first['measure']}@{first['k']} among {first['largest']} tools less that among "
        f"{first['smallest']}, for the same {first['n']} queries"
    )
    body = [
        [
            one["index"],
            one["strategy"],
            f"{one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]",
        ]
        for one in falls
    ]
    return (
        f"<h2>What size alone "
        f"does</h2><p>{escape(said)}.</p>{_html_table(['index', 'strategy', 'difference'], body)}"
    )


def _indexes(summary: Mapping[str, Any]) -> str:
    head = ["index", "encoder", "parts", "shape", "questions"]
    body = [
        [one["name"], one["encoder"], " + ".join(one["parts"]), one["shape"], str(one["questions"])]
        for one in summary["indexes"]
    ]
    return f"<h2>Indexes</h2>{_html_table(head, body)}"


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def _costs(row: Mapping[str, Any]) -> list[str]:
    return [f"{row['tokens']:.0f}", "" if row["ms_p50"] is None else f"{row['ms_p50']:.0f}"]


def _html_table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    titles = "".join(f"<th>{escape(one)}</th>" for one in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in row)}</tr>" for row in body)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"
