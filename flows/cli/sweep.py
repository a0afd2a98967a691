"""`pegboard sweep`. Found under the entry-point group `pegboard.commands`."""

import argparse
from typing import Any

from flows.cli.options import add_config_option, collect_garbage_rarely, quiet_encoders
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    plain,
    print_error,
    print_json,
)
from pegboard.cli.tables import print_table

EPILOG = """\
Every index of the configuration is measured with every strategy, at every k, in samples of the
catalog and in the whole. The board for it is built in the output folder, on a channel of its own.
The table [sweep] of the configuration has defaults for these options, and more: measures and
margin.

The best index, strategy and k are those of the whole catalog by the first measure. The cheapest
that is shown to be no worse by more than margin (0.02) is recommended; where too few queries show
it, the best is.

examples:
  pegboard sweep --golden golden.jsonl
  pegboard sweep --golden golden.jsonl --strategy clauses -k 1..20 --tools 100,500
  pegboard sweep --golden golden.jsonl --max-tokens 1000 --max-ms 50
  pegboard sweep --golden golden.jsonl --release live --json"""
OPTIONS: dict[str, dict[str, Any]] = {
    "--golden": {"metavar": "FILE", "help": "golden queries, JSON lines (default: [golden])"},
    "--strategy": {
        "action": "append",
        "help": "a strategy's name or JSON file; repeatable (default: search, clauses)",
    },
    "-k": {"action": "append", "metavar": "K", "help": "5, or 1,5,10, or 1..20 (default)"},
    "--tools": {
        "metavar": "SIZES",
        "help": "sizes of samples of the catalog (default: 100,500,1000,...)",
    },
    "--index": {
        "action": "append",
        "metavar": "NAME",
        "help": "measure only this index; repeatable (default: all)",
    },
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
    "--release": {
        "metavar": "ID",
        "help": "measure a release of the board, by id or channel, instead of building one",
    },
    "--out": {
        "metavar": "DIR",
        "help": "folder for results (default: sweep, beside the configuration)",
    },
}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "sweep",
        _sweep,
        EPILOG,
        help="measure indexes, encoders, strategies and k, and name the best",
        description="Measure every index with every strategy, at every k, and name the best.",
    )
    add_config_option(parser, "pegboard.toml")
    for name, settings in OPTIONS.items():
        parser.add_argument(name, **settings)
    add_options(parser, "--quiet")
    add_json_option(parser, "the summary")


def _sweep(options: argparse.Namespace) -> int:
    collect_garbage_rarely()
    from flows.sweep import sweep
    from tasks import progress
    from tasks.settings.sweep import read_sweep

    with quiet_encoders(), progress.showing(not options.quiet):
        summary = sweep(read_sweep(options.config, _parameters(options)))
    if options.json:
        print_json(summary)
    else:
        _print(summary)
    for warning in summary["warnings"]:
        print_error("pegboard sweep", warning)
    return 0


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the sweep; None for options that are not given."""
    plural = {"strategy": "strategies", "index": "indexes"}
    names = [option.lstrip("-").replace("-", "_") for option in OPTIONS]
    return {plural.get(name, name): getattr(options, name) for name in names}


def _print(summary: dict[str, Any]) -> None:
    from tasks.sweep.results import result_table

    print(
        f"release {summary['release']}, {summary['seconds']:.0f} s. "
        f"{summary['golden']['queries']} queries; the mean and its 95 % interval"
    )
    print_table(*result_table(summary))
    print()
    for line in summary["says"]:
        print(plain(line))
    print(f"Results: {summary['file']}")
