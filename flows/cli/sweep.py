"""`pegboard sweep`: choose index, strategy and k of a release."""

import argparse
from typing import Any

from flows.cli.options import add_config_option, collect_garbage_rarely, quiet_encoders
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_json,
    print_table,
)
from pegboard.formatting import plain

EPILOG = """\
Every index of a release is measured with every strategy, at every k. The indexes are those of
[[indexes]] that the release was built with; readers use default_index, whatever others there are.
The table [sweep] of the configuration has defaults for these options, and more: measures and
margin.

The best index, strategy and k are those of the first measure. The cheapest that is shown to be no
worse by more than margin (0.02) is recommended; where too few queries show it, the best is.

examples:
  pegboard sweep --golden golden.jsonl
  pegboard sweep --golden golden.jsonl --strategy search --strategy clauses -k 1..20
  pegboard sweep --golden golden.jsonl --max-tokens 1000 --max-ms 50
  pegboard sweep --golden golden.jsonl --tools 100,500 --noise random:30,near:10
  pegboard sweep --golden golden.jsonl --release 1f0c --json"""
OPTIONS: dict[str, dict[str, Any]] = {
    "--golden": {"metavar": "FILE", "help": "golden queries, JSON lines (default: [golden])"},
    "--strategy": {
        "action": "append",
        "help": "a strategy's name or JSON file; repeatable (default: search, clauses)",
    },
    "-k": {"action": "append", "metavar": "K", "help": "5, or 1,5,10, or 1..20 (default)"},
    "--max-tokens": {
        "type": float,
        "metavar": "N",
        "help": "limit on the mean prompt tokens of the k tools",
    },
    "--max-ms": {
        "type": float,
        "metavar": "N",
        "help": "limit on the 95th percentile of milliseconds per request",
    },
    "--agents": {
        "action": "store_true",
        "default": None,
        "help": "search for agents instead of tools, by the ways of Board.search_agents",
    },
    "--tools": {
        "metavar": "N,...",
        "help": "also measure among N random tools that include all needed ones, for each N: "
        "100,500",
    },
    "--noise": {
        "metavar": "KIND:N,...",
        "help": "also measure each query among its needed tools and N random ones (random:30), or "
        "the N nearest to each of them (near:10)",
    },
    "--release": {
        "metavar": "ID",
        "help": "a release of the board, by id or channel (default: that of [board] channel)",
    },
}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "sweep",
        _sweep,
        EPILOG,
        help="measure indexes, strategies and k of a release, and name the best",
        description="Measure every index of a release with every strategy, at every k, and name "
        "the best.",
    )
    add_config_option(parser, "pegboard.toml")
    for name, settings in OPTIONS.items():
        parser.add_argument(name, **settings)
    add_options(parser, "--quiet")
    add_json_option(parser, "release, queries, rows, choice, says")


def _sweep(options: argparse.Namespace) -> int:
    collect_garbage_rarely()
    from tasks.golden.sweep import choose, measure, open_release, result_table, sentences
    from tasks.runtime import progress
    from tasks.settings.sweep import read_sweep

    sweep = read_sweep(options.config, _parameters(options))
    with quiet_encoders(), progress.showing(not options.quiet):
        searcher = open_release(sweep)
        results = measure(sweep, searcher)
    choice = choose(results, sweep.settings)
    if options.json:
        print_json(
            {
                "release": searcher.release.id,
                "queries": len(sweep.queries),
                "rows": [result.to_dict() for result in results],
                "choice": choice.to_dict(),
                "says": sentences(choice, sweep),
            }
        )
        return 0
    print(f"release {searcher.release.id}, {len(sweep.queries)} queries; means, 95 % intervals")
    print_table(*result_table(results, choice, sweep.settings))
    print()
    for line in sentences(choice, sweep):
        print(plain(line))
    return 0


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the sweep; None for options that are not given."""
    names = [option.lstrip("-").replace("-", "_") for option in OPTIONS]
    return {{"strategy": "strategies"}.get(name, name): getattr(options, name) for name in names}
