"""`pegboard report`: a release's report, made anew from what is known of it."""

import argparse
import os
import sys
from pathlib import Path

from pegboard.cli.output import Subparsers, print_json
from pegboard.errors import ConfigurationError
from pegboard.store.releases import ReleaseStore

EPILOG = """\
Every build writes the report of the release that it makes; this makes it anew, for any release that is there. It goes into the board, as
reports/<release>.html and .json, or with --out into a file of its own. The page needs nothing else: it opens from the disk,
without a network, and can be sent to someone. --json prints the values of which the page is made, and writes nothing.

examples:
  pegboard report                                   the live release of the board of pegboard.toml
  pegboard report --board s3://acme/pegboard --out report.html
  pegboard report --board ./board --release 1f0c    by the beginning of its id; a held release, too
  pegboard report --board ./board --json | jq .verdict"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    report: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="make a page about a release",
        description="Make one HTML page, and JSON, of what is known of a release: its gate, its "
        "measures, what changed, collisions, "
        "a map of its tools, cost, rejected rows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "-c", "--config", metavar="FILE", help="default: pegboard.toml, if no board is named"
    )
    report.add_argument(
        "--board",
        metavar="URI",
        help="the board's root, without a configuration (default: $PEGBOARD_BOARD)",
    )
    which = report.add_mutually_exclusive_group()
    which.add_argument("--release", metavar="ID", help="the id of a release or its beginning")
    which.add_argument(
        "--channel", metavar="NAME", help="the release that a channel names (default: live)"
    )
    report.add_argument(
        "--out", metavar="FILE", help="write the page there, and nothing into the board"
    )
    report.add_argument(
        "--json", action="store_true", help="print the report's values as one JSON object"
    )
    report.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    uri, channel = _asked(options)
    store = ReleaseStore(uri)
    release = (
        store.get(options.release) if options.release else store.named(options.channel or channel)
    )
    print(f"report: release {release.id}, which takes some seconds", file=sys.stderr)
    from tasks.report.storage import make_report

    written, data, page = make_report(uri, release.id, store=not (options.out or options.json))
    if options.out:
        _write(Path(options.out), page)
    if options.json:
        print_json(data)
        return 0
    print(f"{written.title}: {written.says}")
    print(f"page: {options.out or written.html} ({written.bytes / 1e6:.1f} MB)")
    if written.json:
        print(f"JSON: {written.json}")
    return 0


def _asked(options: argparse.Namespace) -> tuple[str, str]:
    """The board, and its channel where none is named."""
    uri = options.board or (None if options.config else os.environ.get("PEGBOARD_BOARD"))
    if uri and not options.config:
        return uri, "live"
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config or "pegboard.toml")
    return uri or configuration.uri, configuration.board.channel


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Choose a folder that can be."
        ) from error
