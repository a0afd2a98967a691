"""What the commands share: common options, and how values and text are printed."""

import argparse
import json
import os
import re
from typing import Any

Subparsers = Any
"""What `argparse.ArgumentParser.add_subparsers` returns; its class has no public name."""


def print_json(value: Any) -> None:
    """Print one JSON value to stdout, with nothing in it that moves a terminal's cursor or colours
    it.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    print(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))


def plain(text: str) -> str:
    """Text of a catalog without what moves a terminal's cursor or colours it."""
    return "".join(char if char.isprintable() else " " for char in text)


def add_board_option(parser: argparse.ArgumentParser) -> None:
    """Add --board, which falls back on the environment variable PEGBOARD_BOARD."""
    default = os.environ.get("PEGBOARD_BOARD") or None
    parser.add_argument(
        "--board",
        metavar="URI",
        default=default,
        required=default is None,
        help="the board's root: a folder, s3://, az:// or gs:// (default: $PEGBOARD_BOARD)",
    )


def add_channel_option(parser: argparse.ArgumentParser, use: str = "the channel to ask") -> None:
    """Add --channel; `use` says what the command does with it."""
    parser.add_argument("--channel", default="live", help=f"{use} (default: live)")


def add_json_option(parser: argparse.ArgumentParser, content: str) -> None:
    """Add --json; `content` says what the JSON object holds."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object: {content}")


def add_release_argument(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add RELEASE, which may be left out if there is a default."""
    note = f" (default: {default})" if default else ""
    parser.add_argument(
        "release",
        nargs="?" if default else None,
        default=default,
        help=f"a release's id or its beginning, or a channel such as live{note}",
    )
