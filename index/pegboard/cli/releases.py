"""`pegboard releases`, `promote` and `rollback`: what is published, and what is live.

They need no pipeline. Other distributions add actions to `pegboard releases` under the entry-point
group `pegboard.releases_commands`, whose values are functions that take the group's subparsers.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points

from pegboard.cli.diff import register_diff
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_json,
    print_table,
)
from pegboard.errors import ContractMismatch
from pegboard.formatting import count_text
from pegboard.store.contract import CONTRACT, check_contract
from pegboard.store.gate import failures, gate_lines, gate_state, is_good
from pegboard.store.releases import Channel, Pin, Release, ReleaseStore
from pegboard.store.verify import verify_release

GROUP = "pegboard.releases_commands"


def register(subparsers: Subparsers) -> None:
    """Add the commands."""
    releases = add_command(
        subparsers,
        "releases",
        help="list, show, compare and verify releases",
        description="List, show, compare and verify the releases of a board.",
    )
    actions = releases.add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = add_command(
        actions, "list", _list, help="list releases, newest first, with their channels"
    )
    _add_options(parser, "releases, channels")
    parser = add_command(
        actions, "show", _show, help="show everything that is recorded of a release"
    )
    _add_options(parser, "the release", "release")
    register_diff(actions)
    parser = add_command(
        actions,
        "verify",
        _verify,
        help="check that a release is as it was published",
        description="Read a whole release (default: live) and check row counts, the checksum of "
        "every row, and digests. All problems are reported together; the exit code is 1 if there "
        "is any.",
    )
    add_options(parser, "release", nargs="?", default="live")
    _add_options(parser, "release, rows, problems, sound")
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        point.load()(actions)
    parser = add_command(
        subparsers,
        "promote",
        _promote,
        help="make a channel name a release",
        description="Make a channel name a release. Readers of the channel change to it within "
        "seconds. If someone else moves the channel at the same moment, nothing changes and the "
        "exit code is 6. A release that its gate holds can be promoted; the rules that it failed "
        "are printed to stderr.",
    )
    _add_options(parser, "the channel", "release", "--channel")
    parser = add_command(
        subparsers,
        "rollback",
        _rollback,
        help="make a channel name its previous release",
        description="Make a channel name its previous release. A second rollback goes back one "
        "more; `promote` goes to any release. If the previous release had failed its gate, the "
        "rules that it failed are printed to stderr.",
    )
    parser.add_argument(
        "--to-last-good",
        action="store_true",
        help="skip earlier releases that failed their gate",
    )
    _add_options(parser, "the channel", "--channel")


def _add_options(parser: argparse.ArgumentParser, content: str, *names: str) -> None:
    add_options(parser, *names, "--board")
    add_json_option(parser, content)


def _list(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    releases = store.all()
    channels = store.channels()
    if options.json:
        print_json(
            {
                "releases": [release.to_dict() for release in releases],
                "channels": [channel.to_dict() for channel in channels],
            }
        )
        return 0
    gated = any("gate" in release.manifest for release in releases)
    header = ("RELEASE", "CREATED (UTC)", "TOOLS", "AGENTS", "INDEXES", "GATE" if gated else "")
    print_table((*header, "CHANNELS"), [_list_row(release, channels) for release in releases])
    return 0


def _list_row(release: Release, channels: list[Channel]) -> tuple[str, ...]:
    described = ("", "", f"of table contract {release.contract}", "")
    if release.contract == CONTRACT:
        counts = release.manifest["counts"]
        described = (
            str(counts["tools"]),
            str(counts["agents"]),
            ", ".join(sorted(release.manifest["indexes"])),
            gate_state(release, channels),
        )
    return (
        release.id,
        f"{release.created_at:%Y-%m-%d %H:%M:%S}",
        *described,
        ", ".join(_names_of(release, channels)),
    )


def _show(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = store.named(options.release)
    if options.json:
        print_json(release.to_dict())
        return 0
    channels = store.channels()
    lists = {
        "release": [release.id],
        "digest": [release.digest],
        "created": [f"{release.created_at:%Y-%m-%d %H:%M:%S} UTC"],
        "contract": [str(release.contract)],
        "channel": _names_of(release, channels),
        "gate": gate_lines(release, channels) if release.contract == CONTRACT else [],
        "table": [_table_text(*table) for table in release.tables.items()],
        **(_manifest_lists(release) if release.contract == CONTRACT else {}),
    }
    _print_lists(lists)
    return 0


def _print_lists(lists: Mapping[str, Sequence[str]]) -> None:
    print_table((), [(label, line) for label, lines in lists.items() for line in lines])


def _manifest_lists(release: Release) -> dict[str, list[str]]:
    manifest = release.manifest
    default = manifest["default_index"]
    changes = manifest["changes"]
    counts = ", ".join(f"{changes[k]} {k}" for k in ("new", "changed", "removed", "unchanged"))
    return {
        "index": [
            f"{name}{' (default)' if name == default else ''}: {index['encoder']}, "
            f"{index['fingerprint']}"
            for name, index in manifest["indexes"].items()
        ],
        "catalog": [
            f"{name}: {', '.join(f'{of[kind]} {kind}' for kind in ('tools', 'agents', 'rejected'))}"
            for name, of in manifest["catalogs"].items()
        ],
        "changes": [f"{counts}, against {changes.get('against') or 'an empty board'}"],
    }


def _names_of(release: Release, channels: list[Channel]) -> list[str]:
    """The channels that name the release."""
    return [channel.name for channel in channels if channel.release == release.id]


def _table_text(name: str, pin: Pin) -> str:
    text = f"{name}: version {pin.version} of {pin.table}, {count_text(pin.rows, 'row')}"
    return text if pin.search is None else f"{text}, {pin.search['vector']}, {pin.search['text']}"


def _verify(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = store.named(options.release)
    verification = verify_release(store, release)
    problems = verification.problems
    if options.json:
        print_json(verification.to_dict())
        return 1 if problems else 0
    read = [f"{name}: {count_text(rows, 'row')}" for name, rows in verification.rows.items()]
    _print_lists({"read": read, "WRONG": problems})
    if not problems:
        print(f"Release {release.id} is as it was published.")
        return 0
    print(
        f"Release {release.id} is not as it was published: {count_text(len(problems), 'problem')}. "
        "Go back to a sound one with `pegboard rollback` or `pegboard promote`, or publish again "
        "with `pegboard build`."
    )
    return 1


def _promote(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = store.named(options.release)
    channel = store.promote(release.id, options.channel)
    _warn_of_gate(release, "promote", "was promoted all the same")
    _warn_of_contract(release, "promote")
    return _print_channel(channel, options)


def _rollback(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    channel = store.rollback(options.channel, is_good if options.to_last_good else None)
    release = store.get(channel.release)
    _warn_of_gate(release, "rollback", "is live again; --to-last-good skips such releases")
    _warn_of_contract(release, "rollback")
    return _print_channel(channel, options)


def _warn_of_gate(release: Release, command: str, done: str) -> None:
    """Say so if a channel now names a release that failed its gate, and what it failed."""
    if reasons := failures(release):
        print(
            f"pegboard {command}: warning: release {release.id} failed its gate and {done}: "
            f"{'; '.join(reasons)}",
            file=sys.stderr,
        )


def _warn_of_contract(release: Release, command: str) -> None:
    """Say so if readers of this version cannot read what a channel names now."""
    try:
        check_contract(release.contract, release.id)
    except ContractMismatch as error:
        print(f"pegboard {command}: warning: {error}", file=sys.stderr)


def _print_channel(channel: Channel, options: argparse.Namespace) -> int:
    if options.json:
        print_json(channel.to_dict())
    else:
        print(f"{channel.name} is now release {channel.release} (generation {channel.generation})")
    return 0
