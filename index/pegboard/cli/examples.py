"""`pegboard examples`: example requests for the next build from the request log of a gateway."""

import argparse
import json
import sys
from pathlib import Path

from pegboard.cli.output import Subparsers, add_command
from pegboard.errors import ConfigurationError

EXAMPLES = """\
examples:
  pegboard examples requests.jsonl
  pegboard examples requests.jsonl --add -o examples.jsonl --sequences sequences.jsonl

LOG is the file that [serve] log names; rotated files beside it are read, too. A build takes the
result with [examples] queries = "examples.jsonl", except for requests that are golden queries, and
what follows which tool with sequences = "sequences.jsonl"."""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    from pegboard.evaluation.usage import MIN_CLIENTS

    parser = add_command(
        subparsers,
        "examples",
        _examples,
        EXAMPLES,
        help="turn a gateway's log into example requests for the next build",
        description="Print requests after which a tool that they had found was called, as JSON "
        "lines with the request and the tool. A request counts if enough clients with credentials "
        "made it in the same words and then called the same tool.",
    )
    parser.add_argument("log", metavar="LOG", help="the request log of `pegboard serve`")
    parser.add_argument("-o", "--out", metavar="FILE", help="write to a file instead of stdout")
    parser.add_argument(
        "--sequences", metavar="FILE", help="write which tools follow which, for find(called=...)"
    )
    parser.add_argument("--add", action="store_true", help="keep the examples that FILE has")
    parser.add_argument(
        "--min-clients",
        type=int,
        default=MIN_CLIENTS,
        metavar="N",
        help=f"different clients behind each example (default: {MIN_CLIENTS}); with 1, clients "
        "without credentials count, too",
    )


def _examples(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import read_queries, write_lines, write_queries
    from pegboard.evaluation.usage import learn, learn_sequences, read_usage

    if options.min_clients < 1:
        raise ConfigurationError(f"--min-clients: expected 1 or more (got {options.min_clients}).")
    if options.add and not options.out:
        raise ConfigurationError("--add keeps the examples of a file: name it with -o FILE.")
    usage = read_usage(Path(options.log))
    learned = learn(usage, options.min_clients)
    existing = read_queries(options.out) if options.add and Path(options.out).exists() else []
    queries = list(
        {(query.query, query.tools): query for query in (*existing, *learned.examples)}.values()
    )
    if options.sequences:
        write_lines(options.sequences, learn_sequences(usage, options.min_clients))
    if options.out:
        write_queries(options.out, queries)
    else:
        for query in queries:
            print(json.dumps(query.to_dict(), ensure_ascii=False))
    print(
        f"{len(learned.examples)} examples of {len(usage.uses)} calls after {usage.finds} "
        f"requests. "
        f"Left out: {learned.few} requests that too few clients with credentials made in the same "
        f"words before the same tool, {learned.secret} with a secret, {usage.invalid} invalid "
        f"lines.",
        file=sys.stderr,
    )
    return 0
