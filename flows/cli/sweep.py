"""`pegboard sweep`: choose index, strategy and k of a release."""

import argparse
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from flows.cli.options import add_config_option, collect_garbage_rarely, quiet_encoders
from pegboard.cli.eval import fallbacks_exit_code
from pegboard.cli.find import llm_arguments
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_error,
    print_json,
    print_table,
)
from pegboard.formatting import plain

if TYPE_CHECKING:
    from pegboard.evaluation.overhead import Overhead
    from tasks.golden.sweep import Choice, LlmPlan, Result
    from tasks.settings.sweep import Sweep

NAME = "pegboard sweep"

EPILOG = """\
Every index of a release is measured with every strategy, at every k. The indexes are those of
[[indexes]] that the release was built with; readers use default_index, whatever others there are.
The table [sweep] of the configuration has defaults for these options, and more: measures and
margin.

The best index, strategy and k are those of the first measure. The cheapest that is shown to be no
worse by more than margin (0.02) is recommended; where too few queries show it, the best is.

Strategies that ask an LLM need --llm. What they would ask, and what that costs by list price, is
said before anything is asked; --plan says no more than that. With --replies, every reply is paid
once, for this sweep and all later ones. Where --budget-usd ends, so does the sweep, with what is
measured until then. Such strategies are not timed.

examples:
  pegboard sweep --golden golden.jsonl
  pegboard sweep --golden golden.jsonl --strategy search --strategy clauses -k 1..20
  pegboard sweep --golden golden.jsonl --max-tokens 1000 --max-ms 50
  pegboard sweep --golden golden.jsonl --tools 100,500 --noise random:30,near:10
  pegboard sweep --golden golden.jsonl --strategy search --strategy rag-tool-fusion \\
      --tools 100,500 --llm openai/gpt-4o-mini --replies replies --budget-usd 2
  pegboard sweep --golden golden.jsonl --release 1f0c --json"""
OPTIONS: dict[str, dict[str, Any]] = {
    "--golden": {"metavar": "FILE", "help": "golden queries, JSON lines (default: [golden])"},
    "--strategy": {
        "action": "append",
        "help": "a strategy's name or JSON file; repeatable (default: search, clauses)",
    },
    "-k": {"action": "append", "metavar": "K", "help": "5, or 1,5,10, or 1..20 (default)"},
    "--max-tokens": {
        "type": float,
        "metavar": "N",
        "help": "limit on the mean tokens of the k tools in a prompt, and of what an LLM reads and "
        "writes",
    },
    "--max-ms": {
        "type": float,
        "metavar": "N",
        "help": "limit on the 95th percentile of milliseconds per request",
    },
    "--agents": {
        "action": "store_true",
        "default": None,
        "help": "search for agents instead of tools, by the ways of Board.search_agents",
    },
    "--tools": {
        "metavar": "N,...",
        "help": "also measure among N random tools that include all needed ones, for each N: "
        "100,500",
    },
    "--noise": {
        "metavar": "KIND:N,...",
        "help": "also measure each query among its needed tools and N random ones (random:30), or "
        "the N nearest to each of them (near:10)",
    },
    "--release": {
        "metavar": "ID",
        "help": "a release of the board, by id or channel (default: that of [board] channel)",
    },
}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "sweep",
        _sweep,
        EPILOG,
        help="measure indexes, strategies and k of a release, and name the best",
        description="Measure every index of a release with every strategy, at every k, and name "
        "the best.",
    )
    add_config_option(parser, "pegboard.toml")
    for name, settings in OPTIONS.items():
        parser.add_argument(name, **settings)
    add_options(parser, "--llm", "--llm-api-base", "--llm-options")
    add_options(parser, "--replies", "--missing-replies", "--budget-usd", "--max-fallbacks")
    parser.add_argument(
        "--plan",
        action="store_true",
        help="say how often the LLM would be asked and what that costs, and ask nothing",
    )
    add_options(parser, "--quiet")
    add_json_option(parser, "release, queries, rows, choice, says")


def _sweep(options: argparse.Namespace) -> int:
    collect_garbage_rarely()
    from tasks.golden.sweep import choose, measure, open_release, plan_of
    from tasks.runtime import progress
    from tasks.settings.sweep import read_sweep

    llm = llm_arguments(options)
    sweep = read_sweep(options.config, _parameters(options), llm=options.llm is not None)
    with quiet_encoders(), progress.showing(not options.quiet):
        searcher = open_release(sweep, **llm)
        with closing(searcher):
            if sweep.asking:
                plan = plan_of(sweep, searcher)
                if options.plan:
                    return _print_plan(plan, as_json=options.json)
                print("\n".join(plan.sentences()), file=sys.stderr)
            elif options.plan:
                print("no strategy asks an LLM")
                return 0
            results = measure(sweep, searcher)
    exhausted = searcher.caller.exhausted if searcher.caller else None
    if exhausted is not None and not results:
        raise exhausted
    _print_results(options, sweep, searcher.release.id, results, choose(results, sweep.settings))
    if exhausted is not None:
        print_error(NAME, f"{exhausted} The systems behind the last row are not measured.")
        return exhausted.exit_code
    return fallbacks_exit_code(NAME, _overheads(results), options.max_fallbacks)


def _overheads(results: "list[Result]") -> "list[Overhead]":
    """Return what the answers of each system took, each once: a system has a result for every k."""
    systems = {(result.index, result.strategy, result.pool): result for result in results}
    return [result.overhead for result in systems.values() if result.overhead is not None]


def _print_plan(plan: "LlmPlan", *, as_json: bool) -> int:
    if as_json:
        print_json(plan.to_dict())
    else:
        print("\n".join(plan.sentences()))
    return 0


def _print_results(
    options: argparse.Namespace,
    sweep: "Sweep",
    release: str,
    results: "list[Result]",
    choice: "Choice",
) -> None:
    from tasks.golden.sweep import curve_table, result_table, sentences

    if options.json:
        print_json(
            {
                "release": release,
                "queries": len(sweep.queries),
                "rows": [result.to_dict() for result in results],
                "choice": choice.to_dict(),
                "says": sentences(choice, sweep),
            }
        )
        return
    print(f"release {release}, {len(sweep.queries)} queries; means, 95 % intervals")
    print_table(*result_table(results, choice, sweep.settings))
    if sweep.settings.pools:
        print("\nby number of tools and k")
        print_table(*curve_table(results, sweep.settings))
    print()
    for line in sentences(choice, sweep):
        print(plain(line))


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the sweep; None for options that are not given."""
    names = [option.lstrip("-").replace("-", "_") for option in OPTIONS]
    return {{"strategy": "strategies"}.get(name, name): getattr(options, name) for name in names}
