"""`pegboard eval`: what a release finds for golden queries, by any strategies in any indexes."""

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_command, add_json_option, plain, print_json
from pegboard.cli.systems import (
    add_system_options,
    chosen_systems,
    fallbacks_exit_code,
    open_searcher,
    print_differences,
    print_overhead,
    warn_of_missing_tools,
)
from pegboard.cli.tables import (
    count_text,
    interval_text,
    print_table,
    progress_lines,
)

if TYPE_CHECKING:
    from pegboard.evaluation.comparison import Evaluation
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem

SHOWN = ("Recall@1", "Recall@5", "Recall@10", "Complete@5", "nDCG@5", "mAP@10")
EPILOG = """\
A golden file has one query in each line, with the true names, agent/name or ids of the right tools:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
  {"query": "book a table and invite Ana", "tools": ["book_table", "invite"], "kind": "parallel"}
Use at least thirty queries, worded as users word them; `pegboard golden check` checks the file.

Every strategy is evaluated in every index. The first system is the baseline of the differences, or
the release of --against. A query without a result counts as 0, and so does a tool that the release
does not have.

examples:
  pegboard eval golden.jsonl --board ./board
  pegboard eval golden.jsonl --board ./board --strategy search --strategy clauses --by kind
  pegboard eval golden.jsonl --board ./board --release 83b384 --against live --measure "F1>=0.5"
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval",
        _eval,
        EPILOG,
        help="measure what a release finds for golden queries",
        description="Measure what a release finds for golden queries, by any strategies in any of "
        f"its indexes, with 95 % intervals. Measures by default: {', '.join(SHOWN)}.",
    )
    add_system_options(parser)
    parser.add_argument(
        "--against",
        metavar="RELEASE",
        help="compare with this release or channel, by its own strategy and index",
    )
    parser.add_argument(
        "--by",
        choices=("kind", "catalog"),
        action="append",
        help="also measure each kind of query, or each catalog",
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        metavar="N",
        help="show the N queries with the worst results",
    )
    add_json_option(parser, "release, rows, differences, overhead, groups, worst, unknown")


def _eval(options: argparse.Namespace) -> int:
    from pegboard.evaluation.comparison import comparison, evaluate
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.measures import measures_of

    measures = measures_of(options.measure or SHOWN)
    with closing(open_searcher(options)) as searcher:
        queries = read_queries(options.golden)[: options.limit]
        systems = chosen_systems(options, searcher)
        if options.against:
            systems.insert(0, _baseline(options, searcher))
        advance = progress_lines("asked", len(systems) * len(queries), quiet=options.quiet)
        evaluations = [evaluate(system, queries, measures, advance=advance) for system in systems]
    overheads = [evaluation.overhead for evaluation in evaluations]
    if options.json:
        print_json(comparison(evaluations, options.by or (), options.worst))
    else:
        print_evaluations(evaluations, options.by or (), options.worst)
    for evaluation in {one.release: one for one in evaluations}.values():
        warn_of_missing_tools("pegboard eval", evaluation)
    return fallbacks_exit_code("pegboard eval", overheads, options.max_fallbacks)


def _baseline(options: argparse.Namespace, searcher: "Searcher") -> "ReleaseSystem":
    """The release of --against, a channel or an id, by its own strategy and index."""
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem
    from pegboard.store.releases import ReleaseStore

    release = ReleaseStore(options.board).named(options.against)
    other = Searcher.open(options.board, release=release.id)
    return ReleaseSystem.resolve(Searcher(other.loaded, searcher.vectors, searcher.caller))


def print_evaluations(
    evaluations: "Sequence[Evaluation]", by: Sequence[Any] = (), worst: int = 0
) -> None:
    """Print evaluations of the same queries, their differences, and what their answers took.

    Args:
        by: print the measures of each `kind` or `catalog`, too.
        worst: how many of the worst queries of each system to print.
    """
    from pegboard.evaluation.comparison import differences, system_name

    first = evaluations[0]
    print(
        f"{count_text(len(first.results), 'query', 'queries')}, release "
        f"{evaluations[-1].release}; the mean and its 95 % interval"
    )
    rows = [
        [system_name(one, evaluations), *(str(one.interval(measure)) for measure in first.values)]
        for one in evaluations
    ]
    print_table(["", *map(str, first.values)], rows)
    print_differences(differences(evaluations))
    for name in by:
        print(f"\nby {name}")
        rows = [
            [row[name], one.system, row["measure"], interval_text(row), str(row["n"])]
            for one in evaluations
            for row in one.group_rows(name)
        ]
        print_table([name, "", "measure", "mean", "queries"], rows)
    for one in evaluations if worst else ():
        print(f"\nworst of {system_name(one, evaluations)}")
        _print_worst(one.worst(worst))
    print_overhead([evaluation.overhead for evaluation in evaluations])


def _print_worst(queries: Sequence[dict[str, Any]]) -> None:
    for query in queries:
        ranks = ", ".join(
            f"{name} {f'at {rank}' if rank else 'not found'}"
            for name, rank in query["ranks"].items()
        )
        found = ", ".join(query["found"]) or "nothing"
        print(plain(f"  {query['query']}"))
        print(plain(f"      needs {ranks}; found {found}"))
