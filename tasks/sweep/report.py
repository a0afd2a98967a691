"""The last step of a sweep: its tables, pictures and page, and the recommendation."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pegboard.cli.tables import difference_text, interval_text
from pegboard.store.database import public_uri
from tasks.sweep.charts import draw
from tasks.sweep.choice import Candidate, Choice, choose, size_effects
from tasks.sweep.design import Design
from tasks.sweep.files import SweepFolder
from tasks.sweep.page import sweep_page
from tasks.sweep.results import Results, collect, over_seeds
from tasks.sweep.write_back import Written, write_choice

MAX_NEAR = 20
"""Candidates near the best in the summary; all are counted."""
USUAL_K = 5
TABLE_COLUMNS = (
    "index", "strategy", "tools", "k", "measure", "value", "low", "high", "n", "tokens", "ms_p50",
    "ms_p95",
)  # fmt: skip


def report_sweep(design: Design, *, write: bool = False) -> dict[str, Any]:
    """Write the results of a sweep whose cells are all done, and return its summary as JSON values.

    Args:
        write: also write the recommended index and strategy into the configuration.
    """
    settings, files = design.sweep.settings, SweepFolder(design.sweep.out)
    results = collect(design)
    choice = choose(results, settings)
    written = _write(design, choice) if write else None
    # Lists for tuples: what is returned is what is written.
    summary = json.loads(json.dumps(_summary(design, results, choice, written)))
    indexes = [shape.name for shape in design.indexes]
    strategies = [strategy.name for strategy in design.sweep.strategies]
    pictures = draw(results, settings.measures[0], indexes, strategies)
    for name, picture in pictures.items():
        files.write_text(f"{name}.svg", picture)
    files.write_text("sweep.html", sweep_page(summary, pictures))
    files.write_json("sweep.json", summary)
    return summary


def _summary(
    design: Design, results: Results, choice: Choice, written: Written | None
) -> dict[str, Any]:
    sweep, settings, folder = design.sweep, design.sweep.settings, design.sweep.out
    k = _table_k(settings.k, choice)
    effects = [asdict(effect) for effect in size_effects(results, settings, k)]
    choice_values = choice.to_dict()
    return {
        "release": design.release,
        "board": public_uri(sweep.uri),
        "tools": design.catalog,
        "golden": {"file": str(sweep.golden), "queries": len(sweep.queries)},
        "indexes": [asdict(shape) for shape in design.indexes],
        "strategies": [strategy.to_dict() for strategy in sweep.strategies],
        "k": list(settings.k),
        "measures": list(settings.measures),
        "llm": settings.llm,
        "samples": [
            {
                "tools": sample.size,
                "seed": sample.seed,
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
        "falls": _ordered(design, effects),
        "choice": {
            **choice_values,
            "near": choice_values["near"][:MAX_NEAR],
            "near_in_all": len(choice.near),
        },
        "says": _sentences(choice, timed=settings.timed > 0),
        "written": written,
        "warnings": [*design.warnings, *_missing_llm(results)],
        "files": {
            "rows": str(folder / "sweep.parquet"),
            "values": str(folder / "values.parquet"),
            "page": str(folder / "sweep.html"),
        },
    }


def _table_k(ks: Sequence[int], choice: Choice) -> int:
    """The k of the table: that of the recommendation, or the one nearest to the usual one."""
    if choice.recommended is not None:
        return choice.recommended.k
    return min(ks, key=lambda k: (abs(k - USUAL_K), k))


def _table(results: Results, measure: str, k: int) -> list[dict[str, Any]]:
    """One row for each index and strategy: the measure at k in every sample."""
    import polars as pl

    is_shown = (pl.col("measure") == measure) & (pl.col("k") == k)
    return over_seeds(results).filter(is_shown).select(TABLE_COLUMNS).to_dicts()


def _ordered(design: Design, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order in which indexes and strategies were given."""
    indexes = [shape.name for shape in design.indexes]
    strategies = [strategy.name for strategy in design.sweep.strategies]
    return sorted(
        rows, key=lambda row: (indexes.index(row["index"]), strategies.index(row["strategy"]))
    )


def _sentences(choice: Choice, *, timed: bool) -> list[str]:
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
    elif (gap := recommended.against) is not None:
        lines.append(
            f"Recommended: {_name(recommended)}, {measure} {interval_text(asdict(recommended))}, "
            f"{_cost(recommended)}: the cheapest of {len(choice.near)} that are shown to be no "
            f"worse than the best by more than {margin} ({difference_text(gap)}, 95 % confidence, "
            f"one-sided)."
        )
    if (cheaper := choice.undecided) is not None and cheaper.against is not None:
        lines.append(
            f"Undecided: {_name(cheaper)}, {_cost(cheaper)}, differs by "
            f"{difference_text(cheaper.against)}. About {cheaper.against['queries']} queries would "
            f"show whether it is within {margin}; there are {cheaper.n}."
        )
    latency = "" if timed else "; latency was not measured"
    return [*lines, f"Prompt tokens are estimated by the length of the tools as JSON{latency}."]


def _name(candidate: Candidate) -> str:
    return f"index {candidate.index}, strategy {candidate.strategy}, k = {candidate.k}"


def _cost(candidate: Candidate) -> str:
    tokens = f"about {candidate.tokens:.0f} tokens"
    if candidate.ms_p50 is None:
        return tokens
    return f"{tokens}, {candidate.ms_p50:.0f} ms (95th percentile {candidate.ms_p95:.0f})"


def _write(design: Design, choice: Choice) -> Written | None:
    recommended, configuration = choice.recommended, design.sweep.configuration
    if recommended is None or configuration is None:
        return None
    strategies = {strategy.name: strategy for strategy in design.sweep.strategies}
    return write_choice(configuration, recommended.index, strategies[recommended.strategy])


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
