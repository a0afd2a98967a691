"""`pegboard replies`: recorded replies of an LLM, and the requests that nothing answers yet."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    print_error,
    print_json,
    print_table,
)
from pegboard.errors import ConfigurationError
from pegboard.formatting import count_text, plain
from pegboard.llm.answers import add_answers
from pegboard.llm.recorded import NEW_FILE, OPEN_FILE, ReplyFolder

EXAMPLES = """\
A folder of recorded replies makes everything that asks an LLM repeatable without it: `build` (by
[enrich] replies), `find`, `eval`, `eval-agent`, `golden generate` (by --replies DIR).

examples:
  pegboard eval golden.jsonl --board ./board --strategy rag-tool-fusion \\
      --llm openai/gpt-4o-mini --replies replies --missing-replies write
                                       write what is not answered yet to replies/open.jsonl, which
                                       a provider's batch API answers for half the price
  pegboard replies read batch_output.jsonl --replies replies
                                       record its answers; then run the first command again, as
                                       often as the strategy has steps that build on each other
  pegboard replies show --replies replies
                                       the open requests as text, for a person who answers them
  pegboard replies read mine.jsonl --replies replies --author "Ada, by hand"
                                       lines such as {"custom_id": "3f2a90c1", "reply": {"steps":
                                       ["..."]}}; a custom_id may be the beginning of one"""
PROBLEMS_SHOWN = 5
"""Number of answers without use that are printed."""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "replies",
        None,
        EXAMPLES,
        help="record, write and read back an LLM's replies, to repeat a run without it",
        description="List recorded replies, show the requests that are still open, and read the "
        "answers of a batch API or of a person.",
    )
    commands = parser.add_subparsers(dest="replies_command", metavar="COMMAND", required=True)
    _add(commands, "list", _list, "count the replies by author and date, and the open requests")
    show = _add(commands, "show", _show, "print the open requests as text")
    show.add_argument("--limit", type=int, metavar="N", help="print at most N requests")
    read = _add(commands, "read", _read, "record the answers to open requests")
    read.add_argument("answers", nargs="+", metavar="ANSWERS", help="JSON lines with answers")
    read.add_argument(
        "--author",
        metavar="TEXT",
        help="who wrote them; needed unless a batch API's answers name their model",
    )
    read.add_argument(
        "--date", metavar="DAY", help="when they were written, as 2026-01-31 (default: today)"
    )
    read.add_argument(
        "--into",
        default=NEW_FILE,
        metavar="NAME",
        help="the file of the folder that gets them (default: recorded.jsonl)",
    )


def _add(commands: Subparsers, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = add_command(commands, name, run, help=text, description=f"{text.capitalize()}.")
    parser.add_argument(
        "--replies", required=True, metavar="DIR", help="the folder of recorded replies"
    )
    add_json_option(parser, "what is printed otherwise")
    return parser


def _list(options: argparse.Namespace) -> int:
    folder = _opened(options)
    replies = folder.replies()
    counts = Counter((reply.author, reply.date) for reply in replies)
    still_open = len(folder.open_requests())
    if options.json:
        tokens = {
            "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
            "completion_tokens": sum(reply.completion_tokens for reply in replies),
        }
        authors = [
            {"author": author, "date": day, "replies": count}
            for (author, day), count in sorted(counts.items())
        ]
        print_json({"replies": len(replies), "open": still_open, **tokens, "authors": authors})
        return 0
    print_table(
        ("AUTHOR", "DATE", "REPLIES"),
        [[plain(author), day, str(count)] for (author, day), count in sorted(counts.items())],
    )
    total = count_text(len(replies), "reply", "replies")
    print(f"{total}, {count_text(still_open, 'open request')}")
    return 0


def _show(options: argparse.Namespace) -> int:
    requests = list(_opened(options).open_requests().items())[: options.limit]
    if options.json:
        print_json([line for _, line in requests])
        return 0
    for line in _shown(requests):
        print(line)
    return 0


def _shown(requests: list[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the requests as lines of text; instructions that several share are printed once."""
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for key, line in requests:
        messages = line["body"]["messages"]
        instructions = messages[0]["content"] if messages[0]["role"] == "system" else ""
        groups.setdefault(instructions, []).append((key, line["body"]))
    for instructions, group in groups.items():
        yield f"##### {count_text(len(group), 'request')} with these instructions:"
        yield instructions
        for key, body in group:
            yield f"\n### {key[:12]}"
            for message in body["messages"]:
                if message["content"] != instructions:
                    speaker = "" if message["role"] == "user" else f"[{message['role']}] "
                    yield f"{speaker}{message['content']}"
            for tool in body.get("tools", ()):
                yield json.dumps(tool, ensure_ascii=False)
        yield ""


def _read(options: argparse.Namespace) -> int:
    folder = _opened(options)
    if not folder.open_requests():
        raise ConfigurationError(
            f"{folder.path / OPEN_FILE} holds no open request. Run what asks the LLM with "
            "--missing-replies write first."
        )
    day = _day(options.date)
    if "/" in options.into or not options.into.endswith(".jsonl") or options.into == OPEN_FILE:
        raise ConfigurationError(
            f"--into is {options.into!r}, expected the name of a file such as recorded.jsonl."
        )
    recorded = 0
    known = 0
    problems: list[str] = []
    for file in options.answers:
        answers = add_answers(folder, Path(file), options.author or "", day, options.into)
        recorded += answers.recorded
        known += answers.known
        problems += answers.problems
    still_open = len(folder.open_requests())
    if options.json:
        figures = {"recorded": recorded, "known": known, "open": still_open}
        print_json({**figures, "problems": problems})
    else:
        print(
            f"{count_text(recorded, 'reply', 'replies')} recorded, {known} known already, "
            f"{count_text(still_open, 'request')} still open"
        )
    for problem in problems[:PROBLEMS_SHOWN]:
        print(plain(problem), file=sys.stderr)
    if len(problems) > PROBLEMS_SHOWN:
        print(f"and {len(problems) - PROBLEMS_SHOWN} more problems", file=sys.stderr)
    if problems and not recorded:
        print_error("pegboard replies", "no answer could be read")
        return ConfigurationError.exit_code
    return 0


def _day(text: str | None) -> str:
    if text is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigurationError(f"--date is {text!r}, expected a day as 2026-01-31.") from None


def _opened(options: argparse.Namespace) -> ReplyFolder:
    folder = Path(options.replies)
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is no folder. Expected the folder that was given as --replies."
        )
    return ReplyFolder(folder)
