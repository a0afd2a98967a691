"""`pegboard releases prune`: removing what nobody needs. Found under the entry-point group
`pegboard.releases_commands`.
"""

import argparse
import os
from typing import TYPE_CHECKING

from pegboard.cli.output import Subparsers, print_json
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from tasks.prune import Pruned
    from tasks.settings.configuration import KeepSettings

EPILOG = """\
Kept are the releases that channels name and the ones that a rollback would take, the newest N, and all younger than D days. What
is no longer wanted is marked; a prune after the grace period removes it. Vectors and an LLM's replies are never removed.

examples:
  pegboard releases prune --dry-run              what would go, by [board.keep] of pegboard.toml
  pegboard releases prune --board ./board --keep 7 --days 7"""


def register(actions: Subparsers) -> None:
    """Add the action to `pegboard releases`."""
    prune: argparse.ArgumentParser = actions.add_parser(
        "prune",
        help="remove releases that nobody needs, and what belongs to none",
        description="Remove releases that are no longer wanted, with their tags, versions and "
        "tables, what killed runs left "
        "behind, and sets of the lake that nothing needs. Safe while readers search and runs "
        "publish.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    prune.add_argument(
        "-c", "--config", metavar="FILE", help="default: pegboard.toml, if no board is named"
    )
    prune.add_argument(
        "--board",
        metavar="URI",
        help="the board's root, without a configuration (default: $PEGBOARD_BOARD)",
    )
    prune.add_argument(
        "--keep", type=int, metavar="N", help="how many of the newest releases stay (default: 30)"
    )
    prune.add_argument(
        "--days", type=float, metavar="D", help="those younger than so many days stay (default: 30)"
    )
    prune.add_argument(
        "--grace-hours",
        type=float,
        metavar="H",
        help="hours from the mark to the removal (default: 24)",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would go")
    prune.add_argument(
        "--json", action="store_true", help="print what was removed as one JSON object"
    )
    prune.set_defaults(run=_prune)


def _prune(options: argparse.Namespace) -> int:
    uri, keep = _asked(options)
    from tasks.prune import prune_board

    pruned = prune_board(uri, keep, dry_run=options.dry_run)
    if options.json:
        print_json(pruned.to_dict())
    else:
        _print(pruned, keep)
    return 0


def _asked(options: argparse.Namespace) -> "tuple[str, KeepSettings]":
    """The board, and what is kept of it: by the options, else by the configuration, else by the
    defaults.
    """
    from pydantic import ValidationError

    from tasks.settings.configuration import KeepSettings, load_configuration

    uri = options.board or (None if options.config else os.environ.get("PEGBOARD_BOARD"))
    keep = KeepSettings()
    if options.config or not uri:
        configuration = load_configuration(options.config or "pegboard.toml")
        uri, keep = uri or configuration.uri, configuration.board.keep or keep
    given = {"releases": options.keep, "days": options.days, "grace_hours": options.grace_hours}
    values = keep.model_dump() | {name: value for name, value in given.items() if value is not None}
    try:
        return uri, KeepSettings(**values)
    except ValidationError as error:
        names = {"releases": "--keep", "days": "--days", "grace_hours": "--grace-hours"}
        told = [
            f"{names[str(one['loc'][0])]} is {one['input']}: {one['msg'].lower()}"
            for one in error.errors()
        ]
        raise ConfigurationError(f"{'; '.join(told)}. Give another number.") from error


def _print(pruned: "Pruned", keep: "KeepSettings") -> None:
    would = "would be " if pruned.dry_run else ""
    rows = [
        ("kept", len(pruned.kept), None, ", ".join(pruned.kept)),
        (f"{would}marked", len(pruned.marked), None, ", ".join(pruned.marked)),
        (f"{would}removed", len(pruned.removed), None, ", ".join(pruned.removed)),
        ("tables", len(pruned.tables), None, ", ".join(pruned.tables)),
        ("versions", pruned.versions.count, pruned.versions.bytes, "of tables, that nothing pins"),
        (
            "files",
            pruned.files.count,
            pruned.files.bytes,
            "of tables, that belong to no version or release",
        ),
        ("lake", pruned.lake.count, pruned.lake.bytes, "files to which nothing leads"),
        ("reports", pruned.reports.count, pruned.reports.bytes, "on releases that are gone"),
    ]
    print(f"{'':<18}{'COUNT':>7}{'BYTES':>15}")
    for name, count, size, what in rows:
        print(
            (
                f"{name:<18}{count:>7}{'' if size is None else size:>15}  {what if count else ''}"
            ).rstrip()
        )
    print(f"{pruned.bytes} bytes {'would be' if pruned.dry_run else 'were'} removed.")
    if pruned.marked:
        print(
            f"What is marked goes with the first prune after {keep.grace_hours:g} hours, unless "
            f"it is wanted again."
        )
