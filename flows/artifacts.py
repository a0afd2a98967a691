"""What a run leaves in the Prefect UI for the person who looks there: the plan as a table, the release as a page."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.summary import RunSummary
from pegboard.releases import Release
from tasks.gate.words import held_lines, measured_line
from tasks.report.written import Written

__all__ = ["embed_progress", "plan_artifact", "release_artifact", "report_artifact"]

EXAMPLES = 20
"""Tools that are named for each kind of change; the rest are counted."""


def plan_artifact(summary: RunSummary) -> None:
    """The plan as a table: each kind of change, how many tools, and the first of them."""
    plan = summary.plan
    assert plan is not None
    changes = {"new": plan.new, "changed": plan.changed, "removed": plan.removed}
    rows = [
        {"change": kind, "tools": len(tools), "which": ", ".join(tools[:EXAMPLES])} for kind, tools in changes.items()
    ]
    rows.append({"change": "unchanged", "tools": plan.unchanged, "which": ""})
    rows += [
        {"change": f"texts to encode for {index}", "tools": new, "which": f"of {all_}"}
        for index, (all_, new) in plan.texts.items()
    ]
    rows += [{"change": f"{origin} dependencies", "tools": count, "which": ""} for origin, count in plan.edges.items()]
    create_table_artifact(rows, key="plan", description=f"Plan against {plan.live or 'an empty board'}")


def release_artifact(summary: RunSummary, release: Release) -> None:
    """The release as a page: what is in it, what its gate says, what went wrong with its sources, and how long the phases took."""
    lines = [
        f"# Release `{release.id}`{' is held' if summary.held else ''}",
        "",
        f"Board `{summary.board}`, contract {release.contract}, {release.created_at:%Y-%m-%d %H:%M:%S} UTC.",
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
    create_markdown_artifact("\n".join(lines), key="release", description=f"Release {release.id}")


def _gate(details: dict[str, Any], channel: str, *, held: bool) -> list[str]:
    """What the gate says. Queries and descriptions are text of others: nothing of them is to be read as Markdown."""
    lines = held_lines(details, channel) if held else [measured_line(details)]
    rules = [f"- {_mark(one['passed'])}: {one['rule']}: {one['says']}" for one in details["rules"]]
    return ["", "## Gate", "", *rules, "", "````text", *(line.replace("````", "'") for line in lines), "````"]


def _mark(passed: bool | None) -> str:
    return "not judged" if passed is None else "holds" if passed else "**failed**"


def report_artifact(written: Written) -> None:
    """The verdict, the measures and where the page is."""
    create_markdown_artifact(written.markdown(), key="report", description=written.title or "No report")


def _written(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """What the LLM was asked for, and the actual figures beside the estimate."""
    rows = [
        f"| {product} | {part['orders']} | {actual['bought'].get(product, 0)} | {actual['accepted'].get(product, 0)} |"
        for product, part in expected["products"].items()
    ]
    return [
        "",
        f"## Written by {expected['model']}",
        "",
        "| product | pieces | bought now | accepted in all |",
        "|---|---|---|---|",
        *rows,
        "",
        "| | calls | tokens | USD |",
        "|---|---|---|---|",
        f"| estimated | {expected['calls']} | {expected['prompt_tokens'] + expected['completion_tokens']} | {expected['cost_usd']} |",
        f"| used | {actual['replies']} | {actual['prompt_tokens'] + actual['completion_tokens']} | {actual['cost_usd']} |",
    ]


@contextmanager
def embed_progress(shards: int) -> Generator[Callable[[], None]]:
    """A progress bar of the shards; call what it gives after each. None is made for a single shard: it would only jump."""
    done = 0
    bar = create_progress_artifact(0.0, key="embed", description=f"{shards} shards to encode") if shards > 1 else None

    def advance() -> None:
        nonlocal done
        done += 1
        if isinstance(bar, UUID):
            update_progress_artifact(bar, progress=100 * done / shards)

    yield advance
