"""`pegboard releases prune`: remove releases that are no longer kept. Found under the entry-point
group `pegboard.releases_commands`.
"""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from flows.cli.options import add_config_option, named_board
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json, print_table

if TYPE_CHECKING:
    from tasks.steps.prune import PruneResult

EPILOG = """\
[board.keep] of the configuration says what is kept, by default the newest 30 releases and all
younger than 30 days; the releases of channels, and those that a rollback would restore, always are.
So is a release whose successor is younger than the grace period of 24 hours. Vectors and LLM
replies are never removed.

Replaced versions and files of killed runs are looked for when a release is removed, and else once
in a grace period.

examples:
  pegboard releases prune --dry-run              what would go, by [board.keep] of pegboard.toml
  pegboard releases prune --board s3://acme/pegboard"""


def register(actions: Subparsers) -> None:
    """Add the action to `pegboard releases`."""
    prune = add_command(
        actions,
        "prune",
        _prune,
        EPILOG,
        help="remove releases that are no longer kept, and orphaned data",
        description="Remove releases that are no longer needed, with their tags, versions and "
        "tables, what killed runs left behind, and unused files of the lake. Safe while readers "
        "search and runs publish.",
    )
    add_config_option(prune)
    prune.add_argument(
        "--board",
        metavar="URI",
        help="the board's root, without a configuration (default: $PEGBOARD_BOARD)",
    )
    prune.add_argument("--dry-run", action="store_true", help="only show what would go")
    prune.add_argument(
        "--complete",
        action="store_true",
        help="look for replaced versions and files of killed runs even if that was done recently",
    )
    add_json_option(prune, "what was removed")


def _prune(options: argparse.Namespace) -> int:
    uri, board = named_board(options)
    from tasks.settings.configuration import KeepSettings
    from tasks.steps.prune import prune_board

    keep = board.keep or KeepSettings()
    result = prune_board(uri, keep, dry_run=options.dry_run, complete=options.complete)
    if options.json:
        print_json(asdict(result))
    else:
        _print(result)
    return 0


def _print(result: "PruneResult") -> None:
    would = "would be " if result.dry_run else ""
    rows = [
        (name, str(len(items)), ", ".join(items))
        for name, items in (
            ("kept", result.kept),
            (f"{would}removed", result.removed),
            ("tables", result.tables),
        )
    ]
    print_table(["", "COUNT", "WHICH"], rows)
    removed = "At least {} bytes would be removed." if result.dry_run else "{} bytes were removed."
    print(removed.format(result.bytes))
