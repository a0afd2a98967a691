"""`pegboard golden`: golden queries, checked, held out of the catalogs' examples, taken from a log
or generated.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.options import add_config_option
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    default_board,
    print_error,
    print_json,
    progress_lines,
)
from pegboard.errors import BoardNotFound, CompletionError, ConfigurationError
from pegboard.formatting import count_text, limited_lines, list_text, plain

if TYPE_CHECKING:
    from tasks.golden.checking import Checked, Finding, OnBoard
    from tasks.golden.generating import Generated
    from tasks.settings.configuration import Configuration
    from tasks.settings.enrichment import EnrichSettings

SHOWN = 10
"""Maximum findings of a kind, and tools, that are printed; --json has all."""
EPILOG = """\
A golden file has one query per line, with the names, agent/name or ids of all relevant tools:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
The best queries are requests that people made, next best a catalog's own examples, held out of the
index; what an LLM writes is easier, and good for comparisons only."""
CHECK = """\
Without a board, the file is checked by itself: its format, duplicates, the same request with
different tools. On a board also: names that no tool or several tools have, queries that are in the
index themselves, and which tools, agents and catalogs no query needs.

Exit code 2 if something has to be fixed before the queries can be used; with --strict, also for
warnings.

examples:
  pegboard golden check golden.jsonl
  pegboard golden check golden.jsonl -c pegboard.toml --strict"""
HOLD_OUT = """\
As long as [golden] or [gate] names the file, builds leave its queries out of their tools' examples,
so that the index does not contain what evaluates it. Without the file, they are in the index again.

The same examples are picked again, whatever comes or goes beside them. Every tool keeps one, and
examples that several tools have, or a tool nearly twice, are never picked.

examples:
  pegboard golden hold-out -c pegboard.toml --out golden.jsonl
  pegboard golden hold-out --share 0.1 --out golden.jsonl --add"""
SUGGEST = """\
LOG is the file that [serve] log names. A request counts as in `pegboard examples`: enough clients
and sessions made a similar one and then called the tool. Builds never learn a golden query, so with
a --share below 1 the rest stays for [examples]. Read the suggestions before a gate trusts them: a
tool that was called is not always the right one.

example:
  pegboard golden suggest requests.jsonl --out golden.jsonl --add"""
GENERATED = (
    "Generated queries are easier than what people ask: they are made from the descriptions that "
    "they have to find. Use them to compare strategies and indexes, not to judge how good a board "
    "is, and read some of them first."
)
GENERATE = f"""\
Tools are sampled, and the LLM writes a request for each sample: a question, a command, a few search
words, ... Requests that name a tool, copy a description, repeat an example or another request, or
are in the wrong language are left out and counted. The file is written as they come; with --add a
run that ended early, or one for more queries, goes on with the other samples.

{GENERATED}

examples:
  pegboard golden generate --board ./board --model openai/gpt-4o-mini --out generated.jsonl
  pegboard golden generate -c pegboard.toml --budget-usd 0.50 --out generated.jsonl
  pegboard golden generate --board ./board --model ollama/llama3.2 -n 50 --out more.jsonl
  pegboard golden generate -c pegboard.toml --dependencies -n 50 --out linked.jsonl"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "golden",
        epilog=EPILOG,
        help="check, hold out, suggest or generate golden queries",
        description="Check golden queries, hold out examples of the catalogs, take requests from a "
        "gateway's log, or have an LLM write some.",
    )
    commands = parser.add_subparsers(dest="golden_command", metavar="COMMAND", required=True)
    _register_check(commands)
    _register_hold_out(commands)
    _register_suggest(commands)
    _register_generate(commands)


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
    _add_board_options(check)
    check.add_argument("--strict", action="store_true", help="exit with 2 for warnings, too")
    add_json_option(check, "findings, usable, coverage, ...")


def _add_board_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--board",
        metavar="URI",
        help="the board (default: that of -c, else $PEGBOARD_BOARD, else that of ./pegboard.toml)",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="a pegboard.toml, and its board")
    add_options(parser, "--channel", "--release")


def _add_out_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", required=True, metavar="FILE", help="the file of golden queries to write")
    add("--add", action="store_true", help="keep the queries of the file, and add to them")


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
    _add_out_options(hold_out)
    hold_out.add_argument(
        "--share", type=float, default=0.2, help="share of each tool's examples (default: 0.2)"
    )


def _register_suggest(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "suggest",
        _suggest,
        SUGGEST,
        help="take requests from a gateway's log as golden queries",
        description="Take requests after which clients called a tool from a gateway's log, and say "
        "how many golden queries are missing.",
    )
    add = parser.add_argument
    add("log", metavar="LOG", help="the request log of `pegboard serve`")
    _add_out_options(parser)
    add("--share", type=float, default=0.5, help="share of the requests (default: 0.5)")


def _register_generate(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "generate",
        _generate,
        GENERATE,
        help="have an LLM write golden queries",
        description="Have an LLM write requests for tools of a board, and keep those that can be "
        "golden queries.",
    )
    add = parser.add_argument
    _add_board_options(parser)
    add(
        "--model", metavar="NAME", help="a LiteLLM model, as openai/gpt-4o-mini (default: [enrich])"
    )
    add("--api-base", metavar="URL", help="address of its server, if not the provider's own")
    add("--budget-usd", type=float, metavar="USD", help="the most that may be spent")
    add_options(parser, "--replies", "--missing-replies")
    _add_out_options(parser)
    add(
        "-n", "--queries", type=int, default=200, metavar="N",
        help="generated queries in the file in all (default: 200)",
    )  # fmt: skip
    add(
        "--dependencies",
        action="store_true",
        help="draw tools with declared dependencies: each request is about one of them, and needs "
        "everything that it depends on",
    )
    add_options(parser, "--quiet")


def _check(options: argparse.Namespace) -> int:
    from tasks.golden.checking import check_golden

    configuration, uri = _configuration_and_board(options)
    golden = configuration.golden if configuration else None
    limits = {"min_queries": golden.min_queries} if golden else {}
    checked = check_golden(
        Path(options.golden),
        _find_board(uri, options) if uri else None,
        held_out=_is_configured(configuration, Path(options.golden)) if configuration else None,
        **limits,
    )
    failed = checked.failed(strict=options.strict)
    if options.json:
        print_json({"file": options.golden, "ok": not failed} | checked.to_dict())
    else:
        _print_check(options.golden, checked)
    return ConfigurationError.exit_code if failed else 0


def _configuration_and_board(
    options: argparse.Namespace,
) -> "tuple[Configuration | None, str | None]":
    """The configuration of -c, and the address of --board, else its board, else the default."""
    from tasks.settings.configuration import load_configuration

    if not options.config:
        return None, options.board or default_board()
    configuration = load_configuration(options.config)
    return configuration, options.board or configuration.uri


def _find_board(uri: str, options: argparse.Namespace) -> "OnBoard | None":
    """The board; None for that of ./pegboard.toml if it was not built yet."""
    from pegboard.evaluation.searcher import Searcher
    from tasks.golden.checking import OnBoard

    try:
        searcher = Searcher.open(uri, options.channel, options.release)
    except BoardNotFound:
        if options.board or options.config or os.environ.get("PEGBOARD_BOARD"):
            raise
        return None
    return OnBoard.of(searcher)


def _is_configured(configuration: "Configuration", file: Path) -> bool:
    from tasks.golden.reading import configured_files

    return file.resolve() in {one.resolve() for one in configured_files(configuration)}


def _hold_out(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from tasks.golden.hold_out import pick_examples, tools_with_examples
    from tasks.golden.reading import queries_to_extend
    from tasks.settings.configuration import load_configuration
    from tasks.steps.snapshot import last_snapshots

    out = Path(options.out)
    existing = queries_to_extend(out, add=options.add)
    configuration = load_configuration(options.config)
    tools_listed = tools_with_examples(configuration, last_snapshots(configuration))
    picked = pick_examples(tools_listed, options.share, existing=existing)
    write_queries(out, [*existing, *picked.queries])
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
    if _is_configured(configuration, out):
        print("The next build holds them out.")
    else:
        file = plain(os.path.relpath(out.resolve(), configuration.base))
        print(f'To hold them out, add to {options.config}:\n\n[golden]\nqueries = "{file}"')
    return 0


def _suggest(options: argparse.Namespace) -> int:
    from pegboard.evaluation.golden import write_queries
    from pegboard.evaluation.usage import learn, read_usage
    from tasks.golden.hold_out import suggest_queries
    from tasks.golden.reading import queries_to_extend
    from tasks.settings.release import MIN_QUERIES

    out = Path(options.out)
    existing = queries_to_extend(out, add=options.add)
    learned = learn(read_usage(Path(options.log)))
    queries = suggest_queries(learned.examples, options.share, existing=existing)
    write_queries(out, [*existing, *queries])
    missing = max(0, MIN_QUERIES - len(existing) - len(queries))
    print(
        f"{out}: {len(queries)} of {count_text(len(learned.examples), 'request')} that enough "
        "clients made, beside "
        f"{count_text(len(existing), 'existing query', 'existing queries')}"
    )
    if missing:
        print(
            f"{missing} more are missing until a build accepts the file ({MIN_QUERIES} by default):"
            " label requests yourself, wait for more use, or try `pegboard golden generate`."
        )
    return 0


def _print_check(file: str, checked: "Checked") -> None:
    figures = checked.to_dict()
    on = f" on release {checked.release}" if checked.release else ""
    print(f"{file}: {figures['queries']} queries{on}, {figures['usable']} usable")
    counts = ", ".join(f"{name} {count}" for name, count in sorted(figures["origins"].items()))
    print(f"origins: {counts or 'none'}")
    _print_findings("errors", [row for row in checked.findings if row.level == "error"])
    _print_findings("warnings", [row for row in checked.findings if row.level == "warning"])
    if checked.coverage is not None:
        _print_coverage(checked.coverage)


def _print_findings(title: str, findings: "list[Finding]") -> None:
    if findings:
        print(f"\n{title}:")
    for kind in dict.fromkeys(finding.kind for finding in findings):
        same = [plain(finding.message) for finding in findings if finding.kind == kind]
        lines = [f"  - {kind}: {message}" for message in same]
        for line in limited_lines(lines, SHOWN, f"  - {kind}: "):
            print(line)


def _print_coverage(coverage: Mapping[str, Any]) -> None:
    parts = ((name, coverage[name]) for name in ("tools", "agents", "catalogs"))
    needed = ", ".join(f"{part['covered']} of {part['of']} {name}" for name, part in parts)
    print(f"\ncoverage: {needed}")
    if coverage["uncovered"]:
        print(f"uncovered: {plain(list_text(coverage['uncovered'], SHOWN))}")


def _generate(options: argparse.Namespace) -> int:
    from pegboard.evaluation.searcher import Searcher
    from pegboard.llm.recorded import missing_message
    from tasks.enrichment.models import configured_completer
    from tasks.golden.generating import generate_queries
    from tasks.golden.reading import queries_to_extend

    if options.queries < 1:
        raise ConfigurationError(f"-n is {options.queries}; expected 1 or more.")
    out = Path(options.out)
    existing = queries_to_extend(out, add=options.add)
    configuration, uri = _configuration_and_board(options)
    settings = _model_settings(options, configuration)
    if uri is None:
        raise ConfigurationError("No board is named. Give --board URI, or -c FILE.")
    completer = configured_completer(settings, configuration.base if configuration else Path())
    searcher = Searcher.open(uri, options.channel, options.release)
    generated = generate_queries(
        searcher.loaded,
        settings,
        completer,
        out,
        count=options.queries,
        existing=existing,
        dependencies=options.dependencies,
        advance=progress_lines("generated", options.queries, quiet=options.quiet),
    )
    _print_generated(out, generated)
    if missing := missing_message(completer):
        print_error("pegboard golden", f"{missing.removesuffix('.')} with --add.")
        return CompletionError.exit_code
    return _exit_code(options, generated)


def _model_settings(
    options: argparse.Namespace, configuration: "Configuration | None"
) -> "EnrichSettings":
    """The settings of --model, or else those of [enrich]."""
    from tasks.golden.generating import model_settings

    if options.model:
        given = {
            "api_base": options.api_base,
            "budget_usd": options.budget_usd,
            "replies": options.replies,
            "missing_replies": options.missing_replies,
        }
        return model_settings(options.model, **given)
    if configuration is None or (enrich := configuration.enrich) is None:
        raise ConfigurationError("No model is named. Give --model NAME, or -c FILE with [enrich].")
    budget = enrich.budget_usd if options.budget_usd is None else options.budget_usd
    changes: dict[str, Any] = {"budget_usd": budget}
    if options.replies:
        changes |= {"replies": str(Path(options.replies).absolute())}
    if options.missing_replies:
        changes |= {"missing_replies": options.missing_replies}
    return enrich.model_copy(update=changes)


def _print_generated(out: Path, generated: "Generated") -> None:
    budget = generated.client.budget
    cost = "unknown cost" if budget.unpriced else f"{budget.spent_usd:.4f} USD"
    print(
        f"{out}: {count_text(len(generated.queries), 'new query', 'new queries')}; "
        f"{count_text(budget.replies, 'reply', 'replies')}, {cost}"
    )
    if generated.rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in generated.rejected.items())
        print(f"left out: {reasons}")


def _exit_code(options: argparse.Namespace, generated: "Generated") -> int:
    """Say why there are fewer queries than requested; return the exit code."""
    if not options.quiet and generated.queries:
        print_error("pegboard golden", GENERATED)
    if (stopped := generated.client.stopped) is not None:
        print_error(
            "pegboard golden",
            f"{str(stopped).rstrip('.')}. Run again with --add to go on.",
        )
        return int(getattr(stopped, "exit_code", 1))
    if generated.missing:
        calls = f" {generated.failed} calls failed." if generated.failed else ""
        print_error(
            "pegboard golden",
            f"{generated.missing} of {options.queries} queries are missing.{calls} The board has "
            "no more tools to sample, or too many requests were left out: try another model.",
        )
    return 0
