"""`pegboard find --replay`: the requests of a gateway's log in another release."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import open_board, print_json
from pegboard.errors import ConfigurationError, QueryError
from pegboard.formatting import count_text, limited_lines, list_text, plain

if TYPE_CHECKING:
    from pegboard.evaluation.replay import Replay

LISTED = 10
"""Maximum number of requests or tools printed in a list; --json has all."""
INSTEAD = 3
"""Maximum number of tools named as replacements of a lost tool."""


def print_replay(
    options: argparse.Namespace,
    strategy: str | dict[str, Any] | None,
    where: Mapping[str, Sequence[str]],
) -> int:
    """Search the requests of the log that --replay names, and print what they find.

    Raises:
        QueryError: a request is given, too, or an option that needs one.
        ConfigurationError: the log cannot be read, or has no requests.
    """
    from pegboard.evaluation.replay import replay
    from pegboard.evaluation.usage import read_usage

    incompatible = {
        "words": options.request,
        "--explain": options.explain,
        "--llm": options.llm,
        "--called": options.called,
    }
    if conflicts := [name for name, value in incompatible.items() if value]:
        raise QueryError(
            f"--replay searches the requests of a log, without {', '.join(conflicts)}."
        )
    usage = read_usage(Path(options.replay))
    if not usage.requests:
        raise ConfigurationError(
            f"{options.replay} has no requests ({count_text(usage.invalid, 'invalid line')}). "
            f"Expected the file that [serve] log names."
        )
    with open_board(options) as board:
        result = replay(
            usage, board, options.k, strategy=strategy, index=options.index, where=where
        )
    if options.json:
        print_json(result.to_dict())
    else:
        for line in _lines(result):
            print(plain(line))
    return 0


def _lines(result: "Replay") -> list[str]:
    values = result.to_dict()
    calls = values["called"]
    empty = values["without_result"]
    never_found = values["never_found"]
    lines = [
        f"{count_text(values['requests'], 'request')}, {values['different']} different, in release "
        f"{values['release']}: {values['same_first']} find the same first tool, "
        f"{values['same_tools']} the same tools",
    ]
    lost_calls = [f'  "{_short(request.query)}": {tool}' for request, tool in result.calls_lost]
    texts = [f'  "{_short(row["query"])}" ({row["count"]})' for row in empty]
    replaced = list(map(_replaced, values["replaced"]))
    for title, rows in (
        (
            f"Called tools that are not found any more: {len(lost_calls)} of {calls['before']}",
            lost_calls,
        ),
        (f"Requests without a result that fits: {len(empty)}", texts),
        (f"Tools that lost requests: {len(replaced)}", replaced),
    ):
        lines += [title, *limited_lines(rows, LISTED, "  ", "; --json has all")]
    lines.append(f"Tools that are never found: {len(never_found)} of {values['tools']}")
    if never_found:
        lines.append(f"  {list_text(never_found, LISTED)}")
    return lines


def _replaced(row: Mapping[str, Any]) -> str:
    gone = "" if row["in_release"] else " (not in this release)"
    others = ", ".join(
        f"{tool} ({count})" for tool, count in list(row["instead"].items())[:INSTEAD]
    )
    return f"  {row['tool']}{gone}: {row['requests']}; now {others or 'nothing'}"


def _short(query: str) -> str:
    return textwrap.shorten(query, 70, placeholder=" ...")
