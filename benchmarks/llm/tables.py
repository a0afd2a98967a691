"""What an experiment measured, as tables of a document."""

from collections.abc import Iterator
from math import sqrt
from statistics import NormalDist

from benchmarks.llm.measured import Experiment, Measured, Row
from benchmarks.papers.published import PUBLISHED
from pegboard.formatting import markdown_table


def markdown(experiment: Experiment, measured: Measured) -> str:
    """Return the tables of an experiment as Markdown."""
    header = [
        *("requests", "n", "strategy", experiment.compared, *experiment.measures),
        *("calls", "tokens"),
    ]
    lines = [
        [
            row.task,
            str(row.queries),
            row.strategy,
            _texts(row.index),
            *(_value(row.values[measure]) for measure in experiment.measures),
            f"{row.calls:.1f}",
            f"{row.tokens:.0f}",
        ]
        for row in measured.rows
    ]
    if experiment.published:
        lines += _published(experiment, measured.rows)
    parts = [f"**{experiment.title}**", ""]
    parts += [*markdown_table(header, lines), ""] if lines else []
    if measured.nothing_fits:
        header = ["strategy", "texts", "nothing fits, rightly", "nothing fits, falsely"]
        lines = [
            [
                verdict.strategy,
                _texts(verdict.index),
                share(verdict.right, verdict.without_answer),
                share(verdict.false, verdict.with_answer),
            ]
            for verdict in measured.nothing_fits
        ]
        parts += [*markdown_table(header, lines), ""]
    for table in measured.more:
        parts += [*markdown_table(table.header, table.lines), ""]
        parts += [table.note, ""] if table.note else []
    return "\n".join(parts)


def share(count: int, number: int) -> str:
    """Return how many of a number of requests, with the share and its 95 % interval by Wilson's
    score, which also holds for none and for all.
    """
    if not number:
        return "0 of 0"
    z = NormalDist().inv_cdf(0.975)
    part = count / number
    centre = part + z * z / (2 * number)
    width = z * sqrt(part * (1 - part) / number + z * z / (4 * number * number))
    low = (centre - width) / (1 + z * z / number)
    high = (centre + width) / (1 + z * z / number)
    return f"{count} of {number}, {part:.3f} [{max(low, 0):.3f}, {min(high, 1):.3f}]"


def _published(experiment: Experiment, rows: list[Row]) -> Iterator[list[str]]:
    """Yield a line for each system of a paper that has figures of these requests."""
    tasks = dict.fromkeys(row.task for row in rows)
    systems: dict[tuple[str, str], dict[str, float]] = {}
    for figure in PUBLISHED:
        task = f"{figure['benchmark']}, {figure['task']}"
        if task in tasks and figure["measure"] in experiment.measures:
            own = systems.setdefault((task, figure["system"]), {})
            own[figure["measure"]] = figure["value"]
    for (task, system), values in systems.items():
        cells = (
            f"{values[measure]:.3f}" if measure in values else "" for measure in experiment.measures
        )
        yield [task, "", f"*{system}*", "", *cells, "", ""]


def _texts(index: str) -> str:
    return "none" if index in ("full", "nothing") else index


def _value(value: tuple[float, float, float]) -> str:
    mean, low, high = value
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"
