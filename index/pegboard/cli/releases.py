"""`pegboard releases`, `promote` and `rollback`: what is published, and what is live. They need no
pipeline.

Other distributions add actions to `pegboard releases` under the entry-point group
`pegboard.releases_commands`, whose values are functions that take the group's subparsers.
"""

import argparse
import sys
from importlib.metadata import entry_points
from typing import Any

from pegboard.cli.diff import register_diff
from pegboard.cli.export import register_export
from pegboard.cli.gate import failures, gate_lines, gate_state
from pegboard.cli.output import Subparsers, add_board_option, print_json
from pegboard.cli.release_names import NAME_HELP, named_release
from pegboard.cli.verify import register_verify
from pegboard.store.releases import Channel, Pin, Release, ReleaseStore

GROUP = "pegboard.releases_commands"


def register_releases(subparsers: Subparsers) -> None:
    """Add the commands."""
    releases: argparse.ArgumentParser = subparsers.add_parser(
        "releases",
        help="list, show, compare and verify releases",
        description="The releases of a board: what they hold, what is different between two, and "
        "whether they are sound.",
    )
    actions = releases.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list", help="all releases, newest first, and the channels that name them"
    )
    add_board_option(listing)
    listing.add_argument(
        "--json", action="store_true", help="print one JSON object: releases, channels"
    )
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="everything that is recorded of one release")
    show.add_argument("release", help=NAME_HELP)
    add_board_option(show)
    show.add_argument("--json", action="store_true", help="print the release as one JSON object")
    show.set_defaults(run=_show)
    register_diff(actions)
    register_verify(actions)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        point.load()(actions)
    register_export(subparsers)

    promote: argparse.ArgumentParser = subparsers.add_parser(
        "promote",
        help="make a channel name a release",
        description="Make a channel name a release. Readers that follow the channel swap to it "
        "within seconds. "
        "If someone else moves the channel at the same moment, nothing is changed and the exit "
        "code is 6. A release that is held by "
        "its gate can be promoted, too; what it failed is said on stderr.",
    )
    promote.add_argument("release", help=NAME_HELP)
    add_board_option(promote)
    _channel_options(promote)
    promote.set_defaults(run=_promote)

    rollback: argparse.ArgumentParser = subparsers.add_parser(
        "rollback",
        help="make a channel name the release before",
        description="Make a channel name the release before. Again goes back one more; `promote` "
        "goes anywhere.",
    )
    add_board_option(rollback)
    _channel_options(rollback)
    rollback.set_defaults(run=_rollback)


def _channel_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--channel", default="live", help="the channel to move (default: live)")
    parser.add_argument("--json", action="store_true", help="print the channel as one JSON object")


def _list(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    releases, channels = store.all(), store.channels()
    if options.json:
        print_json(
            {
                "releases": [_release_record(release) for release in releases],
                "channels": [_channel_record(channel) for channel in channels],
            }
        )
        return 0
    named: dict[str, list[str]] = {}
    for channel in channels:
        named.setdefault(channel.release, []).append(channel.name)
    gated = any("gate" in release.manifest for release in releases)
    gate_head = f"{'GATE':<8}" if gated else ""
    print(
        f"{'RELEASE':<14}{'CREATED (UTC)':<21}{'TOOLS':>7}{'AGENTS':>8}  "
        f"{'INDEXES':<20}{gate_head}CHANNELS"
    )
    for release in releases:
        counts = release.manifest["counts"]
        indexes = ", ".join(sorted(release.manifest["indexes"]))
        gate = f"{gate_state(release, channels):<8}" if gated else ""
        print(
            f"{release.id:<14}{release.created_at:%Y-%m-%d %H:%M:%S}  "
            f"{counts['tools']:>7}{counts['agents']:>8}  "
            f"{indexes:<20}{gate}{', '.join(named.get(release.id, []))}"
        )
    return 0


def _show(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = named_release(store, options.release)
    if options.json:
        print_json(_release_record(release))
        return 0
    print(
        f"release   {release.id}\ndigest    {release.digest}\ncreated   "
        f"{release.created_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    print(f"contract  {release.contract}")
    for said in _named_by(release, store.channels()):
        print(f"channel   {said}")
    for said in gate_lines(release, store.channels()):
        print(f"gate      {said}")
    for name, pin in release.tables.items():
        print(
            f"table     {name}: version {pin.version} of {pin.table}, {pin.rows} "
            f"rows{_searched(name, pin)}"
        )
    for name, index in release.manifest["indexes"].items():
        default = " (default)" if name == release.manifest["default_index"] else ""
        print(f"index     {name}{default}: {index['encoder']}, {index['fingerprint']}")
    for name, catalog in release.manifest["catalogs"].items():
        print(
            f"catalog   {name}: {catalog['tools']} tools, {catalog['agents']} agents, "
            f"{catalog['rejected']} rejected"
        )
    changes = release.manifest["changes"]
    print(
        f"changes   {changes['new']} new, {changes['changed']} changed, {changes['removed']} "
        f"removed, "
        f"{changes['unchanged']} unchanged, against {changes['against'] or 'an empty board'}"
    )
    return 0


def _named_by(release: Release, channels: list[Channel]) -> list[str]:
    """Why a prune keeps the release, however old it is."""
    names = [f"{channel.name} names it" for channel in channels if channel.release == release.id]
    before = [channel.name for channel in channels if channel.history[:1] == (release.id,)]
    return names + [f"a rollback of {name} takes it" for name in before]


def _searched(name: str, pin: Pin) -> str:
    """The indices of a table with vectors, as readers ask them."""
    if not name.startswith(("emb_", "agents_")):
        return ""
    if pin.search is None:
        return ", searched without an index"
    asked = [
        f"{pin.search[key]} {key}"
        for key in ("partitions", "nprobes", "ef", "refine")
        if key in pin.search
    ]
    return f", {pin.search['vector']} ({', '.join(asked)}), {pin.search['text']}"


def _promote(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    release = named_release(store, options.release)
    moved = store.promote(release.id, options.channel)
    if why := failures(release):
        told = "; ".join(why)
        print(
            f"pegboard promote: release {release.id} did not pass its gate, and is promoted all "
            f"the same: {told}",
            file=sys.stderr,
        )
    return _moved(moved, options)


def _rollback(options: argparse.Namespace) -> int:
    return _moved(ReleaseStore(options.board).rollback(options.channel), options)


def _moved(channel: Channel, options: argparse.Namespace) -> int:
    if options.json:
        print_json(_channel_record(channel))
    else:
        print(f"{channel.name} is now release {channel.release} (generation {channel.generation})")
    return 0


def _release_record(release: Release) -> dict[str, Any]:
    return {
        "release": release.id,
        "digest": release.digest,
        "contract": release.contract,
        "created_at": release.created_at.isoformat(),
        "tables": {
            name: {
                "table": pin.table,
                "version": pin.version,
                "rows": pin.rows,
                "digest": pin.digest,
                "checksum": pin.checksum,
                "search": dict(pin.search) if pin.search else None,
            }
            for name, pin in release.tables.items()
        },
        "manifest": release.manifest,
    }


def _channel_record(channel: Channel) -> dict[str, Any]:
    return {
        "channel": channel.name,
        "release": channel.release,
        "generation": channel.generation,
        "updated_at": channel.updated_at.isoformat(),
        "history": list(channel.history),
        "withdrawn": list(channel.withdrawn),
    }
