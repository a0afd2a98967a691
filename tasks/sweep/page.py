"""The results of a sweep as tables, and as one HTML page without dependencies."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from pegboard.cli.tables import difference_text, interval_text

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2rem auto; max-width: 70rem;
padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd; }
td { font-variant-numeric: tabular-nums; } figure { margin: 2rem 0; overflow-x: auto; }
.warning { color: #8a4b00; }
"""
CAPTIONS = {
    "over-tools": "Catalog size. Samples are nested; each is measured with the queries whose tools "
    "it has, so the queries differ between sizes.",
    "over-k": "Number of tools returned.",
}
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


def sweep_page(summary: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """Return the HTML page; names of strategies and files are escaped.

    Args:
        pictures: SVG by name.
    """
    title = f"Sweep of release {escape(summary['release'])}"
    parts = [
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>{summary['tools']} tools, {summary['golden']['queries']} golden queries, "
        f"{len(summary['indexes'])} indexes, {len(summary['strategies'])} strategies, "
        f"{summary['cells']['total']} cells. Means with 95 % intervals.</p>",
        *(f"<p>{escape(line)}</p>" for line in summary["says"]),
        *(f"<p class='warning'>{escape(line)}</p>" for line in summary["warnings"]),
        f"<h2>{escape(measure_name(summary))}</h2>{_html_table(*result_table(summary))}",
    ]
    if summary["falls"]:
        caption = f"<p>{escape(size_effect_caption(summary))}.</p>"
        parts.append(f"<h2>Effect of size</h2>{caption}{_html_table(*size_effect_table(summary))}")
    parts.append(f"<h2>Indexes</h2>{_html_table(*_index_table(summary))}")
    parts += [
        f"<figure>{picture}<figcaption>{CAPTIONS[name]}</figcaption></figure>"
        for name, picture in pictures.items()
    ]
    return "\n".join([*parts, "</body></html>\n"])


def measure_name(summary: Mapping[str, Any]) -> str:
    """Return the measure of the result table, such as `Recall@5`."""
    row = summary["table"][0]
    return f"{row['measure']}@{row['k']}"


def result_table(summary: Mapping[str, Any]) -> Table:
    """Return the measure of each index and strategy in every sample, with tokens and latency."""
    sizes: dict[int, int] = {row["tools"]: row["n"] for row in summary["table"]}
    by_system: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
    for row in summary["table"]:
        by_system.setdefault((row["index"], row["strategy"]), {})[row["tools"]] = row
    lines: list[list[str]] = []
    for system, rows in by_system.items():
        largest = rows[max(sizes)]
        ms = "" if largest["ms_p50"] is None else f"{largest['ms_p50']:.0f}"
        intervals = [interval_text(rows[size]) for size in sorted(sizes)]
        lines.append([*system, *intervals, f"{largest['tokens']:.0f}", ms])
    samples = [f"{size} tools, n {sizes[size]}" for size in sorted(sizes)]
    return ["index", "strategy", *samples, "tokens", "ms"], lines


def size_effect_table(summary: Mapping[str, Any]) -> Table:
    """Return the difference of the largest sample from the smallest for the same queries."""
    rows = [[row["index"], row["strategy"], difference_text(row)] for row in summary["falls"]]
    return ["index", "strategy", "difference"], rows


def size_effect_caption(summary: Mapping[str, Any]) -> str:
    """Return what `size_effect_table` compares."""
    first = summary["falls"][0]
    return (
        f"{first['measure']}@{first['k']} among {first['largest']} tools minus among "
        f"{first['smallest']}, for the same {first['n']} queries"
    )


def _index_table(summary: Mapping[str, Any]) -> Table:
    rows = [
        [
            index["name"],
            index["encoder"],
            " + ".join(index["parts"]),
            index["shape"],
            str(index["questions"]),
        ]
        for index in summary["indexes"]
    ]
    return ["index", "encoder", "parts", "shape", "questions"], rows


def _html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in header)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
