"""The result of a benchmark as tables: for a terminal, and as Markdown between the marks of a
document.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.published import SHOWN
from benchmarks.papers.results import baseline_of
from pegboard.cli.output import plain
from pegboard.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Table:
    """One task: a line for each strategy, then what papers report.

    Attributes:
        title: the task, how many queries it has, what the strategies are compared with.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    published: tuple[tuple[str, ...], ...]


def tables_of(result: Mapping[str, Any], measures: Sequence[str] | None = None) -> list[Table]:
    """The tables of a benchmark's result (see `result_of`).

    Args:
        measures: the columns; the benchmark's own choice if None.
    """
    rows: list[dict[str, Any]] = result["rows"]
    known = list(dict.fromkeys(row["measure"] for row in rows))
    shown = [one for one in (measures or SHOWN[result["benchmark"]]) if one in known] or known[:4]
    sizes = {row["task"]: row["n"] for row in rows}
    repeated = {one for one in ("single", "multi") if sizes.get(one) == sizes.get("all")}
    return [_table(result, task, shown, n) for task, n in sizes.items() if task not in repeated]


def printed(result: Mapping[str, Any], measures: Sequence[str] | None = None) -> str:
    """The tables for a terminal, with what differs from the papers and what was left out."""
    parts: list[str] = []
    for table in tables_of(result, measures):
        every = [table.header, *table.lines, *table.published]
        widths = [max(len(line[at]) for line in every) for at in range(len(table.header))]
        parts += [
            "",
            plain(table.title),
            *(_padded(line, widths) for line in (table.header, *table.lines)),
        ]
        if table.published:
            parts += ["  published:", *(_padded(line, widths) for line in table.published)]
    parts += ["", f"What differs: {result['differs']}"]
    parts += [f"Mind: {plain(problem)}" for problem in result["problems"]]
    parts.append(
        "seconds: " + ", ".join(f"{name} {value:.1f}" for name, value in _flat(result["seconds"]))
    )
    return "\n".join(parts).strip("\n")


def markdown(result: Mapping[str, Any]) -> str:
    """The same as Markdown."""
    parts = [f"### {result['benchmark']}", "", str(result["differs"]), ""]
    parts += [f"- {_escaped(problem)}" for problem in result["problems"]]
    for table in tables_of(result):
        parts += [
            "",
            f"**{table.title}**",
            "",
            _row(table.header),
            _row(["---"] * len(table.header)),
        ]
        parts += [_row(line) for line in table.lines]
        parts += [_row([f"*{line[0]}*", *line[1:]]) for line in table.published]
    return "\n".join(parts).replace("\n\n\n", "\n\n").strip() + "\n"


def write_between_marks(file: Path, name: str, text: str) -> None:
    """Put text between `<!-- bench NAME -->` and `<!-- /bench NAME -->`. Raises ConfigurationError
    if the marks are not there.
    """
    if missing := missing_marks(file, [name]):
        raise ConfigurationError(missing)
    begin, end = _marks(name)
    before, _, rest = file.read_text("utf-8").partition(begin)
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}", "utf-8")
    beside.replace(file)


def missing_marks(file: Path, names: Iterable[str]) -> str:
    """What is wrong with a document into which the results of those benchmarks are to be written;
    empty if nothing is.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return (
            f"{file} cannot be written into: {getattr(error, 'strerror', None) or error}. Give "
            f"a text file that is there."
        )
    missing = [name for name in names if any(text.count(mark) != 1 for mark in _marks(name))]
    if not missing:
        return ""
    begin, end = _marks(missing[0])
    return (
        f"{file} has no place for {', '.join(missing)}. Expected the lines {begin} and {end} once, "
        "and likewise for each benchmark; what stands between them is replaced."
    )


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- bench {name} -->", f"<!-- /bench {name} -->"


def _table(result: Mapping[str, Any], task: str, shown: Sequence[str], n: int) -> Table:
    own = [row for row in result["rows"] if row["task"] == task]
    by = {(row["strategy"], row["index"], row["measure"]): row for row in own}
    differences = {
        (row["strategy"], row["index"]): row for row in result["differences"] if row["task"] == task
    }
    decided = next((row["measure"] for row in differences.values()), "")
    several = len({row["index"] for row in own}) > 1
    lines = [
        (
            strategy,
            *([index] if several else []),
            *(_interval(by.get((strategy, index, measure))) for measure in shown),
            _difference(differences.get((strategy, index))),
        )
        for strategy, index in dict.fromkeys((row["strategy"], row["index"]) for row in own)
    ]
    published = list(
        _published([row for row in result["published"] if row["task"] == task], shown, several)
    )
    title = f"{result['benchmark']}, {task}: {n:,} queries, {_searched(result, task)}"
    last = f"{decided} above {baseline_of(task)}, p" if decided else ""
    header = ("strategy", *(["index"] if several else []), *shown, last)
    return Table(title, header, tuple(lines), tuple(published))


def _searched(result: Mapping[str, Any], task: str) -> str:
    boards: Mapping[str, Any] = result["boards"]
    if "agent" in task:
        return f"{max(board['agents'] for board in boards.values()):,} agents"
    return f"{boards[task]['tools'] if task in boards else result['tools']:,} tools"


def _published(
    rows: Sequence[Mapping[str, Any]], shown: Sequence[str], several: bool
) -> Iterator[tuple[str, ...]]:
    for system in dict.fromkeys(row["system"] for row in rows):
        values = {row["measure"]: row["value"] for row in rows if row["system"] == system}
        others = ", ".join(
            f"{name} {value:.3f}" for name, value in values.items() if "@" not in name
        )
        cells = (f"{values[measure]:.3f}" if measure in values else "" for measure in shown)
        yield (system, *([""] if several else []), *cells, others)


def _interval(row: Mapping[str, Any] | None) -> str:
    return f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" if row else ""


def _difference(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    p = row["p_holm"]
    return (
        f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}], "
        f"{'<.001' if p < 0.001 else f'{p:.3f}'}"
    )


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return (
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    return plain(text).replace("|", "\\|").replace("<", "&lt;")


def _flat(seconds: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in seconds.items() if isinstance(value, int | float)]
