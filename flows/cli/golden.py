"""`pegboard golden`: golden queries, checked, held out of the catalogs' examples or generated."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.golden_generate import register_generate
from flows.cli.options import add_config_option
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    default_board,
    plain,
    print_json,
)
from pegboard.errors import BoardNotFound, ConfigurationError

if TYPE_CHECKING:
    from tasks.golden.checking import Checked, Coverage, Finding, OnBoard
    from tasks.settings.configuration import Configuration

SHOWN = 10
"""Findings of a kind, and tools, that are printed; --json has all."""
EPILOG = """\
A golden file has one query per line, with the names, agent/name or ids of all relevant tools:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
The best queries are requests that people made. Next best are a catalog's own examples, held out of
the index that they evaluate. What an LLM writes is easier than what people ask: good for
comparisons, not for absolute figures."""
CHECK = """\
Without a board, the file is checked by itself: its format, duplicates, the same request with
different tools. On a board (--board, or that of a pegboard.toml) also: names that no tool or
several tools have, queries that are in the index themselves, and which tools, agents and catalogs
no query needs.

Exit code 2 if something has to be fixed before the queries can be used; with --strict, also for
warnings.

examples:
  pegboard golden check golden.jsonl
  pegboard golden check golden.jsonl -c pegboard.toml --strict"""
HOLD_OUT = """\
Held-out queries are marked "origin": "examples". As long as [golden] or [gate] names the file,
builds leave them out of their tools' examples, so that the index does not contain the queries that
evaluate it. Without the file, the examples are in the index again.

The same seed picks the same examples, whatever comes or goes beside them. Examples that several
tools have, or a tool nearly twice, are never picked.

examples:
  pegboard golden hold-out -c pegboard.toml --out golden.jsonl
  pegboard golden hold-out --share 0.1 --per-tool 3 --out golden.jsonl --add"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "golden",
        epilog=EPILOG,
        help="check, hold out or generate golden queries",
        description="Check golden queries, hold out examples of the catalogs, or have an LLM write "
        "some.",
    )
    commands = parser.add_subparsers(dest="golden_command", metavar="COMMAND", required=True)
    _register_check(commands)
    _register_hold_out(commands)
    register_generate(commands)


def _register_check(commands: Subparsers) -> None:
    check = add_command(
        commands,
        "check",
        _check,
        CHECK,
        help="check a file of golden queries, and its coverage",
        description="Check a file of golden queries, by itself and on a board, and its coverage.",
    )
    check.add_argument("golden", help="JSON lines of queries with their relevant tools")
    check.add_argument(
        "--board",
        metavar="URI",
        help="check on this board (default: that of -c, else $PEGBOARD_BOARD, else that of "
        "./pegboard.toml)",
    )
    check.add_argument(
        "-c", "--config", metavar="FILE", help="check on the board of this pegboard.toml"
    )
    add_options(check, "--channel")
    check.add_argument("--release", help="a release instead of a channel, by id or a prefix of it")
    check.add_argument(
        "--words-only",
        action="store_true",
        help="compare with the index by words only, without an encoder",
    )
    check.add_argument("--strict", action="store_true", help="exit with 2 for warnings, too")
    add_json_option(check, "findings, usable, coverage, ...")


def _register_hold_out(commands: Subparsers) -> None:
    hold_out = add_command(
        commands,
        "hold-out",
        _hold_out,
        HOLD_OUT,
        help="hold out examples of the catalogs as golden queries",
        description="Pick some of the catalogs' own example requests as golden queries, and hold "
        "them out of the index from then on.",
    )
    add_config_option(hold_out, "pegboard.toml")
    hold_out.add_argument(
        "--out", required=True, metavar="FILE", help="the file of golden queries to write"
    )
    hold_out.add_argument(
        "--add", action="store_true", help="keep the queries of the file, and add to them"
    )
    hold_out.add_argument(
        "--share", type=float, default=0.2, help="share of each tool's examples (default: 0.2)"
    )
    hold_out.add_argument("--per-tool", type=int, metavar="N", help="the most of one tool")
    hold_out.add_argument(
        "--min-left",
        type=int,
        default=1,
        metavar="N",
        help="examples that every tool keeps (default: 1)",
    )
    hold_out.add_argument("--seed", type=int, default=0, help="seed of the choice (default: 0)")
    add_json_option(hold_out, "the figures")


def _check(options: argparse.Namespace) -> int:
    from tasks.golden.checking import check_golden
    from tasks.settings.configuration import load_configuration

    configuration = load_configuration(options.config) if options.config else None
    uri: str | None = options.board or (configuration.uri if configuration else default_board())
    golden = configuration.golden if configuration else None
    limits = {"min_queries": golden.min_queries} if golden else {}
    checked = check_golden(
        Path(options.golden),
        _find_board(uri, options) if uri else None,
        held_out=_is_configured(configuration, Path(options.golden)) if configuration else None,
        **limits,
    )
    failed = checked.failed(strict=options.strict)
    margins = _margin_lines(configuration, checked, options.golden)
    if options.json:
        print_json(
            {"file": options.golden, "ok": not failed, "margins": margins} | checked.to_dict()
        )
    else:
        _print_check(options.golden, checked)
        for line in margins:
            print(plain(line))
    return ConfigurationError.exit_code if failed else 0


def _margin_lines(
    configuration: "Configuration | None", checked: "Checked", file: str
) -> list[str]:
    """How small a loss a gate can show with the usable queries, and the rules that ask for less."""
    from tasks.gate.rules import margin_advice, margin_text, parse_rule

    lines = [margin_text(checked.usable)] if checked.usable else []
    if configuration and configuration.gate and _is_configured(configuration, Path(file)):
        rules = [parse_rule(text) for text in configuration.gate.rules]
        lines += margin_advice(rules, checked.queries)
    return lines


def _find_board(uri: str, options: argparse.Namespace) -> "OnBoard | None":
    """The board; None for that of ./pegboard.toml if it was not built yet."""
    try:
        return _on_board(uri, options)
    except BoardNotFound:
        if options.board or options.config or os.environ.get("PEGBOARD_BOARD"):
            raise
        return None


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
    from tasks.golden.reading import configured_files

    return file.resolve() in {one.resolve() for one in configured_files(configuration)}


def _hold_out(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from tasks.golden.hold_out import pick_examples, tools_with_examples
    from tasks.golden.reading import queries_to_extend
    from tasks.settings.configuration import load_configuration

    out = Path(options.out)
    existing = queries_to_extend(out, add=options.add)
    configuration = load_configuration(options.config)
    picked = pick_examples(
        tools_with_examples(configuration),
        options.share,
        per_tool=options.per_tool,
        min_left=options.min_left,
        seed=options.seed,
        existing=existing,
    )
    write_queries(out, [*existing, *picked.queries])
    figures = {
        "written": str(out),
        "queries": len(picked.queries),
        "existing": len(existing),
        "tools": picked.tools,
        "examples": picked.examples,
        "duplicates": picked.duplicates,
        "configured": _is_configured(configuration, out),
    }
    if options.json:
        print_json(figures)
        return 0
    tools = len({query.tools for query in picked.queries})
    beside = f", added to {len(existing)} existing ones" if existing else ""
    print(
        f"{out}: {len(picked.queries)} of {picked.examples} examples, of {tools} of the "
        f"{picked.tools} tools that have any{beside}"
    )
    if picked.duplicates:
        print(
            f"{picked.duplicates} examples cannot be held out: another tool has the same, or the "
            "tool has a near-duplicate"
        )
    if figures["configured"]:
        print("The next build holds them out.")
    else:
        file = plain(os.path.relpath(out.resolve(), configuration.base))
        print(f'To hold them out, add to {options.config}:\n\n[golden]\nqueries = "{file}"')
    return 0


def _print_check(file: str, checked: "Checked") -> None:
    figures = checked.to_dict()
    on = f" on release {checked.release}" if checked.release else ""
    print(f"{file}: {figures['queries']} queries{on}, {figures['usable']} usable")
    for name in ("kinds", "origins"):
        counts = ", ".join(f"{plain(one)} {count}" for one, count in sorted(figures[name].items()))
        print(f"{name}: {counts or 'none'}")
    _print_findings("errors", [one for one in checked.findings if one.level == "error"])
    _print_findings("warnings", [one for one in checked.findings if one.level == "warning"])
    if checked.coverage is not None:
        _print_coverage(checked.coverage)


def _print_findings(title: str, findings: "list[Finding]") -> None:
    if findings:
        print(f"\n{title}:")
    for kind in dict.fromkeys(finding.kind for finding in findings):
        same = [finding for finding in findings if finding.kind == kind]
        for finding in same[:SHOWN]:
            print(f"  - {kind}: {plain(finding.message)}")
        if len(same) > SHOWN:
            print(f"  - {kind}: and {len(same) - SHOWN} more")


def _print_coverage(coverage: "Coverage") -> None:
    parts = {"tools": coverage.tools, "agents": coverage.agents, "catalogs": coverage.catalogs}
    needed = ", ".join(f"{count} of {total} {name}" for name, (count, total) in parts.items())
    print(f"\ncoverage: {needed}")
    if uncovered := coverage.uncovered:
        more = f", and {len(uncovered) - SHOWN} more" if len(uncovered) > SHOWN else ""
        print(f"uncovered: {plain(', '.join(uncovered[:SHOWN]))}{more}")
