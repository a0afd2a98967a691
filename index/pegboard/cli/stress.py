"""`pegboard stress`: golden queries among few and many distractors, by chance and near ones, and
the tools that look alike.
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
    from pegboard.evaluation.stress import Stress

WHOLE = "all"
PAIRS = 5
"""Pairs of tools that are shown for each cosine."""
SIDES = {True: "that collide", False: "others"}
EPILOG = """\
For each query the candidates are its right tools and, for each of them, so many others as --noise says: drawn by chance, or the
nearest by the vectors of the index. `all` asks among all tools of the release. Every strategy is asked among the same candidates, and
the smaller noise is part of the larger. Recall@5 looks at the first five that are returned; F1 at all that are, at most ten, so
that without noise it is 1, as in Retrieval-Plan-Select, whose experiment this is.

Two tools collide if their cosine is that of --collisions or more; what is found is told apart by whether a query's tools do.

examples:
  pegboard stress golden.jsonl --board ./board
  pegboard stress golden.jsonl --board ./board --strategy search --strategy clauses --distractors nearest --noise 0,10,50
  pegboard stress golden.jsonl --board ./board --limit 100 --measure Recall@5 --json > stress.json"""


def register_stress(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "stress",
        help="measure what is found among more and more distractors",
        description="Measure how much of the right tools is found among more and more "
        "distractors, and which tools look alike.",
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
        "--noise",
        default="0,10,30,50,all",
        metavar="N,...",
        help="distractors for each right tool, or all (default: 0,10,30,50,all)",
    )
    parser.add_argument(
        "--distractors",
        choices=("random", "nearest", "both"),
        default="both",
        help="which ones (default: both)",
    )
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="PLAN",
        help="a strategy's name or JSON file; may be repeated, the first is the baseline "
        "(default: the release's)",
    )
    parser.add_argument(
        "--index",
        action="append",
        metavar="NAME",
        help="an index; may be repeated (default: the strategy's)",
    )
    parser.add_argument(
        "--measure", action="append", metavar="NAME", help="such as Recall@5, F1@5; may be repeated"
    )
    parser.add_argument(
        "--collisions",
        default="0.9,0.95",
        metavar="COSINE,...",
        help="from which on tools collide (default: 0.9,0.95)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="which distractors are drawn by chance (default: 0)"
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
        help="print one JSON object: rows, against_none, against_first, collisions, ...",
    )
    parser.set_defaults(run=_stress)


def _stress(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.judged import JudgedRelease
    from pegboard.evaluation.stress import STRESS_MEASURES, System, stress

    counts, leasts = _counts(options.noise), _cosines(options.collisions)
    queries = read_queries(options.golden)[: options.limit]
    if options.llm_api_base and not options.llm:
        raise QueryError("--llm-api-base is about a model. Expected --llm MODEL beside it.")
    where = {"api_base": options.llm_api_base} if options.llm_api_base else {}
    judged = JudgedRelease.open(
        options.board, options.channel, options.release, llm=options.llm, llm_options=where
    )
    strategies = [strategy_option(name) for name in options.strategy or [None]]
    systems = [
        System(strategy, index) for strategy, index in product(strategies, options.index or [None])
    ]
    kinds: Any = ("random", "nearest") if options.distractors == "both" else (options.distractors,)
    numbers = [one for one in counts if one is not None]
    asked = (0 in numbers) + len(kinds) * sum(one > 0 for one in numbers) + (None in counts)
    found = stress(
        judged,
        queries,
        systems,
        counts=numbers,
        kinds=kinds,
        whole=None in counts,
        measures=options.measure or STRESS_MEASURES,
        leasts=leasts,
        seed=options.seed,
        advance=_progress(asked * len(systems) * len(queries), options.quiet),
    )
    if options.json:
        print_json(found.to_dict())
    else:
        _print(found)
    _warn(found)
    return 0


def _counts(text: str) -> list[int | None]:
    """The numbers of distractors; None for all tools."""
    words = [one.strip() for one in text.split(",")]
    if wrong := [one for one in words if one != WHOLE and not one.isdecimal()]:
        raise QueryError(
            f"--noise has {', '.join(map(repr, wrong))}; expected numbers and `{WHOLE}`, as in "
            f"0,10,50,{WHOLE}."
        )
    return list(dict.fromkeys(None if one == WHOLE else int(one) for one in words))


def _cosines(text: str) -> list[float]:
    try:
        cosines = [float(one) for one in text.split(",") if one.strip()]
    except ValueError:
        cosines = [0.0]
    if not all(0 < one <= 1 for one in cosines):
        raise QueryError(
            f"--collisions is {text!r}; expected cosines above 0, at most 1, as in 0.9,0.95."
        )
    return list(dict.fromkeys(cosines))


def _print(found: "Stress") -> None:
    said = found.to_dict()
    print(
        f"{said['queries']} queries, release {said['release']}; near by the vectors of index "
        f"{said['near_by']}"
    )
    print("the mean and its 95 % interval; p: how often chance alone would do as much (Holm)\n")
    measures = list(dict.fromkeys(row["measure"] for row in said["rows"]))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in said["rows"]:
        key = (_noise(row), f"{row['candidates']:g}", f"{row['strategy']} in {row['index']}")
        lines.setdefault(key, {})[row["measure"]] = (
            f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        )
    _table(
        ["noise", "candidates", "", *measures],
        [[*key, *(cells[one] for one in measures)] for key, cells in lines.items()],
    )
    for title, rows in (
        ("against no noise", said["against_none"]),
        ("against the first strategy", said["against_first"]),
    ):
        if rows:
            print(f"\n{title}")
            _table(["noise", "", *measures], _differences(rows, measures))
    for one in said["collisions"]:
        _print_collisions(
            one, [row for row in said["by_collision"] if row["least"] == one["least"]]
        )


def _print_collisions(one: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    print(
        f"\n{one['total']} pairs of {one['tools']} tools ({one['density']:.2g} of all) have a "
        f"cosine of {one['least']:g} or more; "
        f"{one['colliding']} tools are in one"
    )
    for pair in one["pairs"][:PAIRS]:
        print(f"  {pair['cosine']:.3f}  {plain(pair['first'])}  {plain(pair['second'])}")
    counts = {row["colliding"]: row["n"] for row in rows}
    if len(counts) < 2:
        print(
            "no query needs any of them" if True not in counts else "every query needs one of them"
        )
        return
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    heads = [f"{name}, {counts[side]} {SIDES[side]}" for name in measures for side in (True, False)]
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        key = (_noise(row), f"{row['strategy']} in {row['index']}")
        head = f"{row['measure']}, {row['n']} {SIDES[row['colliding']]}"
        lines.setdefault(key, {})[head] = (
            f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        )
    _table(
        ["noise", "", *heads],
        [[*key, *(cells[head] for head in heads)] for key, cells in lines.items()],
    )


def _differences(rows: Sequence[dict[str, Any]], measures: Sequence[str]) -> list[list[str]]:
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        key = (_noise(row), f"{row['strategy']} in {row['index']}")
        lines.setdefault(key, {})[row["measure"]] = f"{row['value']:+.3f} (p {row['p_holm']:.4f})"
    return [[*key, *(cells[one] for one in measures)] for key, cells in lines.items()]


def _noise(row: dict[str, Any]) -> str:
    return (
        f"{row['noise']} {row['distractors']}"
        if row["distractors"] in ("random", "nearest")
        else row["distractors"]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    kept = [at for at in range(len(head)) if head[at] or any(row[at] for row in rows)]
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(row[at].ljust(widths[at]) for at in kept).rstrip())


def _warn(found: "Stress") -> None:
    first = next(iter(found.found.values()))[0]
    said: list[str] = []
    if found.left_out:
        said.append(
            f"{found.left_out} queries were left out, since the release has none of their tools"
        )
    if first.unknown:
        names = plain(", ".join(first.unknown[:10])) + (", ..." if len(first.unknown) > 10 else "")
        said.append(f"tools that the release lacks count as not found: {names}")
    for one in said:
        print(f"pegboard stress: {one}. `pegboard golden check` says more.", file=sys.stderr)


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
