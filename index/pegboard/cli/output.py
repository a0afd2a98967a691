"""What the commands share: common options, and how text reaches a terminal.

Everything that a command prints passes `safe_output`, so that text of a catalog cannot move a
terminal's cursor, colour it, set its clipboard or reverse its line. Line breaks inside a value are
not escaped there: single values are printed through `plain`, and errors through `print_error`, so
that a value cannot forge a line.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

from pegboard.encoders import allow_hosted
from pegboard.errors import ConfigurationError
from pegboard.formatting import limited_lines, progress_text, table_lines

if TYPE_CHECKING:
    from pegboard.board import Board

Subparsers = Any
"""The type that `argparse.ArgumentParser.add_subparsers` returns, which has no public name."""
BOARD_SOURCES: dict[str, Callable[[], str | None]] = {}
"""Functions, by name, that commands without --board ask for a board after $PEGBOARD_BOARD. The
pipeline registers the pegboard.toml of the current folder."""
CONFIGURATIONS: dict[str, Callable[[str | None], None]] = {}
"""Functions, by name, that apply the storage options and encoders of the configuration at a path
(None: the one in this folder). The pipeline registers one, so that a board has the same options
however it is named."""
PROGRESS_SECONDS = 5.0
"""Between two lines of `progress_lines`."""
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


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    indent: str = "",
    limit: int | None = None,
) -> None:
    """Print rows as aligned columns; with a limit the first ones, and the number of the others."""
    lines = table_lines(header, rows, indent)
    most = len(lines) if limit is None else limit + bool(header)
    for line in limited_lines(lines, most, indent, "; --json lists all"):
        print(line)


def progress_lines(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Callable[[int], None]:
    """Return a callback that counts, and prints `WHAT: n of TOTAL` to stderr every few seconds and
    at the end, with the rate and the time left.
    """
    done = 0
    start = time.monotonic()
    printed = start

    def advance(more: int) -> None:
        nonlocal done, printed
        done += more
        now = time.monotonic()
        if not quiet and (done == total or now - printed >= PROGRESS_SECONDS):
            printed = now
            text = str(done) if total is None else progress_text(done, total, now - start)
            print(f"{what}: {text}", file=sys.stderr)

    return advance


def print_error(name: str, message: object) -> None:
    """Print an error to stderr, all lines but the first indented."""
    headline, *details = str(message).split("\n")
    lines = [line if line.startswith(" ") else f"  {line}" for line in details]
    print("\n".join([f"{name}: {headline}", *lines]), file=sys.stderr)


def default_board() -> str | None:
    """Return the board for commands without --board; None if none is configured."""
    if board := os.environ.get("PEGBOARD_BOARD"):
        return board
    return next((board for source in BOARD_SOURCES.values() if (board := source())), None)


def resolve_board(options: argparse.Namespace) -> None:
    """Set `options.board` if the command needs one, and apply the configuration's store options.

    Raises ConfigurationError if the command needs a board and there is none.
    """
    allow_hosted(getattr(options, "hosted_encoder", None) or ())
    if getattr(options, "board", None) or os.environ.get("PEGBOARD_BOARD"):
        for take in CONFIGURATIONS.values():
            take(getattr(options, "config", None))
    if not getattr(options, "needs_board", False) or options.board:
        return
    options.board = default_board()
    if options.board is None:
        raise ConfigurationError(
            "No board is named. Expected --board URI, the environment variable PEGBOARD_BOARD, or "
            "a pegboard.toml in this folder."
        )


def add_command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], int] | None = None,
    epilog: str = "",
    **texts: Any,
) -> argparse.ArgumentParser:
    """Add a command that calls `run`; `texts` are its help and description."""
    if epilog:
        texts |= {"epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser: argparse.ArgumentParser = commands.add_parser(name, **texts)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def add_options(parser: Any, *names: str, **changes: Any) -> None:
    """Add options of `OPTIONS`.

    Args:
        parser: a parser, or a group of one.
        changes: what is different from `OPTIONS`, for each of them.
    """
    for name in names:
        option = OPTIONS[name] | changes
        if option.get("action") == "append":
            option["help"] += "; may be repeated"
        parser.add_argument(name, **option)
        if name == "--board":
            parser.set_defaults(needs_board=True)


def add_json_option(parser: Any, content: str) -> None:
    """Add --json; `content` says what the JSON object holds."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object: {content}")


def open_board(options: argparse.Namespace, **more: Any) -> "Board":
    """Open the board that --board, --channel and --release name; `more` as in `pegboard.open`."""
    import pegboard

    return pegboard.open(options.board, options.channel, options.release, **more)


def json_table(text: str) -> dict[str, Any]:
    """Read a JSON object from an option."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            f'{text!r}: expected a JSON object, such as \'{{"reasoning_effort": "low"}}\''
        )
    return value


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share from 0 to 1, such as 0.05")
    return share


OPTIONS: dict[str, dict[str, Any]] = {
    "release": {"help": "a release's id or its beginning, or a channel such as live"},
    "golden": {"help": "golden queries as JSON lines"},
    "--board": {
        "metavar": "URI",
        "help": "the board's root: a folder, s3://, az:// or gs:// (default: $PEGBOARD_BOARD, else "
        "that of the pegboard.toml in this folder)",
    },
    "--channel": {"default": "live", "help": "the channel to ask (default: live)"},
    "--release": {"help": "a release to ask instead of a channel, by id or its beginning"},
    "--index": {
        "metavar": "NAME",
        "help": "the index to search (default: the strategy's, or the release's default)",
    },
    "--hosted-encoder": {
        "action": "append",
        "metavar": "NAME",
        "help": "a hosted encoder that the release may send requests to, beside those of the "
        "pegboard.toml in this folder",
    },
    "--strategy": {"help": "a strategy's name, or a JSON file with one (default: the release's)"},
    "--agent": {"metavar": "AGENT", "help": "only the agent with this id or name"},
    "--catalog": {"metavar": "CATALOG", "help": "only this catalog"},
    "--kind": {"metavar": "KIND", "help": "only tool, agent, skill, prompt or resource"},
    "--tag": {"metavar": "TAG", "help": "only tools with this tag"},
    "--llm": {
        "metavar": "MODEL",
        "help": "a LiteLLM model for the strategy, such as openai/gpt-4o-mini",
    },
    "--llm-api-base": {"metavar": "URL", "help": "the model's server, if not its provider's"},
    "--llm-options": {
        "metavar": "JSON",
        "type": json_table,
        "help": "further arguments of LiteLLM for the model, such as "
        '\'{"reasoning_effort": "low"}\'',
    },
    "--replies": {
        "metavar": "DIR",
        "help": "a folder of recorded replies of the LLM, which are read before it is asked; see "
        "`pegboard replies --help`",
    },
    "--missing-replies": {
        "choices": ("ask", "write", "fail"),
        "help": "what happens to requests without a recorded reply: ask the LLM and record it "
        "(default), write them to DIR/open.jsonl for a batch API or a person, or neither",
    },
    "--budget-usd": {
        "type": float,
        "metavar": "USD",
        "help": "the most that the LLM may cost; recorded replies cost nothing",
    },
    "--max-fallbacks": {
        "type": _share,
        "default": 0.0,
        "metavar": "SHARE",
        "help": "the share of queries that parts of a strategy may answer without the LLM, from 0 "
        "to 1; above it the command fails (default: 0)",
    },
    "--measure": {"metavar": "NAME", "help": "such as Recall@5, F1@5, mAP@10, MRR"},
    "--limit": {"type": int, "metavar": "N", "help": "ask the first N queries only"},
    "--quiet": {"action": "store_true", "help": "show no progress"},
}
"""Options of several commands; an option of a single command is declared in its module."""
FILTERS = ("--agent", "--catalog", "--kind", "--tag")
