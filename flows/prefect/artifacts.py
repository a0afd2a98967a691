"""The artifacts of a flow run: tables of its sources, changes, measures and cost, a link to the
report, and what the command would print. Their keys end with the board's, so that the UI shows the
history of each board.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)
from prefect.exceptions import PrefectException

from flows.cli.printing import outcome_line, run_lines
from flows.prefect.names import board_key
from pegboard.formatting import plain
from pegboard.records import NOTICES
from tasks.report.data import left_out

MAX_ROWS = 200
"""Rows of a table; the report and `--json` have all."""
Row = dict[str, Any]
logger = logging.getLogger(__name__)


def show_build(outcome: dict[str, Any]) -> None:
    """Show a build in the log of its run and as artifacts."""
    key = board_key(outcome["board"])
    title = plain(outcome_line(outcome))
    show_lines(f"build-{key}", run_lines(outcome), title)
    show_table(f"sources-{key}", source_rows(outcome), "What each source listed.")
    show_table(f"notices-{key}", left_out_rows(outcome), "What is not listed as written.")
    show_table(f"changes-{key}", change_rows(outcome), "Tools that differ from the live release.")
    show_table(f"measures-{key}", measure_rows(outcome), "What the gate measured.")
    show_table(f"cost-{key}", cost_rows(outcome), "What the LLM was asked for, by product.")
    if outcome["report"] and (page := outcome["report"]["html"]):
        link = page if "://" in page else Path(page).as_uri()
        with recorded("the link to the report"):
            create_link_artifact(
                link=link,
                link_text=f"Report of release {outcome['release']}",
                key=f"report-{key}",
                description=title,
            )


def show_lines(key: str, lines: Sequence[str], title: str) -> None:
    """Show lines in the log and as an artifact. Their text is catalogs' in part: it is indented, as
    code that no page renders.
    """
    for line in lines:
        logger.info(line)
    code = "\n".join(f"    {plain(line)}" for line in lines)
    with recorded("the output"):
        create_markdown_artifact(code, key=key, description=plain(title))


def show_table(key: str, rows: list[Row], description: str) -> None:
    """Show rows as a table artifact; nothing if there are none."""
    if not rows:
        return
    if len(rows) > MAX_ROWS:
        description += f" The first {MAX_ROWS} of {len(rows)} rows."
    with recorded(f"the table {key}"):
        create_table_artifact(rows[:MAX_ROWS], key=key, description=description)


@contextmanager
def recorded(what: str) -> Generator[None]:
    """Log that Prefect did not record something; the work that it is about is done."""
    try:
        yield
    except (httpx.HTTPError, PrefectException, RuntimeError) as error:
        logger.warning("Prefect did not record %s: %s", what, error)


def source_rows(outcome: dict[str, Any]) -> list[Row]:
    """Return a row for each catalog."""
    return [
        {
            "catalog": name,
            "state": "failed" if catalog["problems"] else "listed",
            "tools": catalog["tools"],
            "agents": catalog["agents"],
            "rejected": catalog["rejected"],
            **{kind: catalog["notices"].get(kind, 0) for kind in NOTICES},
            "kept": ", ".join(catalog["kept"]),
            "problem": plain("; ".join(catalog["problems"])),
        }
        for name, catalog in outcome["catalogs"].items()
    ]


def left_out_rows(outcome: dict[str, Any]) -> list[Row]:
    """Return a row for each record that was rejected, and for each notice."""
    return [
        {"what": what, **{key: plain(row[key]) for key in ("catalog", "where", "why")}}
        for what, row in left_out(outcome)
    ]


def change_rows(outcome: dict[str, Any]) -> list[Row]:
    """Return a row for each tool that was added, changed or removed; none for a first release."""
    plan = outcome["plan"]
    if plan["live"] is None:
        return []
    rows = [_change("changed", tool, plan["changes"].get(tool, {})) for tool in plan["changed"]]
    rows += [_change("new", tool, {}) for tool in plan["new"]]
    return rows + [_change("removed", tool, {}) for tool in plan["removed"]]


def _change(kind: str, tool: str, fields: dict[str, Any]) -> Row:
    return {"change": kind, "tool": plain(tool), "fields": ", ".join(fields)}


def measure_rows(outcome: dict[str, Any]) -> list[Row]:
    """Return the main measure of the gate, and a row for each rule; none without a gate."""
    if (gate := outcome["gate"]) is None:
        return []
    chosen = gate["chosen"]
    main = [
        {
            "rule": f"{chosen['measure']} by {chosen['strategy']} in index {chosen['index']}",
            "passed": gate["passed"],
            "value": f"{chosen['value']:.3f} ({chosen['low']:.3f} to {chosen['high']:.3f})",
        }
    ]
    return main + [
        {"rule": plain(rule["rule"]), "passed": rule["passed"], "value": plain(rule["reason"])}
        for rule in gate["rules"]
    ]


def cost_rows(outcome: dict[str, Any]) -> list[Row]:
    """Return calls, tokens, money and rejections of each product; none without an LLM."""
    if not (enrichment := outcome["enrichment"]):
        return []
    products = enrichment["estimate"]["products"]
    if (actual := enrichment.get("actual")) is None:
        return [
            {
                "product": name,
                "calls": part["pending"],
                "tokens": part["prompt_tokens"] + part["completion_tokens"],
                "usd": part["cost_usd"],
                "state": "estimated",
            }
            for name, part in products.items()
        ]
    return [_cost(name, actual) for name in products]


def _cost(product: str, actual: dict[str, Any]) -> Row:
    spent = actual["products"].get(product, {"replies": 0, "tokens": 0, "cost_usd": 0.0})
    rejected = actual["rejected"].get(product, {})
    return {
        "product": product,
        "calls": spent["replies"],
        "tokens": spent["tokens"],
        "usd": spent["cost_usd"],
        "accepted": actual["completed"].get(product, 0),
        "rejected": ", ".join(f"{count} {reason}" for reason, count in rejected.items()),
    }
