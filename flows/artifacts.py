"""What a run shows in the UI of an orchestrator: sources and plan as tables; the release, the
report and the sweep as pages. Text of catalogs is untrusted, and escaped: a browser shows it.
"""

import socket
from collections.abc import Iterable
from typing import Any

from flows.runner import Artifact
from flows.summary import RunSummary
from pegboard.cli.tables import escape_markdown, list_text, markdown_table
from pegboard.store.releases import Release
from tasks.gate.messages import held_lines, measured_line
from tasks.plan import SourceChange
from tasks.report.storage import Report
from tasks.snapshot import Snapshot

MAX_EXAMPLES = 20
"""Tools that are named for each kind of change; the rest are counted."""


def sources_artifact(subject: str, sources: Iterable[Snapshot | SourceChange]) -> Artifact:
    """Return what each source listed as a table, with what failed and why.

    Args:
        subject: whose sources they are.
    """
    rows: list[dict[str, Any]] = []
    for source in sources:
        row = {"catalog": source.catalog, "tools": source.tools, "rejected": source.rejected}
        if isinstance(source, Snapshot):
            kept = "everything" if source.kept == ("*",) else list_text(source.kept, MAX_EXAMPLES)
            row |= {"rejected": len(source.rejected), "last good tools of": escape_markdown(kept)}
        else:
            row["changed"] = "yes" if source.changed else "no"
        problems = list_text(source.problems, MAX_EXAMPLES, "; ")
        rows.append(row | {"problems": escape_markdown(problems)})
    failed = sum(bool(source["problems"]) for source in rows)
    state = f"{failed} of {len(rows)} failed" if failed else "all were listed"
    return Artifact("sources", f"Sources of {subject}: {state}", rows=rows)


def plan_artifact(summary: RunSummary) -> Artifact:
    """Return the plan as a table: each kind of change, how many tools, and the first of them."""
    plan = summary.plan
    assert plan is not None
    changes = {"new": plan.new, "changed": plan.changed, "removed": plan.removed}
    rows = [
        (kind, len(tools), escape_markdown(list_text(tools, MAX_EXAMPLES)))
        for kind, tools in changes.items()
    ]
    rows.append(("unchanged", plan.unchanged, ""))
    rows += [
        (f"texts to encode for {index}", new, f"of {texts}")
        for index, (texts, new) in plan.texts.items()
    ]
    rows += [(f"{origin} dependencies", count, "") for origin, count in plan.edges.items()]
    return Artifact(
        "plan",
        f"Plan against {plan.live or 'an empty board'}",
        rows=[{"change": change, "tools": count, "which": which} for change, count, which in rows],
    )


def release_artifact(summary: RunSummary, release: Release) -> Artifact:
    """Return the release as a page: tables, phases, gate, LLM, and rejected records."""
    pins = [[pin.table, str(pin.version), str(pin.rows)] for pin in release.tables.values()]
    phases = [[name, f"{seconds:.1f}"] for name, seconds in summary.seconds.items()]
    lines = [
        f"# Release `{release.id}`{' is held' if summary.held else ''}",
        "",
        f"Board {escape_markdown(summary.board)}, contract {release.contract}, "
        f"{release.created_at:%Y-%m-%d %H:%M:%S} UTC.",
        "",
        *markdown_table(["table", "version", "rows"], pins),
        "",
        *markdown_table(["phase", "seconds"], phases),
    ]
    if summary.gate is not None and summary.plan is not None:
        lines += _gate_lines(summary.gate, summary.plan.channel, held=summary.held)
    if summary.enriched is not None:
        lines += _enrichment_lines(summary.enriched.estimate, summary.enriched.actual)
    rejected = [row for snapshot in summary.snapshots for row in snapshot.rejected]
    if rejected:
        texts = [f"{row.where}: {row.why}" for row in rejected]
        lines += ["", f"## {len(rejected)} rejected records", "", *_items(texts)]
    return Artifact("release", f"Release {release.id}", "\n".join(lines))


def report_artifact(report: Report) -> Artifact:
    """Return the verdict, the measures and the address of the page, or the file and its machine."""
    markdown = report.markdown()
    if report.html and "://" not in report.html:
        markdown += (
            f"\n\nThese are files on {escape_markdown(socket.gethostname())}. On any machine that "
            "reads the board, `pegboard report --out report.html` writes the page again."
        )
    return Artifact("report", report.title or "No report", markdown)


def sweep_artifact(outcome: dict[str, Any]) -> Artifact:
    """Return what a sweep recommends."""
    return Artifact("sweep", f"Sweep of release {outcome['release']}", "\n\n".join(outcome["says"]))


def _items(texts: list[str]) -> list[str]:
    return [f"- {escape_markdown(text)}" for text in texts[:MAX_EXAMPLES]]


def _gate_lines(details: dict[str, Any], channel: str, *, held: bool) -> list[str]:
    """The gate's decision. Queries and descriptions are untrusted: they stand in a code block."""
    lines = held_lines(details, channel) if held else [measured_line(details)]
    rules = [
        f"- {_verdict(rule['passed'])}: {escape_markdown(rule['rule'] + ': ' + rule['reason'])}"
        for rule in details["rules"]
    ]
    return [
        "",
        "## Gate",
        "",
        *rules,
        "",
        "````text",
        *(line.replace("````", "'") for line in lines),
        "````",
    ]


def _verdict(passed: bool | None) -> str:
    return "skipped" if passed is None else "holds" if passed else "**failed**"


def _enrichment_lines(estimate: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    products = [
        [
            product,
            str(part["requests"]),
            str(actual["completed"].get(product, 0)),
            str(actual["accepted"].get(product, 0)),
        ]
        for product, part in estimate["products"].items()
    ]
    totals = [
        ["estimated", *_totals(estimate, "calls")],
        ["used", *_totals(actual, "replies")],
    ]
    return [
        "",
        f"## Written by {estimate['model']}",
        "",
        *markdown_table(["product", "requests", "completed now", "accepted in all"], products),
        "",
        *markdown_table(["", "calls", "tokens", "USD"], totals),
    ]


def _totals(figures: dict[str, Any], calls: str) -> list[str]:
    tokens = figures["prompt_tokens"] + figures["completion_tokens"]
    return [str(figures[calls]), str(tokens), str(figures["cost_usd"])]
