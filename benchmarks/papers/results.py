"""What was measured on a benchmark, as JSON values: rows with intervals, differences to the
baseline, what papers report.
"""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.papers.benchmark import Benchmark
from benchmarks.papers.measuring import Measured
from benchmarks.papers.published import DECIDED_BY, PUBLISHED, SETUPS, SHOWN
from benchmarks.papers.reading import counted
from benchmarks.papers.strategies import BASELINE
from pegboard.evaluation.measures import STANDARD, Measure, measures_of
from pegboard.evaluation.results import difference_rows

AGENT_BASELINE = "agents-hybrid"
"""For tasks that ask for agents: their own descriptions, by one hybrid search."""


def default_measures(benchmark: str) -> list[Measure]:
    """What is measured on a benchmark where nobody says otherwise."""
    return measures_of([*SHOWN[benchmark], *STANDARD])


def baseline_of(task: str) -> str:
    """The strategy with which the others of a task are compared."""
    return AGENT_BASELINE if "agent" in task else BASELINE


def result_of(
    benchmark: Benchmark,
    measured: Sequence[Measured],
    measures: Sequence[Measure],
    *,
    boards: Mapping[str, Mapping[str, Any]],
    seconds: Mapping[str, Any],
    problems: Iterable[str] = (),
) -> dict[str, Any]:
    """Everything about one benchmark.

    `rows` have {task, strategy, index, encoder, measure, value, low, high, n}; `differences` say by
    how much a strategy is above the baseline of its task, with p, and `p_holm` for the number of
    strategies (Holm); `published` holds what papers report."""
    unknown = list(dict.fromkeys(name for one in measured for name in one.evaluation.unknown))
    if unknown:
        some = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        problems = [
            *problems,
            f"counted as not found: {counted(len(unknown), 'tool')} that queries need and no "
            f"catalog has: {some}",
        ]
    return {
        "benchmark": benchmark.name,
        "rows": [row for one in measured for row in one.evaluation.rows(task=one.task)],
        "differences": _differences(measured, _decided_by(benchmark.name, measures)),
        "published": [
            row for one in PUBLISHED if one.benchmark == benchmark.name for row in one.rows()
        ],
        "differs": SETUPS[benchmark.name],
        "seconds": dict(seconds),
        "machine": machine(),
        "tools": benchmark.tools,
        "queries": benchmark.queries,
        "boards": {name: dict(board) for name, board in boards.items()},
        "problems": list(dict.fromkeys([*benchmark.problems, *problems])),
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on: no name of it, no path."""
    try:
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        memory = None
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "memory_gib": memory,
    }


def _decided_by(benchmark: str, measures: Sequence[Measure]) -> Measure:
    (wished,) = measures_of([DECIDED_BY.get(benchmark, "Recall@5")])
    return wished if wished in measures else measures[0]


def _differences(measured: Sequence[Measured], measure: Measure) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task in dict.fromkeys(one.task for one in measured):
        own = [one.evaluation for one in measured if one.task == task]
        baseline = next((one for one in own if one.strategy == baseline_of(task)), None)
        if baseline is not None:
            labels = {"task": task, "against": baseline.strategy}
            others = [(one, baseline, labels) for one in own if one is not baseline]
            rows += difference_rows(others, measure)
    return rows
