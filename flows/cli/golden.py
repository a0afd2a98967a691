"""`pegboard golden`: queries whose right tools are known, looked over, held out of the catalogs'
examples, or written by an LLM.
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.golden_generate import register_generate
from pegboard.cli.output import Subparsers, plain, print_json
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from tasks.golden.checking import Checked, OnBoard
    from tasks.settings.configuration import Configuration

SHOWN = 10
"""Findings of a kind, and tools, that are printed; --json has all."""
EPILOG = """\
A golden file has one query in each line, with the true names, agent/name or ids of all tools that are right for it:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
The best are requests that people made. Next best are a catalog's own examples, held out of the index that they judge. What an
LLM writes is easier than what people ask: good for comparing, not for saying how good a board is."""
CHECK = """\
Without a board, the file is checked by itself: its form, requests that stand there twice, requests with several answers. On a
board (--board, or that of -c) also: names that no tool or several tools have, queries that stand in the index themselves, and
which tools, agents and catalogs no query asks for.

Exit code 2 if something has to be mended before the queries can be used; with --strict, also for warnings.

examples:
  pegboard golden check golden.jsonl
  pegboard golden check golden.jsonl -c pegboard.toml --strict
  pegboard golden check chat.jsonl --unanswerable --board ./board --json"""
HOLD_OUT = """\
What is taken is marked "origin": "examples". As long as [golden] or [gate] names the file, builds leave those queries out of
their tools' examples, so that the index does not hold what it is asked. Take the file away, and they are in it again.

The same seed takes the same examples, whatever comes or goes beside them. Examples that several tools have, or a tool nearly
twice, are never taken.

examples:
  pegboard golden hold-out -c pegboard.toml --out golden.jsonl
  pegboard golden hold-out --share 0.1 --per-tool 3 --out golden.jsonl --add"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "golden",
        help="check golden queries, or make some",
        description="Check golden queries, take them from the catalogs' examples, or have them "
        "written.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="golden_command", metavar="COMMAND", required=True)
    _register_check(commands)
    _register_hold_out(commands)
    register_generate(commands)


def _register_check(commands: Subparsers) -> None:
    check: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="say what is wrong with golden queries, and what they do not cover",
        description="Say what is wrong with a file of golden queries, by itself and on a board, "
        "and what it does not cover.",
        epilog=CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "golden", help="JSON lines of queries with the tools that are right for them"
    )
    check.add_argument(
        "--board",
        metavar="URI",
        help="check on this board (default: that of -c, else $PEGBOARD_BOARD)",
    )
    check.add_argument(
        "-c", "--config", metavar="FILE", help="check on the board of this pegboard.toml"
    )
    check.add_argument("--channel", default="live", help="the channel to check on (default: live)")
    check.add_argument(
        "--release", help="a release to check on instead of a channel, by id or its beginning"
    )
    check.add_argument(
        "--unanswerable", action="store_true", help="the file holds requests that no tool answers"
    )
    check.add_argument(
        "--words-only",
        action="store_true",
        help="compare with the index by words only, without encoder",
    )
    check.add_argument("--strict", action="store_true", help="end with 2 for warnings, too")
    check.add_argument(
        "--json", action="store_true", help="print one JSON object: findings, usable, coverage, ..."
    )
    check.set_defaults(run=_check)


def _register_hold_out(commands: Subparsers) -> None:
    hold_out: argparse.ArgumentParser = commands.add_parser(
        "hold-out",
        help="take golden queries from the catalogs' own examples",
        description="Take some of the catalogs' own example requests as golden queries, and hold "
        "them out of the index from then on.",
        epilog=HOLD_OUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hold_out.add_argument(
        "-c", "--config", default="pegboard.toml", metavar="FILE", help="default: pegboard.toml"
    )
    hold_out.add_argument(
        "--out", required=True, metavar="FILE", help="the file of golden queries to write"
    )
    hold_out.add_argument(
        "--add", action="store_true", help="keep the queries that the file has, and add to them"
    )
    hold_out.add_argument(
        "--share", type=float, default=0.2, help="of each tool's examples (default: 0.2)"
    )
    hold_out.add_argument("--per-tool", type=int, metavar="N", help="at most so many of a tool")
    hold_out.add_argument(
        "--min-left",
        type=int,
        default=1,
        metavar="N",
        help="examples that a tool keeps (default: 1)",
    )
    hold_out.add_argument("--seed", type=int, default=0, help="which ones are taken (default: 0)")
    hold_out.add_argument(
        "--json", action="store_true", help="print one JSON object: what was taken, and of what"
    )
    hold_out.set_defaults(run=_hold_out)


def _check(options: argparse.Namespace) -> int:
    from tasks.golden.checking import check_golden
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config) if options.config else None
    default = configuration.uri if configuration else os.environ.get("PEGBOARD_BOARD")
    uri: str | None = options.board or default
    checked = check_golden(
        Path(options.golden),
        _on_board(uri, options) if uri else None,
        answerable=not options.unanswerable,
        held_out=_is_configured(configuration, Path(options.golden)) if configuration else None,
    )
    failed = checked.failed(strict=options.strict)
    if options.json:
        print_json({"file": options.golden, "ok": not failed} | checked.to_dict())
    else:
        _print_check(options.golden, checked)
    return ConfigurationError.exit_code if failed else 0


def _on_board(uri: str, options: argparse.Namespace) -> "OnBoard":
    from pegboard.evaluation.searcher import Searcher
    from tasks.golden.checking import OnBoard
    from tasks.golden.leaks import indexed_texts

    searcher = Searcher.open(uri, options.channel, options.release)
    index = searcher.loaded.index_name(None)
    units = (
        None
        if options.words_only
        else lambda texts: searcher.vectors.units(searcher.loaded, index, texts)
    )
    return OnBoard(searcher.release.id, searcher.names, indexed_texts(searcher, uri), units)


def _is_configured(configuration: "Configuration", file: Path) -> bool:
    golden, gate = configuration.golden, configuration.gate
    named = [
        golden.queries if golden else None,
        gate.queries if gate else None,
        gate.canaries if gate else None,
    ]
    return file.resolve() in {
        (configuration.base / one).resolve() for one in named if one is not None
    }


def _hold_out(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from tasks.golden.files import queries_to_add_to
    from tasks.golden.hold_out import pick_examples, tools_with_examples
    from tasks.settings.configuration import load_configuration

    out = Path(options.out)
    there = queries_to_add_to(out, add=options.add)
    configuration = load_configuration(options.config)
    picked = pick_examples(
        tools_with_examples(configuration),
        options.share,
        per_tool=options.per_tool,
        min_left=options.min_left,
        seed=options.seed,
        known=there,
    )
    write_queries(out, [*there, *picked.queries])
    configured = _is_configured(configuration, out)
    if options.json:
        figures = {
            "tools": picked.tools,
            "examples": picked.examples,
            "not_taken_as_twins": picked.twins,
        }
        print_json(
            {
                "written": str(out),
                "queries": len(picked.queries),
                "there": len(there),
                **figures,
                "configured": configured,
            }
        )
        return 0
    asked = len({query.tools for query in picked.queries})
    before = f" beside {len(there)} that were there" if there else ""
    print(
        f"{out}: {len(picked.queries)} of {picked.examples} examples, of {asked} of the "
        f"{picked.tools} tools that have any{before}"
    )
    if picked.twins:
        print(
            f"{picked.twins} examples cannot be taken: another tool has the same, or the tool has "
            f"one nearly like it"
        )
    if configured:
        print("The next build holds them out.")
    else:
        print(
            f"A build holds them out as soon as {options.config} says:\n\n[golden]\nqueries = "
            f'"{_from(configuration, out)}"'
        )
    return 0


def _from(configuration: "Configuration", file: Path) -> str:
    return plain(os.path.relpath(file.resolve(), configuration.base))


def _print_check(file: str, checked: "Checked") -> None:
    said: dict[str, Any] = checked.to_dict()
    on = f" on release {checked.release}" if checked.release else ""
    print(f"{file}: {said['queries']} queries{on}, {said['usable']} of them can be used")
    for name in ("kinds", "origins"):
        counts = ", ".join(f"{plain(one)} {count}" for one, count in sorted(said[name].items()))
        print(f"{name}: {counts or 'none'}")
    for level, title in (("error", "has to be mended"), ("warning", "worth a look")):
        findings = [one for one in checked.findings if one.level == level]
        if findings:
            print(f"\n{title}:")
        for what in dict.fromkeys(one.what for one in findings):
            same = [one for one in findings if one.what == what]
            for one in same[:SHOWN]:
                print(f"  - {what}: {plain(one.says)}")
            if len(same) > SHOWN:
                print(f"  - {what}: and {len(same) - SHOWN} more")
    if checked.coverage is None:
        return
    parts = (
        ("tools", checked.coverage.tools),
        ("agents", checked.coverage.agents),
        ("catalogs", checked.coverage.catalogs),
    )
    print(
        "\nasked for: " + ", ".join(f"{asked} of {total} {name}" for name, (asked, total) in parts)
    )
    if never := checked.coverage.never:
        more = f", and {len(never) - SHOWN} more" if len(never) > SHOWN else ""
        print(f"never: {plain(', '.join(never[:SHOWN]))}{more}")
