"""The results of a sweep: which index, strategy and k are best within the limits, which to choose,
and the summary and table that say so.

A cheaper candidate is recommended only if it is shown to be no worse than the best by more than a
margin, as the gate compares releases: the lower end of the one-sided 95 % interval of their
difference, by a paired bootstrap over the queries, is not below minus the margin. That a difference
is not significant shows nothing: with few queries or many candidates none is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pegboard.cli.tables import difference_text, interval_text
from pegboard.evaluation.intervals import ONE_SIDED, interval, is_no_worse
from pegboard.store.database import public_uri
from tasks.settings.sweep import SweepSettings
from tasks.sweep.measuring import Design, Measured, SweepFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COST = ("tokens", "ms_p50", "ms_p95")
MAX_NEAR = 20
"""Candidates near the best in the summary; all are counted."""
USUAL_K = 5
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, a strategy and a k, with their mean and their cost.

    Attributes:
        tokens: the mean prompt tokens of its k tools, an estimate.
        ms_p50, ms_p95: milliseconds per request.
        against: the difference from the best, `value` with `low` and `high` of its 90 % interval;
            empty for the best itself.
    """

    index: str
    strategy: str
    k: int
    value: float
    low: float
    high: float
    n: int
    tokens: float
    ms_p50: float
    ms_p95: float
    against: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> tuple[str, str, int]:
        """What distinguishes it from the others."""
        return self.index, self.strategy, self.k

    @property
    def cost(self) -> tuple[float, float, float]:
        """Sorts by tokens, then by milliseconds, then highest value first."""
        return self.tokens, self.ms_p50, -self.value


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate, and the recommended one.

    Attributes:
        measure: the measure that decides.
        candidates, allowed: the number of candidates, and of those within the limits.
        margin: by how much a cheaper candidate may be worse than the best.
        best: None if no candidate is within the limits.
        recommended: the cheapest of those that are shown to be within the margin of the best.
        near: all of those, cheapest first.
    """

    measure: str
    candidates: int
    allowed: int
    margin: float
    best: Candidate | None = None
    recommended: Candidate | None = None
    near: tuple[Candidate, ...] = ()


def choose(results: Sequence[Measured], settings: SweepSettings) -> Choice:
    """Return the best and the recommended candidate by the first measure, among all tools."""
    measure, tools = settings.measures[0], max(system.tools for system in results)
    whole = [system for system in results if system.tools == tools]
    values = {
        (system.index, system.strategy, k): column
        for system in whole
        for k, column in system.values.items()
    }
    columns = ("k", "value", "low", "high", "n", *COST)
    candidates = [
        Candidate(system.index, system.strategy, **{name: row[name] for name in columns})
        for system in whole
        for row in system.rows
        if row["measure"] == measure
    ]
    allowed = [
        candidate
        for candidate in candidates
        if (settings.max_tokens is None or candidate.tokens <= settings.max_tokens)
        and (settings.max_ms is None or candidate.ms_p95 <= settings.max_ms)
    ]
    choice = Choice(measure, len(candidates), len(allowed), settings.margin)
    if not allowed:
        return choice
    best = min(allowed, key=lambda candidate: (-candidate.value, *candidate.cost))
    compared = [
        replace(candidate, against=_difference(values[candidate.key], values[best.key]))
        for candidate in allowed
        if candidate != best
    ]
    others = sorted(compared, key=lambda candidate: candidate.cost)
    near = [other for other in others if is_no_worse(other.against["low"], settings.margin)]
    recommended = min([best, *near], key=lambda candidate: candidate.cost)
    return replace(choice, best=best, recommended=recommended, near=tuple(near))


def _difference(ours: "NDArray[np.float64]", best: "NDArray[np.float64]") -> dict[str, Any]:
    """The difference from the best: see `Candidate.against`."""
    gap = interval(ours - best, ONE_SIDED)
    return {"value": gap.value, "low": gap.low, "high": gap.high}


def report_sweep(design: Design, results: Sequence[Measured]) -> dict[str, Any]:
    """Write the results of a sweep, and return its summary as JSON values."""
    files, choice = SweepFolder(design.sweep.out), choose(results, design.sweep.settings)
    # Lists for tuples: what is returned is what is written.
    summary = json.loads(json.dumps(_summary(design, results, choice)))
    files.write_json("sweep.json", summary)
    return summary


def _summary(design: Design, results: Sequence[Measured], choice: Choice) -> dict[str, Any]:
    sweep, settings, folder = design.sweep, design.sweep.settings, design.sweep.out
    # The k of the table: that of the recommendation, or the one nearest to the usual one.
    k = min(settings.k, key=lambda k: (abs(k - USUAL_K), k))
    k = choice.recommended.k if choice.recommended else k
    rows = [
        {"index": system.index, "strategy": system.strategy, **row}
        for system in results
        for row in system.rows
    ]
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
            **asdict(replace(choice, near=choice.near[:MAX_NEAR])),
            "near_in_all": len(choice.near),
        },
        "says": _sentences(choice),
        "warnings": list(design.warnings),
        "file": str(folder / "sweep.json"),
    }


def _sentences(choice: Choice) -> list[str]:
    best, recommended, measure = choice.best, choice.recommended, choice.measure
    if best is None or recommended is None:
        return [
            f"None of the {choice.candidates} candidates is within the limits. The rows have the "
            f"cost of each; raise --max-tokens or --max-ms."
        ]
    lines = [
        f"Best of {choice.allowed} candidates: {_name(best)}, {measure} "
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
