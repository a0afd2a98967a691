"""What a run shows in the UI of an orchestrator: the plan and the sources as tables, the release,
the report and the sweep as pages.
"""

from typing import Any

from flows.runner import Artifact
from flows.summary import RunSummary
from pegboard.store.releases import Release
from tasks.gate.messages import held_lines, measured_line
from tasks.report.storage import Report

EXAMPLES = 20
"""Tools that are named for each kind of change; the rest are counted."""


def plan_artifact(summary: RunSummary) -> Artifact:
    """The plan as a table: each kind of change, how many tools, and the first of them."""
    plan = summary.plan
    assert plan is not None
    changes = {"new": plan.new, "changed": plan.changed, "removed": plan.removed}
    rows = [
        {"change": kind, "tools": len(tools), "which": ", ".join(tools[:EXAMPLES])}
        for kind, tools in changes.items()
    ]
    rows.append({"change": "unchanged", "tools": plan.unchanged, "which": ""})
    rows += [
        {"change": f"texts to encode for {index}", "tools": new, "which": f"of {all_}"}
        for index, (all_, new) in plan.texts.items()
    ]
    rows += [
        {"change": f"{origin} dependencies", "tools": count, "which": ""}
        for origin, count in plan.edges.items()
    ]
    return Artifact("plan", f"Plan against {plan.live or 'an empty board'}", rows=rows)


def release_artifact(summary: RunSummary, release: Release) -> Artifact:
    """The release as a page: what is in it, what its gate says, what went wrong with its sources,
    and how long the phases took.
    """
    lines = [
        f"# Release `{release.id}`{' is held' if summary.held else ''}",
        "",
        f"Board `{summary.board}`, contract {release.contract}, "
        f"{release.created_at:%Y-%m-%d %H:%M:%S} UTC.",
        "",
        "| table | version | rows |",
        "|---|---|---|",
        *(f"| {pin.table} | {pin.version} | {pin.rows} |" for pin in release.tables.values()),
        "",
        "| phase | seconds |",
        "|---|---|",
        *(f"| {name} | {seconds:.1f} |" for name, seconds in summary.seconds.items()),
    ]
    if summary.gate is not None and summary.plan is not None:
        lines += _gate(summary.gate, summary.plan.channel, held=summary.held)
    if summary.enriched is not None:
        lines += _written(summary.enriched.estimate, summary.enriched.actual)
    problems = [f"- {problem}" for one in summary.snapshots for problem in one.problems]
    rejected = [f"- `{row.where}`: {row.why}" for one in summary.snapshots for row in one.rejected]
    if problems:
        lines += ["", "## Sources that failed", "", *problems[:EXAMPLES]]
    if rejected:
        lines += ["", f"## {len(rejected)} rejected records", "", *rejected[:EXAMPLES]]
    return Artifact("release", f"Release {release.id}", "\n".join(lines))


def _gate(details: dict[str, Any], channel: str, *, held: bool) -> list[str]:
    """What the gate says. Queries and descriptions are text of others: nothing of them is to be
    read as Markdown.
    """
    lines = held_lines(details, channel) if held else [measured_line(details)]
    rules = [f"- {_mark(one['passed'])}: {one['rule']}: {one['says']}" for one in details["rules"]]
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


def _mark(passed: bool | None) -> str:
    return "not judged" if passed is None else "holds" if passed else "**failed**"


def report_artifact(report: Report) -> Artifact:
    """The verdict, the measures and where the page is."""
    return Artifact("report", report.title or "No report", report.markdown())


def sweep_artifact(outcome: dict[str, Any]) -> Artifact:
    """What a sweep recommends."""
    return Artifact("sweep", f"Sweep of release {outcome['release']}", "\n\n".join(outcome["says"]))


def _written(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """What the LLM was asked for, and the actual figures beside the estimate."""
    rows = [
        f"| {product} | {part['requests']} | {actual['completed'].get(product, 0)} | "
        f"{actual['accepted'].get(product, 0)} |"
        for product, part in expected["products"].items()
    ]
    return [
        "",
        f"## Written by {expected['model']}",
        "",
        "| product | requests | completed now | accepted in all |",
        "|---|---|---|---|",
        *rows,
        "",
        "| | calls | tokens | USD |",
        "|---|---|---|---|",
        f"| estimated | {expected['calls']} | "
        f"{expected['prompt_tokens'] + expected['completion_tokens']} | {expected['cost_usd']} |",
        f"| used | {actual['replies']} | {actual['prompt_tokens'] + actual['completion_tokens']} "
        f"| {actual['cost_usd']} |",
    ]
