"""`pegboard releases prune`: remove releases that are no longer kept. Found under the entry-point
group `pegboard.releases_commands`.
"""

import argparse
from typing import TYPE_CHECKING

from flows.cli.options import add_config_option, named_board
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_json
from pegboard.cli.tables import table_lines
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from tasks.prune import PruneResult
    from tasks.settings.configuration import KeepSettings

EPILOG = """\
Kept are the releases of channels and those that a rollback would restore, the newest N, and all
younger than D days. The others are marked, and removed by the first prune after the grace period.
Vectors and LLM replies are never removed.

examples:
  pegboard releases prune --dry-run              what would go, by [board.keep] of pegboard.toml
  pegboard releases prune --board ./board --keep 7 --days 7"""
OPTIONS = {"releases": "--keep", "days": "--days", "grace_hours": "--grace-hours"}


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
    prune.add_argument(
        "--keep", type=int, metavar="N", help="keep the newest N releases (default: 30)"
    )
    prune.add_argument(
        "--days", type=float, metavar="D", help="keep releases younger than D days (default: 30)"
    )
    prune.add_argument(
        "--grace-hours",
        type=float,
        metavar="H",
        help="hours from the mark to the removal (default: 24)",
    )
    prune.add_argument("--dry-run", action="store_true", help="only show what would go")
    add_json_option(prune, "what was removed")


def _prune(options: argparse.Namespace) -> int:
    uri, keep = _board_and_keep(options)
    from tasks.prune import prune_board

    result = prune_board(uri, keep, dry_run=options.dry_run)
    if options.json:
        print_json(result.to_dict())
    else:
        _print(result, keep)
    return 0


def _board_and_keep(options: argparse.Namespace) -> "tuple[str, KeepSettings]":
    """The board and what is kept: options override the configuration, which overrides defaults."""
    from pydantic import ValidationError

    from tasks.settings.configuration import KeepSettings

    uri, board = named_board(options)
    keep = board.keep or KeepSettings()
    given = {"releases": options.keep, "days": options.days, "grace_hours": options.grace_hours}
    values = keep.model_dump() | {name: value for name, value in given.items() if value is not None}
    try:
        return uri, KeepSettings(**values)
    except ValidationError as error:
        problems = [
            f"{OPTIONS[str(problem['loc'][0])]} is {problem['input']}: {problem['msg'].lower()}"
            for problem in error.errors()
        ]
        raise ConfigurationError(f"{'; '.join(problems)}. Give another number.") from error


def _print(result: "PruneResult", keep: "KeepSettings") -> None:
    would = "would be " if result.dry_run else ""
    lists = {
        "kept": result.kept,
        f"{would}marked": result.marked,
        f"{would}removed": result.removed,
        "tables": result.tables,
    }
    removals = {
        "versions": (result.versions, "of tables, that nothing pins"),
        "files": (result.files, "of tables that no release has"),
        "lake": (result.lake, "files that nothing uses"),
        "reports": (result.reports, "on releases that are gone"),
    }
    rows = [(name, str(len(items)), "", ", ".join(items)) for name, items in lists.items()]
    rows += [
        (name, str(removal.count), str(removal.bytes), what if removal.count else "")
        for name, (removal, what) in removals.items()
    ]
    for line in table_lines(["", "COUNT", "BYTES", "WHICH"], rows):
        print(line)
    removed = "At least {} bytes would be removed." if result.dry_run else "{} bytes were removed."
    print(removed.format(result.bytes))
    if result.marked:
        print(
            f"Marked releases go with the first prune after {keep.grace_hours:g} hours, unless "
            f"they are needed again."
        )
