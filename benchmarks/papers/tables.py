"""The result of a benchmark as tables: for a terminal, and as Markdown in a document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.papers.measuring import baseline_of
from benchmarks.papers.published import SHOWN
from pegboard.evaluation.dependency_errors import account_lines
from pegboard.evaluation.overhead import OVERHEAD, OVERHEAD_TITLE, overhead_lines
from pegboard.formatting import (
    difference_text,
    interval_text,
    markdown_table,
    markdown_text,
    plain,
    table_lines,
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """One task: a line for each strategy, then the figures of papers."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    published: tuple[tuple[str, ...], ...]


def tables_of(result: Row, measures: Sequence[str] | None = None) -> list[Table]:
    """The tables of a benchmark's result (see `result_of`).

    Args:
        measures: the columns; the benchmark's own choice if None.
    """
    rows: list[dict[str, Any]] = result["rows"]
    existing = list(dict.fromkeys(row["measure"] for row in rows))
    shown = [one for one in (measures or SHOWN[result["benchmark"]]) if one in existing]
    sizes = {row["task"]: row["n"] for row in rows}
    if means := result.get("means"):
        first = next(iter(means))
        columns = shown or existing[:4]
        return [_table(result, first, columns, sizes[first]), _parts_table(result, columns)]
    repeated = {task for task in ("single", "multi") if sizes.get(task) == sizes.get("all")}
    columns = shown or existing[:4]
    return [_table(result, task, columns, n) for task, n in sizes.items() if task not in repeated]


def printed(result: Row, measures: Sequence[str] | None = None) -> str:
    """The tables for a terminal, with the differences from the papers, and problems."""
    parts: list[str] = []
    for table in tables_of(result, measures):
        lines = table_lines(table.header, [*table.lines, *table.published], "  ")
        if table.published:
            lines.insert(1 + len(table.lines), "  published:")
        parts += ["", plain(table.title), *lines]
    if lines := overhead_lines(result["overhead"]):
        parts += ["", OVERHEAD_TITLE, *table_lines(OVERHEAD, lines, "  ")]
    for account in result.get("dependencies", ()):
        parts += ["", *account_lines(account)]
    parts += ["", f"What differs: {result['differs']}"]
    parts += [f"Note: {plain(problem)}" for problem in result["problems"]]
    seconds = (
        f"{name} {value:.1f}"
        for name, value in result["seconds"].items()
        if isinstance(value, int | float)
    )
    parts.append("seconds: " + ", ".join(seconds))
    return "\n".join(parts).strip("\n")


def markdown(result: Row) -> str:
    """The same as Markdown."""
    parts = [str(result["differs"]), ""]
    parts += [f"- {markdown_text(problem)}" for problem in result["problems"]]
    for table in tables_of(result):
        published = [(f"*{line[0]}*", *line[1:]) for line in table.published]
        lines = markdown_table(table.header, [*table.lines, *published])
        parts += ["", f"**{table.title}**", "", *lines]
    if lines := overhead_lines(result["overhead"]):
        parts += ["", f"**{OVERHEAD_TITLE}**", "", *markdown_table(OVERHEAD, lines)]
    return "\n".join(parts).replace("\n\n\n", "\n\n").strip() + "\n"


def _table(result: Row, task: str, measures: Sequence[str], n: int) -> Table:
    own = [row for row in result["rows"] if row["task"] == task]
    by_system = {(row["strategy"], row["index"], row["measure"]): row for row in own}
    differences = {
        (row["strategy"], row["index"]): row for row in result["differences"] if row["task"] == task
    }
    decided_by = next((row["measure"] for row in differences.values()), "")
    several = len({row["index"] for row in own}) > 1
    lines = [
        (
            strategy + _fallbacks(own, strategy, index),
            *([index] if several else []),
            *(_mean(by_system.get((strategy, index, measure))) for measure in measures),
            _difference(differences.get((strategy, index))),
        )
        for strategy, index in dict.fromkeys((row["strategy"], row["index"]) for row in own)
    ]
    published = [row for row in result["published"] if row["task"] == task]
    last = f"{decided_by} above {baseline_of(task)}, p" if decided_by else ""
    return Table(
        f"{result['benchmark']}, {task}: {n:,} queries, {_searched(result, task)}",
        ("strategy", *(["index"] if several else []), *measures, last),
        tuple(lines),
        tuple(_published(published, measures, several)),
    )


def _parts_table(result: Row, measures: Sequence[str]) -> Table:
    """What one strategy, the default one if it was asked, reaches by means and by what the first
    of them is a mean of."""
    means: Mapping[str, Sequence[str]] = result["means"]
    names = [row["strategy"] for row in result["rows"]]
    strategy = "default" if "default" in names else names[0]
    own = {
        (row["task"], row["measure"]): row for row in result["rows"] if row["strategy"] == strategy
    }
    tasks = [*means, *means[next(iter(means))]]
    lines = [
        (task, f"{row['n']:,}", *(_mean(own.get((task, one))) for one in measures))
        for task in tasks
        if (row := own.get((task, measures[0])))
    ]
    title = f"{result['benchmark']}, by kind of request and by catalog: {strategy}"
    return Table(title, ("requests", "number", *measures), tuple(lines), ())


def _searched(result: Row, task: str) -> str:
    # Boards with indexes of one's own have the file's name in brackets behind theirs.
    boards = {name.partition(" (")[0]: board for name, board in result["boards"].items()}
    if "agent" in task:
        return f"{max(board['agents'] for board in boards.values()):,} agents"
    return f"{boards[task]['tools'] if task in boards else result['tools']:,} tools"


def _published(
    rows: Sequence[Row], measures: Sequence[str], several: bool
) -> Iterator[tuple[str, ...]]:
    for system in dict.fromkeys(row["system"] for row in rows):
        values = {row["measure"]: row["value"] for row in rows if row["system"] == system}
        whole = (f"{name} {value:.3f}" for name, value in values.items() if "@" not in name)
        cells = (f"{values[measure]:.3f}" if measure in values else "" for measure in measures)
        yield (system, *([""] if several else []), *cells, ", ".join(whole))


def _fallbacks(rows: Sequence[Row], strategy: str, index: str) -> str:
    """The share of queries that fallbacks answered, as an addition to a strategy's name."""
    system = (strategy, index)
    row = next(one for one in rows if (one["strategy"], one["index"]) == system)
    return f" ({row['fallbacks']:.0%} by fallbacks)" if "fallbacks" in row else ""


def _mean(row: Row | None) -> str:
    return interval_text(row) if row else ""


def _difference(row: Row | None) -> str:
    if row is None:
        return ""
    p = row["p_holm"]
    return f"{difference_text(row)}, {'<.001' if p < 0.001 else f'{p:.3f}'}"
