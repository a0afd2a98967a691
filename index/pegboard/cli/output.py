"""What the commands share: common options, and how text reaches a terminal.

Everything that a command prints passes `safe_output`, so that no text of a catalog can move a
terminal's cursor, colour it, set its clipboard or reverse its line. What it cannot see is a line
break inside a value: single values are printed through `plain`, and errors through `print_error`,
so that no value can forge a line.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

from pegboard.errors import ConfigurationError

Subparsers = Any
"""What `argparse.ArgumentParser.add_subparsers` returns; its class has no public name."""
BOARD_SOURCES: dict[str, Callable[[], str | None]] = {}
"""Where commands without --board look after $PEGBOARD_BOARD, by a name. The pipeline adds the
pegboard.toml of the current folder when it registers its commands."""
STORAGE_SOURCES: dict[str, Callable[[str | None], None]] = {}
"""Remember the storage options of the configuration at a path (None: the one in this folder) for
its board. The pipeline adds one, so that a board has the same options however it was named."""
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of text
    "\u2028\u2029\ud800-\udfff]"  # line breaks that only some programs know, lone surrogates
)
"""Characters that a terminal may obey, or that cannot be encoded."""


def escape_controls(text: str) -> str:
    """Return the text with unsafe characters as `\\u001b`, which JSON reads as the same text."""
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeStream:
    """A text stream that writes unsafe characters escaped. It is no terminal: what asks for one
    would be escaped, too.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, escaped."""
        self.stream.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write texts, escaped."""
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        """Return False."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def safe_output() -> Generator[None]:
    """Escape what is written to stdout and stderr."""
    streams: list[Any] = [SafeStream(raw_stream(stream)) for stream in (sys.stdout, sys.stderr)]
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(streams[0]))
        stack.enter_context(redirect_stderr(streams[1]))
        yield


def raw_stream(stream: TextIO) -> TextIO:
    """Return the terminal below a safe stream, for live displays that escape their texts."""
    return stream.stream if isinstance(stream, SafeStream) else stream


def json_text(value: Any) -> str:
    """Return one JSON value as text without unsafe characters."""
    return escape_controls(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_json(value: Any) -> None:
    """Print one JSON value to stdout."""
    print(json_text(value))


def print_error(name: str, message: object) -> None:
    """Print what went wrong to stderr; only its first line begins at the margin."""
    first, *rest = str(message).split("\n")
    lines = [line if line.startswith(" ") else f"  {line}" for line in rest]
    print("\n".join([f"{name}: {first}", *lines]), file=sys.stderr)


def plain(text: str) -> str:
    """Return a text of a catalog as a part of one line."""
    return "".join(char if char.isprintable() else " " for char in text)


def add_board_option(parser: argparse.ArgumentParser) -> None:
    """Add --board, for which `resolve_board` finds a value where none is given."""
    parser.add_argument(
        "--board",
        metavar="URI",
        help="the board's root: a folder, s3://, az:// or gs:// (default: $PEGBOARD_BOARD, else "
        "that of the pegboard.toml in this folder)",
    )
    parser.set_defaults(needs_board=True)


def default_board() -> str | None:
    """Return the board for commands that are given none."""
    if board := os.environ.get("PEGBOARD_BOARD"):
        return board
    return next((board for source in BOARD_SOURCES.values() if (board := source())), None)


def resolve_board(options: argparse.Namespace) -> None:
    """Set `options.board` if the command needs one, and remember the storage options of an address.

    Raises ConfigurationError if the command needs a board and there is none.
    """
    named = getattr(options, "board", None) or os.environ.get("PEGBOARD_BOARD", "")
    if "://" in named:
        for remember in STORAGE_SOURCES.values():
            remember(getattr(options, "config", None))
    if not getattr(options, "needs_board", False) or options.board:
        return
    options.board = default_board()
    if options.board is None:
        raise ConfigurationError(
            "No board is named. Expected --board URI, the environment variable PEGBOARD_BOARD, or "
            "a pegboard.toml in this folder."
        )


def add_channel_option(parser: argparse.ArgumentParser, use: str = "the channel to ask") -> None:
    """Add --channel; `use` says what the command does with it."""
    parser.add_argument("--channel", default="live", help=f"{use} (default: live)")


def add_json_option(parser: argparse.ArgumentParser, content: str) -> None:
    """Add --json; `content` says what the JSON object holds."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object: {content}")


def add_release_option(parser: argparse.ArgumentParser) -> None:
    """Add --release, which replaces --channel."""
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or its beginning"
    )


def add_release_argument(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add RELEASE, which may be left out if there is a default."""
    note = f" (default: {default})" if default else ""
    parser.add_argument(
        "release",
        nargs="?" if default else None,
        default=default,
        help=f"a release's id or its beginning, or a channel such as live{note}",
    )
