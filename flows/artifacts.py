"""What a run shows in the UI of an orchestrator: sources and plan as tables, the report and the
sweep as texts. A browser shows it, so the untrusted text of catalogs is escaped.
"""

import socket
from collections.abc import Iterable
from typing import Any

from flows.runner import Artifact
from pegboard.cli.tables import escape_markdown, list_text
from tasks.plan import Plan
from tasks.report.storage import Report
from tasks.snapshot import Snapshot

MAX_EXAMPLES = 20
"""Tools that are named for each kind of change; the rest are counted."""


def sources_artifact(board: str, sources: Iterable[Snapshot]) -> Artifact:
    """Return what each source of a board listed as a table, with what failed and why."""
    rows: list[dict[str, Any]] = []
    for source in sources:
        kept = "everything" if source.kept == ("*",) else list_text(source.kept, MAX_EXAMPLES)
        rows.append(
            {
                "catalog": source.catalog,
                "tools": source.tools,
                "rejected": len(source.rejected),
                "last good tools of": escape_markdown(kept),
                "problems": escape_markdown(list_text(source.problems, MAX_EXAMPLES, "; ")),
            }
        )
    failed = sum(bool(source["problems"]) for source in rows)
    state = f"{failed} of {len(rows)} failed" if failed else "all were listed"
    return Artifact("sources", f"Sources of {board}: {state}", rows=rows)


def plan_artifact(plan: Plan) -> Artifact:
    """Return the plan as a table: each kind of change, how many tools, and the first of them."""
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
