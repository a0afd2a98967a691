"""`pegboard report`: make the report of a release again, from its data."""

import argparse

from flows.cli.options import add_config_option, named_board, write_file
from pegboard.cli.output import Subparsers, add_command, add_json_option, print_error, print_json
from pegboard.formatting import plain
from pegboard.store.releases import ReleaseStore

EPILOG = """\
Every build writes the report of its release; this command writes it again, for
any release of the board: into the board, as reports/<release>.html and .json, or
with --out into a file. The page has no dependencies: it opens from the disk,
without a network. --json prints the values of the page, and writes nothing.

examples:
  pegboard report                         the live release of pegboard.toml's board
  pegboard report --board s3://acme/pegboard --out report.html
  pegboard report --board ./board --release 1f0c        a held release, too
  pegboard report --board ./board --json | jq .verdict"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    report = add_command(
        subparsers,
        "report",
        _report,
        EPILOG,
        help="make a page about a release",
        description="Make an HTML page, and JSON, about a release: whether it is live and why, "
        "what changed, measures, safety, twins and sources.",
    )
    add_config_option(report)
    report.add_argument(
        "--board", metavar="URI", help="the board's root (default: $PEGBOARD_BOARD)"
    )
    which = report.add_mutually_exclusive_group()
    which.add_argument("--release", metavar="ID", help="the id of a release or its beginning")
    which.add_argument("--channel", metavar="NAME", help="a channel's release (default: live)")
    report.add_argument("--out", metavar="FILE", help="write the page there instead of the board")
    add_json_option(report, "the values")


def _report(options: argparse.Namespace) -> int:
    uri, board = named_board(options)
    store, channel = ReleaseStore(uri), options.channel or board.channel
    release = store.get(options.release) if options.release else store.named(channel)
    print_error("report", f"release {release.id}, which takes some seconds")
    from tasks.report.storage import make_report

    report, data, page = make_report(uri, release.id, store=not (options.out or options.json))
    if options.out:
        write_file(options.out, page)
    if options.json:
        print_json(data)
        return 0
    print(plain(f"{report.title}: {report.says}"))
    print(f"page: {options.out or report.html} ({report.bytes / 1e6:.1f} MB)")
    if report.json:
        print(f"JSON: {report.json}")
    return 0
