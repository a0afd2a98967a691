"""`pegboard releases verify`: whether a release is as it was published."""

import argparse
import sys

from pegboard.cli.output import Subparsers, add_board_option, print_json
from pegboard.cli.release_names import NAME_HELP, named_release
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release

STEP = 50_000
"""Rows between two lines of progress; smaller tables are read before anybody wonders."""


def register_verify(actions: Subparsers) -> None:
    """Add the action to `pegboard releases`."""
    verify: argparse.ArgumentParser = actions.add_parser(
        "verify",
        help="prove that a release is as it was published",
        description="Read everything of a release again: row counts, every row's checksum, "
        "digests, vectors, indices, and that tools, "
        "agents and indexes belong together. Lists all problems at once; the exit code is 1 if "
        "there is any.",
    )
    verify.add_argument("release", nargs="?", default="live", help=f"{NAME_HELP} (default: live)")
    add_board_option(verify)
    verify.add_argument("--json", action="store_true", help="print the result as one JSON object")
    verify.set_defaults(run=_verify)


def _verify(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = named_release(store, options.release)
    verified = verify_release(store, release, _tell)
    if options.json:
        print_json(verified.to_dict())
        return 1 if verified.problems else 0
    for name, rows in verified.rows.items():
        print(f"read      {name}: {rows} rows")
    for problem in verified.problems:
        print(f"WRONG     {problem}")
    count = len(verified.problems)
    print(
        f"Release {release.id} is as it was published."
        if not count
        else f"Release {release.id} is not as it was published: {count} "
        f"problem{'s' if count > 1 else ''}. "
        "`pegboard rollback` or `pegboard promote` takes a sound one; `pegboard build` publishes "
        "anew."
    )
    return 1 if count else 0


def _tell(table: str, done: int, rows: int) -> None:
    if done // STEP > (done - 1) // STEP and done < rows:
        print(f"{table}: {done} of {rows} rows", file=sys.stderr)
