"""What commands that evaluate share: the options that choose systems, and tables of the results."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from pegboard.cli.find import llm_arguments, strategy_option
from pegboard.cli.output import add_options, plain, print_error
from pegboard.cli.tables import count_text, difference_text, list_text, print_table
from pegboard.errors import CompletionError

if TYPE_CHECKING:
    from pegboard.evaluation.comparison import Evaluation
    from pegboard.evaluation.overhead import Overhead
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem

MISSING_SHOWN = 10
"""Missing tools that the warning names; it counts them all."""
OVERHEAD_TITLE = "what the answers took: means of a query; cost and fallbacks of all"
OVERHEAD = ("system", "searches", "LLM calls", "tokens", "USD", "fallbacks")
"""The head of the table of what answers took."""


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Add the golden file, and the options that choose the systems which answer its queries."""
    add_options(parser, "golden", "--board", "--channel", "--release")
    add_options(parser, "--strategy", "--index", "--measure", action="append")
    add_options(parser, "--limit", "--llm", "--llm-api-base", "--max-fallbacks", "--quiet")
    add_options(parser, "--hosted-encoder")


def open_searcher(options: argparse.Namespace) -> "Searcher":
    """Open the release that the options name. Raises QueryError for options without effect."""
    from pegboard.evaluation.searcher import Searcher

    return Searcher.open(options.board, options.channel, options.release, **llm_arguments(options))


def chosen_systems(options: argparse.Namespace, searcher: "Searcher") -> "list[ReleaseSystem]":
    """Every strategy of the options in every index of them.

    Raises ConfigurationError for a strategy that asks an LLM where none was given.
    """
    from pegboard.evaluation.overhead import check_llm
    from pegboard.evaluation.systems import ReleaseSystem

    strategies = [strategy_option(name) for name in options.strategy or [None]]
    systems = [
        ReleaseSystem.resolve(searcher, strategy, index)
        for strategy, index in product(strategies, options.index or [None])
    ]
    if searcher.caller is None:
        strategies = {system.strategy_name: system.strategy for system in systems}
        check_llm(strategies, options.max_fallbacks)
    return systems


def fallbacks_exit_code(name: str, overheads: "Sequence[Overhead]", max_fallbacks: float) -> int:
    """The exit code after results were printed; prints why if fallbacks answered too many queries.

    Args:
        name: of the command.
    """
    from pegboard.evaluation.overhead import check_fallbacks

    try:
        check_fallbacks(overheads, max_fallbacks)
    except CompletionError as error:
        print_error(name, error)
        return error.exit_code
    return 0


def print_differences(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows of `difference_rows`, if there are any."""
    if not rows:
        return
    print(
        f"\nagainst {rows[0]['against']}: the difference with its interval, and p (paired "
        f"randomisation test, Holm)"
    )
    lines = [
        [
            f"{row['strategy']} in {row['index']}",
            row["measure"],
            difference_text(row),
            f"{row['p_holm']:.4f}",
        ]
        for row in rows
    ]
    print_table(["", "measure", "difference", "p"], lines)


def warn_of_missing_tools(name: str, evaluation: "Evaluation") -> None:
    """Name the tools that queries need and the release lacks.

    Args:
        name: of the command.
    """
    if evaluation.unknown:
        names = list_text(map(plain, evaluation.unknown), MISSING_SHOWN)
        print(
            f"{name}: release {evaluation.release} lacks "
            f"{count_text(len(evaluation.unknown), 'tool')} that queries need, which count as not "
            f"found: {names}. Check the file: pegboard golden check",
            file=sys.stderr,
        )


def print_overhead(overheads: "Sequence[Overhead]") -> None:
    """Print what the answers of each system took; nothing if there is no LLM."""
    if lines := overhead_lines([overhead.to_dict() for overhead in overheads]):
        print(f"\n{OVERHEAD_TITLE}")
        print_table(OVERHEAD, lines)


def overhead_lines(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The lines of a table under `OVERHEAD`; none if no LLM was asked or missed.

    Args:
        rows: as `Overhead.to_dict` gives them.
    """
    if not any(row["llm_calls"] or row["fallbacks"] for row in rows):
        return []
    return [
        [
            f"{row['strategy']} in {row['index']}",
            *(f"{row[name] / row['queries']:,.1f}" for name in ("searches", "llm_calls", "tokens")),
            "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.4f}",
            f"{row['fallbacks']} of {row['queries']}",
        ]
        for row in rows
        if row["queries"]
    ]
