"""The command line `pegboard`. Commands of the reader are here; other distributions add theirs under the entry-point
group `pegboard.commands`, whose values are functions `register(subparsers)`.

Results go to stdout, as a table or with --json as one JSON value; progress and trouble go to stderr.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

from pegboard import __version__
from pegboard.errors import PegboardError

__all__ = ["GROUP", "add_board_option", "main", "plain", "print_json"]

GROUP = "pegboard.commands"
EXIT_CODES = """\
exit codes: 0 done · 1 unexpected · 2 wrong use or configuration · 3 a source failed · 4 no such board, release or store
            5 encoder · 6 not published: someone else did meanwhile · 7 no LLM · 8 held by its gate · 130 interrupted"""

Subparsers = Any
"""What `argparse.ArgumentParser.add_subparsers` returns; its class has no public name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except PegboardError as error:
        if getattr(options, "json", False):
            print_json({"error": {"type": type(error).__name__, "message": str(error)}})
        print(f"pegboard {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            f"pegboard {options.command}: interrupted. What was finished is kept; run again to go on.", file=sys.stderr
        )
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def print_json(value: Any) -> None:
    """Print one JSON value to stdout, with nothing in it that moves a terminal's cursor or colours it."""
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


def _parser() -> argparse.ArgumentParser:
    from pegboard.cli_doctor import register_doctor
    from pegboard.cli_eval import register_eval
    from pegboard.cli_eval_agent import register_eval_agent
    from pegboard.cli_find import register_agents, register_find
    from pegboard.cli_graph import register_graph
    from pegboard.cli_releases import register_releases
    from pegboard.cli_search import register_search
    from pegboard.cli_stress import register_stress

    parser = argparse.ArgumentParser(
        prog="pegboard",
        description="Find the right few tools for a request, and publish the board on which they hang.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pegboard {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    register_find(subparsers)
    register_search(subparsers)
    register_agents(subparsers)
    register_graph(subparsers)
    register_releases(subparsers)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        point.load()(subparsers)
    register_eval(subparsers)
    register_eval_agent(subparsers)
    register_stress(subparsers)
    register_doctor(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
