"""`pegboard lock`: write the lock file of approved definitions, or check it."""

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.options import add_config_option, collect_garbage_rarely
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_error,
    print_json,
)
from pegboard.errors import GateFailed, SourceError
from pegboard.formatting import count_text, limited_lines, plain

if TYPE_CHECKING:
    from tasks.settings.configuration import Configuration

REMOVED = 20
"""Removed tools that are printed; --json has all."""
LOCK = """\
The file has one line for each agent and tool: its id, a digest of its definition, and one of how it
is called. Commit it beside pegboard.toml. `pegboard build --locked` holds a release with
a definition that the file does not have.

Old texts are those of the live release. To see what a pull request approves, check the file of the
branch that it goes to:

  git show main:pegboard.lock > base.lock && pegboard lock --check --file base.lock

examples:
  pegboard lock
  pegboard lock --check --json     exit code 8 if a definition waits for approval"""


def register_lock(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "lock",
        _lock,
        LOCK,
        help="approve the definitions of the sources, for `build --locked`",
        description="List the sources, show which definitions differ from the lock file, with "
        "their old and new text, and write the file.",
    )
    add_config_option(parser, "pegboard.toml")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--file", help="the lock file (default: that of [lock])")
    parser.add_argument(
        "--allow-removal",
        action="store_true",
        help="accept that a source lists far fewer tools than before, or none",
    )
    add_options(parser, "--quiet")
    add_json_option(parser, "file, written, definitions, changes, removed")


def _lock(options: argparse.Namespace) -> int:
    from pegboard.store.releases import ReleaseStore
    from tasks.lake.opening import open_lake
    from tasks.runtime import progress
    from tasks.safety.lock import compare_with_lock, definitions, lock_file, read_lock, write_lock
    from tasks.settings.configuration import load_configuration
    from tasks.steps.plan import live_release

    collect_garbage_rarely()
    configuration = load_configuration(options.config)
    file = Path(options.file) if options.file else lock_file(configuration)
    lock = read_lock(file) if file.exists() or options.check else {}
    open_lake(configuration.uri)
    with progress.showing(not options.quiet):
        snapshots, listed = _listed(configuration, allow_removal=options.allow_removal)
    _, live = live_release(ReleaseStore(configuration.uri), configuration.board.channel)
    current = definitions(configuration, snapshots, listed)
    release = live.id if live else None
    waiting = dict(compare_with_lock(configuration, release, snapshots, current, lock))
    removed = sorted(lock.keys() - current.keys())
    if not options.check:
        write_lock(file, current)
    if options.json:
        changes = [
            {"id": tool, "change": row["change"], "fields": row["fields"]}
            for tool, row in waiting.items()
        ]
        values = {"file": str(file), "written": not options.check, "definitions": len(current)}
        print_json({**values, "changes": changes, "removed": removed})
    else:
        _print_changes(waiting if lock else {}, removed)
        print(_summary(file, len(current), waiting, removed, check=options.check))
    if options.check and waiting:
        message = f"{count_text(len(waiting), 'definition')} not approved in {file}."
        print_error("pegboard lock", message)
        return GateFailed.exit_code
    return 0


def _listed(
    configuration: "Configuration", *, allow_removal: bool
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the snapshots of the sources, catalog -> digest, revised and as listed.

    Raises SourceError if one could not be listed whole: what it lacks would count as removed.
    """
    from tasks.runtime import progress
    from tasks.steps.revise import revise_snapshots
    from tasks.steps.snapshot import take_snapshot

    progress.start("snapshot", len(configuration.catalogs))
    snapshots = [
        take_snapshot(configuration, name, allow_removal=allow_removal, dry_run=True)
        for name in configuration.catalogs
    ]
    problems = [
        f"  - {problem}"
        for snapshot in snapshots
        if snapshot.failed or snapshot.kept
        for problem in snapshot.problems
    ]
    if problems:
        raise SourceError(
            "Not every source could be listed, so their definitions are not compared. Repair "
            "them, or take them out of the configuration.\n" + "\n".join(problems)
        )
    listed = {snapshot.catalog: snapshot.digest for snapshot in snapshots}
    return revise_snapshots(configuration, listed).digests, listed


def _print_changes(waiting: Mapping[str, Mapping[str, Any]], removed: list[str]) -> None:
    from tasks.gate.messages import definition_lines

    for line in definition_lines({tool: row["fields"] for tool, row in waiting.items()}):
        print(plain(line))
    lines = [f"  {tool} is removed" for tool in removed]
    for line in limited_lines(lines, REMOVED, "  ", "; see --json"):
        print(plain(line))


def _summary(
    file: Path,
    count: int,
    waiting: Mapping[str, Mapping[str, Any]],
    removed: list[str],
    *,
    check: bool,
) -> str:
    counts = Counter(row["change"] for row in waiting.values())
    words = {"new": "new", "changed": "changed", "text": "with other texts or results"}
    parts = [f"{counts[change]:,} {word}" for change, word in words.items() if counts[change]]
    parts += [f"{len(removed):,} removed"] if removed else []
    what = f"{count_text(count, 'definition')}{'' if check else ' written'}"
    return f"{file}: {what}; {', '.join(parts) or 'none changed'}"
