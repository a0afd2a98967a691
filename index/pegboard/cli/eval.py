"""`pegboard eval`: what a release finds for golden queries, by any strategies in any of its
indexes.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from pegboard.cli.find import strategy_option
from pegboard.cli.output import Subparsers, add_board_option, plain, print_json
from pegboard.errors import QueryError

if TYPE_CHECKING:
    from pegboard.evaluation.evaluate import Evaluation
    from pegboard.evaluation.judged import JudgedRelease

SHOWN = ("Recall@1", "Recall@5", "Recall@10", "Complete@5", "nDCG@5", "mAP@10")
EPILOG = """\
A golden file has one query in each line, with the true names, agent/name or ids of all tools that are right for it:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
  {"query": "book a table and invite Ana", "tools": ["book_table", "invite"], "kind": "parallel"}
Thirty queries are the least that says anything, and they should be as people ask; `pegboard golden check` looks them over.

Every strategy is asked in every index; the first of them is the baseline of the differences, or that of --against. A query for
which nothing is found counts as 0, and so does a tool that the release does not have.

examples:
  pegboard eval golden.jsonl --board ./board
  pegboard eval golden.jsonl --board ./board --strategy search --strategy clauses --index full --index fine --by kind
  pegboard eval golden.jsonl --board ./board --release 83b384 --against live --measure Recall@5 --measure "F1>=0.5" --json"""


def register_eval(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "eval",
        help="measure what a release finds for golden queries",
        description="Measure what a release finds for golden queries, by any strategies in any of "
        "its indexes, with 95 % intervals.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "golden", help="JSON lines of queries with the tools that are right for them"
    )
    add_board_option(parser)
    parser.add_argument("--channel", default="live", help="the channel to ask (default: live)")
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or its beginning"
    )
    parser.add_argument(
        "--index",
        action="append",
        metavar="NAME",
        help="an index; may be repeated (default: the strategy's)",
    )
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="PLAN",
        help="a strategy's name or JSON file; may be repeated (default: the release's)",
    )
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help=f"such as Recall@5, F1@5, mAP@10, MRR, F1>=0.5; may be repeated (default: "
        f"{', '.join(SHOWN)})",
    )
    parser.add_argument(
        "--against",
        metavar="RELEASE",
        help="compare with this release or channel, asked by its own strategy and index",
    )
    parser.add_argument(
        "--by",
        choices=("kind", "catalog"),
        action="append",
        help="measure each kind or catalog, too",
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        metavar="N",
        help="show the N queries that were answered worst",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N queries only")
    parser.add_argument(
        "--llm", metavar="MODEL", help="a LiteLLM model that parts of a strategy may ask"
    )
    parser.add_argument(
        "--llm-api-base", metavar="URL", help="where that model is served, if not by its provider"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: release, rows, differences, groups, worst, unknown",
    )
    parser.set_defaults(run=_eval)


def _eval(options: argparse.Namespace) -> int:
    from pegboard.evaluation.evaluate import evaluate
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.judged import JudgedRelease
    from pegboard.evaluation.measures import measures_of
    from pegboard.evaluation.results import results

    measures = measures_of(options.measure or SHOWN)
    queries = read_queries(options.golden)[: options.limit]
    if options.llm_api_base and not options.llm:
        raise QueryError("--llm-api-base is about a model. Expected --llm MODEL beside it.")
    where = {"api_base": options.llm_api_base} if options.llm_api_base else {}
    judged = JudgedRelease.open(
        options.board, options.channel, options.release, llm=options.llm, llm_options=where
    )
    strategies = [strategy_option(name) for name in options.strategy or [None]]
    indexes = [judged.loaded.index_name(name) if name else None for name in options.index or [None]]
    for strategy in strategies:
        judged.strategy(strategy)
    systems = [(judged, strategy, index) for strategy, index in product(strategies, indexes)]
    if options.against:
        systems.insert(0, (_other(options, judged), None, None))
    advance = _progress(len(systems) * len(queries), options.quiet)
    found: list[Evaluation] = [
        evaluate(one, queries, strategy=strategy, index=index, measures=measures, advance=advance)
        for one, strategy, index in systems
    ]
    if options.json:
        print_json(results(found, options.by or (), options.worst))
    else:
        _print(found, options.by or (), options.worst)
    for one in {evaluation.release: evaluation for evaluation in found}.values():
        if one.unknown:
            print(
                f"pegboard eval: release {one.release} lacks {len(one.unknown)} tools that "
                f"queries need, which count as not found: "
                f"{plain(', '.join(one.unknown[:10]))}{', ...' if len(one.unknown) > 10 else ''}. "
                f"`pegboard golden check` says more.",
                file=sys.stderr,
            )
    return 0


def _other(options: argparse.Namespace, judged: "JudgedRelease") -> "JudgedRelease":
    """The release of --against: a channel of that name, or a release."""
    from pegboard.evaluation.judged import JudgedRelease
    from pegboard.store.releases import ReleaseStore

    named = ReleaseStore(options.board).channel(options.against)
    found = JudgedRelease.open(options.board, release=named.release if named else options.against)
    return JudgedRelease(found.loaded, judged.vectors, judged.caller)


def _print(found: "Sequence[Evaluation]", by: Sequence[Any], worst: int) -> None:
    from pegboard.evaluation.results import differences, system_name, worst_of

    print(
        f"{len(found[0].answers)} queries, release {found[-1].release}; the mean and its 95 % "
        f"interval"
    )
    measures = list(found[0].values)
    rows = [
        [system_name(one, found), *(str(one.interval(measure)) for measure in measures)]
        for one in found
    ]
    _print_table(["", *map(str, measures)], rows)
    if gaps := differences(found):
        print(
            f"\nagainst {gaps[0]['against']}: the difference, its interval, and how often chance "
            f"alone would do as much (p, Holm)"
        )
        rows = [
            [
                f"{row['strategy']} in {row['index']}",
                row["measure"],
                f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]",
                f"{row['p_holm']:.4f}",
            ]
            for row in gaps
        ]
        _print_table(["", "measure", "difference", "p"], rows)
    for name in by:
        print(f"\nby {name}")
        groups = [row for one in found for row in one.group_rows(name)]
        rows = [
            [
                plain(row[name]),
                f"{row['strategy']} in {row['index']}",
                row["measure"],
                f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
                str(row["n"]),
            ]
            for row in groups
        ]
        _print_table([name, "", "measure", "mean", "queries"], rows)
    for one in found if worst else ():
        print(f"\nworst of {system_name(one, found)}")
        for query in worst_of(one, worst)["queries"]:
            ranks = ", ".join(
                f"{plain(name)} {f'at {rank}' if rank else 'not found'}"
                for name, rank in query["ranks"].items()
            )
            print(
                f"  {plain(query['query'])}\n      needs {ranks}; found "
                f"{plain(', '.join(query['found'])) or 'nothing'}"
            )


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _progress(total: int, quiet: bool) -> Callable[[int], None]:
    """Says how many queries were answered, at most a line for every twentieth of them."""
    done = said = 0

    def advance(more: int) -> None:
        nonlocal done, said
        done += more
        if not quiet and (done == total or (done - said) * 20 >= total):
            said = done
            print(f"asked: {done} of {total}", file=sys.stderr)

    return advance
