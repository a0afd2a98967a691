"""The last step of a sweep: tables and the recommendation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pegboard.cli.tables import difference_text, interval_text
from pegboard.store.database import public_uri
from tasks.sweep.cells import SweepFolder
from tasks.sweep.design import Design
from tasks.sweep.results import Candidate, Choice, Results, choose, collect

MAX_NEAR = 20
"""Candidates near the best in the summary; all are counted."""
USUAL_K = 5
TABLE_COLUMNS = (
    "index", "strategy", "tools", "k", "measure", "value", "low", "high", "n", "tokens", "ms_p50",
    "ms_p95",
)  # fmt: skip
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


def report_sweep(design: Design) -> dict[str, Any]:
    """Write the results of a sweep whose cells are all done, and return its summary as JSON
    values.
    """
    files, results = SweepFolder(design.sweep.out), collect(design)
    choice = choose(results, design.sweep.settings)
    # Lists for tuples: what is returned is what is written.
    summary = json.loads(json.dumps(_summary(design, results, choice)))
    files.write_json("sweep.json", summary)
    return summary


def _summary(design: Design, results: Results, choice: Choice) -> dict[str, Any]:
    sweep, settings, folder = design.sweep, design.sweep.settings, design.sweep.out
    # The k of the table: that of the recommendation, or the one nearest to the usual one.
    k = min(settings.k, key=lambda k: (abs(k - USUAL_K), k))
    k = choice.recommended.k if choice.recommended else k
    return {
        "release": design.release,
        "board": public_uri(sweep.uri),
        "tools": design.catalog,
        "golden": {"file": str(sweep.golden), "queries": len(sweep.queries)},
        "indexes": [{"name": name, **recipe} for name, recipe in design.indexes.items()],
        "strategies": [strategy.to_dict() for strategy in sweep.strategies],
        "k": list(settings.k),
        "measures": list(settings.measures),
        "llm": settings.llm,
        "samples": [
            {
                "tools": sample.size,
                "n": len(sample.queries),
                "golden_share": round(sample.share, 3),
            }
            for sample in design.samples
        ],
        "cells": {"total": len(design.cells), "finished_before": design.finished},
        "limits": {
            "max_tokens": settings.max_tokens,
            "max_ms": settings.max_ms,
            "margin": settings.margin,
        },
        "table": _ordered(design, _table(results, settings.measures[0], k)),
        "choice": {
            **asdict(replace(choice, near=choice.near[:MAX_NEAR])),
            "near_in_all": len(choice.near),
        },
        "says": _sentences(choice),
        "warnings": [*design.warnings, *_missing_llm(results)],
        "files": {
            "rows": str(folder / "sweep.parquet"),
            "values": str(folder / "values.parquet"),
            "summary": str(folder / "sweep.json"),
        },
    }


def _table(results: Results, measure: str, k: int) -> list[dict[str, Any]]:
    """One row for each index and strategy: the measure at k in every sample."""
    import polars as pl

    is_shown = (pl.col("measure") == measure) & (pl.col("k") == k)
    return results.rows.filter(is_shown).select(TABLE_COLUMNS).to_dicts()


def _ordered(design: Design, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order in which indexes and strategies were given."""
    indexes = list(design.indexes)
    strategies = [strategy.name for strategy in design.sweep.strategies]
    return sorted(
        rows, key=lambda row: (indexes.index(row["index"]), strategies.index(row["strategy"]))
    )


def _sentences(choice: Choice) -> list[str]:
    best, recommended, measure = choice.best, choice.recommended, choice.measure
    if best is None or recommended is None:
        return [
            f"None of the {choice.candidates} candidates is within the limits. The rows have the "
            f"cost of each; raise --max-tokens or --max-ms."
        ]
    lines = [
        f"Best of {choice.allowed} candidates among {choice.tools} tools: {_name(best)}, {measure} "
        f"{interval_text(asdict(best))} over {best.n} queries, {_cost(best)}."
    ]
    margin = f"{choice.margin:g}"
    if recommended == best:
        lines.append(
            f"Recommended: the same. No cheaper candidate is shown to be within {margin} of it."
        )
    else:
        lines.append(
            f"Recommended: {_name(recommended)}, {measure} {interval_text(asdict(recommended))}, "
            f"{_cost(recommended)}: the cheapest of {len(choice.near)} that are shown to be no "
            f"worse than the best by more than {margin} ({difference_text(recommended.against)}, "
            f"95 % confidence, one-sided)."
        )
    lines.append("Set them as default_index and [find] strategy; callers pass k.")
    return [*lines, "Prompt tokens are estimated by the length of the tools as JSON."]


def _name(candidate: Candidate) -> str:
    return f"index {candidate.index}, strategy {candidate.strategy}, k = {candidate.k}"


def _cost(candidate: Candidate) -> str:
    return (
        f"about {candidate.tokens:.0f} tokens, {candidate.ms_p50:.0f} ms (95th percentile "
        f"{candidate.ms_p95:.0f})"
    )


def _missing_llm(results: Results) -> list[str]:
    """Warnings for strategies that use an LLM and were measured without one."""
    import polars as pl

    rows = results.rows.filter(pl.col("without_llm").fill_null("") != "")
    pairs = rows.select("strategy", "without_llm").unique("strategy").sort("strategy").rows()
    return [
        f"Strategy {strategy} was measured without the LLM that {parts} would use: none was named, "
        f"or it did not answer. Name one with --llm."
        for strategy, parts in pairs
    ]


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
        intervals = [interval_text(rows[size]) for size in sorted(sizes)]
        cost = [f"{largest['tokens']:.0f}", f"{largest['ms_p50']:.0f}"]
        lines.append([*system, *intervals, *cost])
    samples = [f"{size} tools, n {sizes[size]}" for size in sorted(sizes)]
    return ["index", "strategy", *samples, "tokens", "ms"], lines
