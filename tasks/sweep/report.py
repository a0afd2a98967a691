"""The last step of a sweep: its tables, pictures and page, and what to choose."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pegboard.store.database import public_uri
from tasks.sweep.best import Best, choose, falls
from tasks.sweep.design import Design
from tasks.sweep.figure import draw
from tasks.sweep.files import write_bytes, write_json
from tasks.sweep.page import page
from tasks.sweep.results import Results, collect, of_all_seeds
from tasks.sweep.write_back import Written, write_choice

NEAR_SHOWN = 20
"""Candidates near the best that the summary lists; it counts them all."""
TOKENS = "prompt tokens are estimated by the characters of the tools in OpenAI's form"


def report_sweep(design: Design, *, write: bool = False) -> dict[str, Any]:
    """Write the results of a sweep whose cells are all done, and give its summary as JSON values.

    Args:
        write: also write the recommended index and strategy into the configuration.
    """
    settings, folder = design.sweep.settings, design.sweep.out
    results = collect(design)
    best = choose(results, settings)
    shown = _shown_k(settings.k, best)
    written = _write(design, best) if write else None
    summary: dict[str, Any] = {
        "release": design.release,
        "board": public_uri(design.sweep.uri),
        "tools": design.catalog,
        "golden": {"file": str(design.sweep.golden), "queries": len(design.sweep.queries)},
        "indexes": [asdict(one) for one in design.indexes],
        "strategies": [strategy.to_dict() for strategy in design.sweep.strategies],
        "k": list(settings.k),
        "measures": list(settings.measures),
        "llm": settings.llm,
        "samples": [
            {
                "tools": one.size,
                "seed": one.seed,
                "n": len(one.queries),
                "golden_share": round(one.share, 3),
            }
            for one in design.samples
        ],
        "cells": {"total": len(design.cells), "finished_before": design.finished},
        "limits": {"max_tokens": settings.max_tokens, "max_ms": settings.max_ms},
        "table": _ordered(design, _table(results, settings.measures[0], shown)),
        "falls": _ordered(design, [asdict(one) for one in falls(results, settings, shown)]),
        "choice": _choice(best),
        "says": _says(best, design),
        "written": _told(written),
        "warnings": [*design.warnings, *_without_llm(results)],
        "files": {
            "rows": str(folder / "sweep.parquet"),
            "values": str(folder / "values.parquet"),
            "page": str(folder / "sweep.html"),
        },
    }
    summary = json.loads(
        json.dumps(summary)
    )  # lists for tuples: what is returned is what is written
    pictures = draw(
        results,
        settings.measures[0],
        [one.name for one in design.indexes],
        [strategy.name for strategy in design.sweep.strategies],
    )
    for name, picture in pictures.items():
        write_bytes(folder / f"{name}.svg", picture.encode())
    write_bytes(folder / "sweep.html", page(summary, pictures).encode())
    write_json(folder / "sweep.json", summary)
    return summary


def _shown_k(ks: Sequence[int], best: Best) -> int:
    """The k of the table: that of the recommendation, or the usual 5."""
    if best.recommended is not None:
        return best.recommended.k
    return min(ks, key=lambda one: (abs(one - 5), one))


def _table(results: Results, measure: str, k: int) -> list[dict[str, Any]]:
    """One row for each index and strategy: the measure at k in every sample."""
    import polars as pl

    rows = of_all_seeds(results).filter((pl.col("measure") == measure) & (pl.col("k") == k))
    columns = (
        "index",
        "strategy",
        "tools",
        "k",
        "measure",
        "value",
        "low",
        "high",
        "n",
        "tokens",
        "ms_p50",
        "ms_p95",
    )
    return rows.select(columns).to_dicts()


def _ordered(design: Design, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order in which indexes and strategies were given."""
    indexes = [one.name for one in design.indexes]
    strategies = [strategy.name for strategy in design.sweep.strategies]
    return sorted(
        rows, key=lambda row: (indexes.index(row["index"]), strategies.index(row["strategy"]))
    )


def _choice(best: Best) -> dict[str, Any]:
    said = best.to_dict()
    return said | {"near": said["near"][:NEAR_SHOWN], "near_in_all": len(best.near)}


def _says(best: Best, design: Design) -> list[str]:
    """The choice in sentences."""
    if best.best is None or best.recommended is None:
        return [
            f"None of the {best.candidates} candidates keeps within the limits. The rows say what "
            f"each costs; raise --max-tokens or --max-ms."
        ]
    best_one, named = best.best, best.recommended
    lines = [
        f"Best of {best.allowed} candidates among {best.tools} tools: {_named(best_one)}, "
        f"{best.measure} {best_one.value:.3f} "
        f"[{best_one.low:.3f}, {best_one.high:.3f}] over {best_one.n} queries, {_cost(best_one)}."
    ]
    if named == best_one:
        lines.append(
            "Recommended: the same. No cheaper one is as good as far as these queries can tell."
        )
    elif named.against is not None:
        gap = named.against
        lines.append(
            f"Recommended: {_named(named)}, {best.measure} {named.value:.3f} [{named.low:.3f}, "
            f"{named.high:.3f}], {_cost(named)}: the cheapest "
            f"of {len(best.near)} that are not significantly worse ({gap['value']:+.3f} "
            f"[{gap['low']:+.3f}, {gap['high']:+.3f}], "
            f"p {gap['p']:.3f} alone, {gap['p_holm']:.2f} among {best.allowed - 1} comparisons)."
        )
    if best.near and named == best_one:
        lines.append(
            f"Not told apart from it: {len(best.near)} that cost more, such as "
            f"{_named(best.near[0])}."
        )
    ms = "" if design.sweep.settings.timed else "; nothing was timed"
    return [*lines, f"Of the costs, {TOKENS}{ms}."]


def _named(one: Any) -> str:
    return f"index {one.index}, strategy {one.strategy}, k = {one.k}"


def _cost(one: Any) -> str:
    took = (
        "" if one.ms_p50 is None else f", {one.ms_p50:.0f} ms (95 of 100 within {one.ms_p95:.0f})"
    )
    return f"about {one.tokens:.0f} tokens{took}"


def _write(design: Design, best: Best) -> Written | None:
    chosen, configuration = best.recommended, design.sweep.configuration
    if chosen is None or configuration is None:
        return None
    strategy = next(
        strategy for strategy in design.sweep.strategies if strategy.name == chosen.strategy
    )
    return write_choice(configuration, chosen, strategy)


def _told(written: Written | None) -> Mapping[str, Any] | None:
    return None if written is None else dict(written)


def _without_llm(results: Results) -> list[str]:
    """The strategies that would ask an LLM and were measured without one."""
    import polars as pl

    rows = results.rows.filter(pl.col("without_llm").fill_null("") != "")
    pairs = rows.select("strategy", "without_llm").unique("strategy").sort("strategy").rows()
    return [
        f"Strategy {strategy} was measured without what an LLM would do in {parts}: none was "
        f"named, or it did not answer. Name one with --llm."
        for strategy, parts in pairs
    ]
