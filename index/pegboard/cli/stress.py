"""`pegboard stress`: golden queries among more and more distractors."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_command, add_json_option, plain, print_json
from pegboard.cli.systems import (
    add_system_options,
    chosen_systems,
    fallbacks_exit_code,
    open_searcher,
    print_overhead,
)
from pegboard.cli.tables import count_text, interval_text, list_text, print_table, progress_lines
from pegboard.errors import QueryError

if TYPE_CHECKING:
    from pegboard.evaluation.stress import Stress

WHOLE = "all"
KINDS = ("random", "nearest")
MISSING_SHOWN = 10
"""Missing tools that the warning names."""
EPILOG = """\
For each query the candidates are its right tools and, for each of them, as many distractors as
--noise says: random ones, or the nearest by the vectors of the index. `all` searches all tools of
the release. Every strategy searches the same candidates, and smaller noise is part of larger noise.
Recall@5 looks at the first five results; F1 at all of them, at most ten, so that without noise it
is 1, as in Retrieval-Plan-Select, whose experiment this is.

examples:
  pegboard stress golden.jsonl --board ./board
  pegboard stress golden.jsonl --board ./board --strategy search --strategy clauses --noise 0,10,50
  pegboard stress golden.jsonl --board ./board --limit 100 --measure Recall@5 --json > stress.json
"""

Row = dict[str, Any]


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "stress",
        _stress,
        EPILOG,
        help="measure what is found among more and more distractors",
        description="Measure how many of the right tools are found among more and more "
        "distractors.",
    )
    add_system_options(parser)
    parser.add_argument(
        "--noise",
        default="0,10,30,50,all",
        metavar="N,...",
        help="distractors for each right tool, or all (default: 0,10,30,50,all)",
    )
    add_json_option(parser, "rows, against_none, against_first, ...")


def _stress(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.stress import STRESS_MEASURES, stress

    noise = _counts(options.noise)
    queries = read_queries(options.golden)[: options.limit]
    counts = [count for count in noise if count is not None]
    whole = None in noise
    levels = (0 in counts) + len(KINDS) * sum(count > 0 for count in counts) + whole
    with closing(open_searcher(options)) as searcher:
        systems = chosen_systems(options, searcher)
        result = stress(
            systems,
            queries,
            counts=counts,
            whole=whole,
            measures=options.measure or STRESS_MEASURES,
            advance=progress_lines(
                "asked", levels * len(systems) * len(queries), quiet=options.quiet
            ),
        )
    if options.json:
        print_json(result.to_dict())
    else:
        _print(result.to_dict())
        print_overhead(result.overheads)
    _warn(result)
    return fallbacks_exit_code("pegboard stress", result.overheads, options.max_fallbacks)


def _counts(text: str) -> list[int | None]:
    """The numbers of distractors; None for all tools."""
    words = [word.strip() for word in text.split(",")]
    if invalid := [word for word in words if word != WHOLE and not word.isdecimal()]:
        raise QueryError(
            f"--noise has {', '.join(map(repr, invalid))}; expected numbers and `{WHOLE}`, as in "
            f"0,10,50,{WHOLE}."
        )
    return list(dict.fromkeys(None if word == WHOLE else int(word) for word in words))


def _print(result: Row) -> None:
    print(
        f"{result['queries']} queries, release {result['release']}; near by the vectors of index "
        f"{result['near_by']}"
    )
    print("the mean and its 95 % interval; p: paired randomisation test (Holm)\n")
    measures = list(dict.fromkeys(row["measure"] for row in result["rows"]))
    lines = _pivoted(
        result["rows"],
        lambda row: (_noise(row), f"{row['candidates']:g}", _system(row)),
        lambda row: row["measure"],
        interval_text,
    )
    _print_pivoted(["noise", "candidates", ""], measures, lines)
    for title, rows in (
        ("against no noise", result["against_none"]),
        ("against the first strategy", result["against_first"]),
    ):
        if rows:
            print(f"\n{title}")
            lines = _pivoted(
                rows,
                lambda row: (_noise(row), _system(row)),
                lambda row: row["measure"],
                lambda row: f"{row['value']:+.3f} (p {row['p_holm']:.4f})",
            )
            _print_pivoted(["noise", ""], measures, lines)


def _pivoted(
    rows: Iterable[Row],
    key: Callable[[Row], tuple[str, ...]],
    column: Callable[[Row], str],
    text: Callable[[Row], str],
) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows as one line for each key, with a cell for each column."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        lines.setdefault(key(row), {})[column(row)] = text(row)
    return lines


def _print_pivoted(
    keys: Sequence[str], columns: Sequence[str], lines: dict[tuple[str, ...], dict[str, str]]
) -> None:
    print_table(
        [*keys, *columns],
        [[*key, *(cells[column] for column in columns)] for key, cells in lines.items()],
    )


def _system(row: Row) -> str:
    from pegboard.evaluation.comparison import system_text

    return system_text(row["strategy"], row["index"], row.get("fallbacks", 0.0))


def _noise(row: Row) -> str:
    counted = row["distractors"] in KINDS
    return f"{row['noise']} {row['distractors']}" if counted else row["distractors"]


def _warn(result: "Stress") -> None:
    warnings: list[str] = []
    if result.left_out:
        warnings.append(
            f"left out: {count_text(result.left_out, 'query', 'queries')} of which the release has "
            f"no tool"
        )
    if missing := result.first.unknown:
        names = list_text(map(plain, missing), MISSING_SHOWN)
        warnings.append(f"tools that the release lacks count as not found: {names}")
    for warning in warnings:
        print(f"pegboard stress: {warning}. Check the file: pegboard golden check", file=sys.stderr)
