"""`pegboard stress`: golden queries among more and more distractors."""

import argparse
from contextlib import closing

from pegboard.cli.eval import print_evaluations
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json
from pegboard.cli.systems import (
    add_system_options,
    chosen_systems,
    fallbacks_exit_code,
    open_searcher,
    warn_of_missing_tools,
)
from pegboard.cli.tables import progress_lines
from pegboard.errors import QueryError

WHOLE = "all"
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
    add_json_option(parser, "near_by, and levels as `pegboard eval` has them, each with its noise")


def _stress(options: argparse.Namespace) -> int:
    from pegboard.evaluation.distractors import noises
    from pegboard.evaluation.golden import read_queries
    from pegboard.evaluation.stress import STRESS_MEASURES, stress

    noise = _counts(options.noise)
    queries = read_queries(options.golden)[: options.limit]
    counts = [count for count in noise if count is not None]
    whole = None in noise
    levels = len(noises(counts, whole=whole))
    with closing(open_searcher(options)) as searcher:
        systems = chosen_systems(options, searcher)
        near_by = systems[0].index_name
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
        print_json({"near_by": near_by, "levels": [level.to_dict() for level in result]})
    else:
        for level in result:
            print(f"\n{level.noise}: {level.candidates:g} candidates, near by index {near_by}")
            print_evaluations(level.evaluations)
    warn_of_missing_tools("pegboard stress", result[0].evaluations[0])
    overheads = [evaluation.overhead for level in result for evaluation in level.evaluations]
    return fallbacks_exit_code("pegboard stress", overheads, options.max_fallbacks)


def _counts(text: str) -> list[int | None]:
    """The numbers of distractors; None for all tools."""
    words = [word.strip() for word in text.split(",")]
    if invalid := [word for word in words if word != WHOLE and not word.isdecimal()]:
        raise QueryError(
            f"--noise has {', '.join(map(repr, invalid))}; expected numbers and `{WHOLE}`, as in "
            f"0,10,50,{WHOLE}."
        )
    return list(dict.fromkeys(None if word == WHOLE else int(word) for word in words))
