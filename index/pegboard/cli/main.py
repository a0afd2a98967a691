"""The command line `pegboard`, with the reader's commands.

Other distributions add theirs under the entry-point group `pegboard.commands`, whose values are
functions `register(subparsers)`. Results go to stdout, as a table or with --json as one JSON value;
progress and errors go to stderr.
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from pegboard import __version__
from pegboard.cli.output import print_error, print_json, resolve_board, safe_output
from pegboard.errors import ConfigurationError, PegboardError

GROUP = "pegboard.commands"
HOMELESS = "Could not determine home directory"
"""Python's message for a path below a home directory that the system does not know."""
NO_HOME = (
    "a path of the arguments or the configuration begins with ~, or files below the home directory "
    "are needed, but the system knows no such home directory: expected the environment variable "
    "HOME, or an existing user after the ~. Set HOME to a folder, or write the path without ~."
)
EXIT_CODES = """\
exit codes: 0 success · 1 unexpected error · 2 invalid usage or configuration · 3 source failed
            4 board, release or store unavailable · 5 encoder · 6 not published: a concurrent
            publisher won · 7 LLM unavailable · 8 held by its gate · 130 interrupted
            143 ended by SIGTERM"""


class Terminated(KeyboardInterrupt):
    """The process got SIGTERM; it ends as after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    if arguments is None and options.command != "serve":  # which stops in an order of its own
        signal.signal(signal.SIGTERM, _terminate)
    return run_command(f"pegboard {options.command}", options)


def _terminate(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends it at once
    raise Terminated


def run_command(name: str, options: argparse.Namespace) -> int:
    """Call `options.run`, print what went wrong under the command's name, and return the exit
    code.
    """
    run: Callable[[argparse.Namespace], int] = options.run
    with safe_output():
        try:
            resolve_board(options)
            return run(options)
        except PegboardError as error:
            if getattr(options, "json", False):
                print_json({"error": {"type": type(error).__name__, "message": str(error)}})
            print_error(name, error)
            return error.exit_code
        except KeyboardInterrupt as error:
            print_error(name, "interrupted. Finished work is kept; run it again to continue.")
            return 143 if isinstance(error, Terminated) else 130
        except BrokenPipeError:
            # The reader of our output went away, as `| head` does; that is no error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if HOMELESS in str(error):
                print_error(name, NO_HOME)
                return ConfigurationError.exit_code
            print_error(name, f"unexpected error\n{traceback.format_exc().rstrip()}")
            return 1


def _parser() -> argparse.ArgumentParser:
    from pegboard.cli import (
        doctor,
        eval,
        eval_agent,
        examples,
        find,
        releases,
        replies,
        serve,
        tools,
    )

    parser = argparse.ArgumentParser(
        prog="pegboard",
        description="Publish boards of tools, and find the right few tools for a request.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pegboard {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (find, tools, releases):
        command.register(subparsers)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        point.load()(subparsers)
    for command in (eval, eval_agent, replies, serve, examples, doctor):
        command.register(subparsers)
    return parser
