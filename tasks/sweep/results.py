"""The results of a sweep: which index, strategy and k are best within the limits, which to choose,
and the summary and table that say so.

A cheaper candidate is recommended only if it is shown to be no worse than the best by more than a
margin, as the gate compares releases: the lower end of the one-sided 95 % interval of their
difference, by a paired bootstrap over the queries, is not below minus the margin. That a difference
is not significant shows nothing: with few queries or many candidates none is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.cli.tables import difference_text, interval_text
from pegboard.evaluation.intervals import ONE_SIDED, Interval, interval, is_no_worse
from pegboard.store.database import public_uri
from tasks.settings.sweep import SweepSettings
from tasks.sweep.measuring import Design, Result, SweepFolder

MAX_NEAR = 20
"""Candidates near the best in the summary; all are counted."""
USUAL_K = 5
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate, and the recommended one: results over all tools, by the first measure.

    Attributes:
        candidates, allowed: the number of candidates, and of those within the limits.
        best: None if no candidate is within the limits.
        recommended: the cheapest of those that are shown to be within the margin of the best.
        near: all of those but the best, cheapest first, each with the 90 % interval of its
            difference from the best.
    """

    candidates: int
    allowed: int
    best: Result | None = None
    recommended: Result | None = None
    near: tuple[tuple[Result, Interval], ...] = ()


def choose(results: Sequence[Result], settings: SweepSettings) -> Choice:
    """Return the best and the recommended candidate by the first measure, among all tools."""
    tools = max(result.tools for result in results)
    candidates = [
        result
        for result in results
        if (result.tools, result.measure) == (tools, settings.measures[0])
    ]
    allowed = [
        candidate
        for candidate in candidates
        if (settings.max_tokens is None or candidate.tokens <= settings.max_tokens)
        and (settings.max_ms is None or candidate.ms_p95 <= settings.max_ms)
    ]
    if not allowed:
        return Choice(len(candidates), 0)
    best = min(allowed, key=lambda candidate: (-candidate.value, *candidate.cost))
    others = sorted(allowed, key=lambda candidate: candidate.cost)
    gaps = [
        (other, interval(other.values - best.values, ONE_SIDED))
        for other in others
        if other is not best
    ]
    near = tuple((other, gap) for other, gap in gaps if is_no_worse(gap.low, settings.margin))
    recommended = min([best, *(other for other, _ in near)], key=lambda candidate: candidate.cost)
    return Choice(len(candidates), len(allowed), best, recommended, near)


def report_sweep(design: Design, results: Sequence[Result]) -> dict[str, Any]:
    """Write the results of a sweep, and return its summary as JSON values."""
    files, choice = SweepFolder(design.sweep.out), choose(results, design.sweep.settings)
    # Lists for tuples: what is returned is what is written.
    summary = json.loads(json.dumps(_summary(design, results, choice)))
    files.write_json("sweep.json", summary)
    return summary


def _summary(design: Design, results: Sequence[Result], choice: Choice) -> dict[str, Any]:
    sweep, settings, folder = design.sweep, design.sweep.settings, design.sweep.out
    # The k of the table: that of the recommendation, or the one nearest to the usual one.
    k = min(settings.k, key=lambda k: (abs(k - USUAL_K), k))
    k = choice.recommended.k if choice.recommended else k
    rows = [result.to_dict() for result in results]
    near = choice.near[:MAX_NEAR]
    return {
        "release": design.release,
        "board": public_uri(sweep.uri),
        "tools": design.tools,
        "golden": {"file": str(sweep.golden), "queries": len(sweep.queries)},
        "indexes": [{"name": name, **recipe} for name, recipe in design.indexes.items()],
        "strategies": [strategy.to_dict() for strategy in sweep.strategies],
        "k": list(settings.k),
        "measures": list(settings.measures),
        "limits": {
            "max_tokens": settings.max_tokens,
            "max_ms": settings.max_ms,
            "margin": settings.margin,
        },
        "table": [row for row in rows if (row["measure"], row["k"]) == (settings.measures[0], k)],
        "rows": rows,
        "choice": {
            "candidates": choice.candidates,
            "allowed": choice.allowed,
            "best": choice.best and choice.best.to_dict(),
            "recommended": choice.recommended and choice.recommended.to_dict(),
            "near": [{**other.to_dict(), "against": gap.to_dict()} for other, gap in near],
            "near_in_all": len(choice.near),
        },
        "says": _sentences(choice, settings.margin),
        "warnings": list(design.warnings),
        "file": str(folder / "sweep.json"),
    }


def _sentences(choice: Choice, margin: float) -> list[str]:
    best, recommended = choice.best, choice.recommended
    if best is None or recommended is None:
        return [
            f"None of the {choice.candidates} candidates is within the limits. The rows have the "
            f"cost of each; raise --max-tokens or --max-ms."
        ]
    lines = [
        f"Best of {choice.allowed} candidates: {_name(best)}, {_value(best)} over {best.n} "
        f"queries, {_cost(best)}."
    ]
    if recommended is best:
        lines.append(
            f"Recommended: the same. No cheaper candidate is shown to be within {margin:g} of it."
        )
    else:
        gap = choice.near[0][1]  # the recommended one is the cheapest
        lines.append(
            f"Recommended: {_name(recommended)}, {_value(recommended)}, {_cost(recommended)}: the "
            f"cheapest of {len(choice.near)} that are shown to be no worse than the best by more "
            f"than {margin:g} ({difference_text(gap.to_dict())}, 95 % confidence, one-sided)."
        )
    lines.append("Set them as default_index and [find] strategy; callers pass k.")
    return [*lines, "Prompt tokens are estimated by the length of the tools as JSON."]


def _name(candidate: Result) -> str:
    return f"index {candidate.index}, strategy {candidate.strategy}, k = {candidate.k}"


def _value(candidate: Result) -> str:
    return f"{candidate.measure} {interval_text(candidate.to_dict())}"


def _cost(candidate: Result) -> str:
    return (
        f"about {candidate.tokens:.0f} tokens, {candidate.ms_p50:.0f} ms (95th percentile "
        f"{candidate.ms_p95:.0f})"
    )


def result_table(summary: Mapping[str, Any]) -> Table:
    """Return the measure of each index and strategy in every sample, with tokens and latency."""
    by_system: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in summary["table"]:
        by_system.setdefault((row["index"], row["strategy"]), []).append(row)
    lines = [
        [
            *system,
            *map(interval_text, rows),
            f"{rows[-1]['tokens']:.0f}",
            f"{rows[-1]['ms_p50']:.0f}",
        ]
        for system, rows in by_system.items()
    ]
    first = next(iter(by_system.values()))
    sizes = [f"{row['measure']}@{row['k']}, {row['tools']} tools" for row in first]
    return ["index", "strategy", *sizes, "tokens", "ms"], lines
