"""`pegboard eval`: measure a release on golden queries, by any strategies in any indexes."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pegboard.cli.find import llm_arguments
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    print_error,
    print_json,
    print_table,
    progress_lines,
)
from pegboard.errors import CompletionError, QueryError
from pegboard.formatting import count_text, difference_text, interval_text, list_text, plain

if TYPE_CHECKING:
    from pegboard.evaluation.comparison import Evaluation
    from pegboard.evaluation.dependency_errors import DependencyAccount
    from pegboard.evaluation.golden import GoldenQuery
    from pegboard.evaluation.overhead import Overhead
    from pegboard.evaluation.pools import Pool
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem

SHOWN = ("Recall@1", "Recall@5", "Recall@10", "Complete@5", "nDCG@5", "mAP@10")
MISSING_SHOWN = 10
"""Maximum number of missing tools named in the warning, which counts all of them."""
EPILOG = """\
A golden file has one query in each line, with the true names, agent/name or ids of the right tools:
  {"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}
  {"query": "book a table and invite Ana", "tools": ["book_table", "invite"], "kind": "parallel"}
  {"query": "plan a trip to Oslo", "agents": ["travel"]}
The last one is for --agents. Use at least thirty queries, worded as users word them; `pegboard
golden check` checks the file.

Every strategy is evaluated in every index. The first system is the baseline of the differences, or
the release of --against. A query without a result counts as 0, and so does a tool that the release
does not have.

examples:
  pegboard eval golden.jsonl --board ./board
  pegboard eval golden.jsonl --board ./board --strategy search --strategy clauses --by kind
  pegboard eval golden.jsonl --board ./board --release 83b384 --against live --measure Recall@5
  pegboard eval golden.jsonl --board ./board --tools 100,500,all --noise random:30,near:10
  pegboard eval golden.jsonl --board ./board --agents --measure Recall@5 --measure nDCG@5
  pegboard eval golden.jsonl --board ./board --strategy dependencies --closure --dependency-errors
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval",
        _eval,
        EPILOG,
        help="measure what a release finds for golden queries",
        description="Measure what a release finds for golden queries, by any strategies in any of "
        f"its indexes, with 95 % intervals. Measures by default: {', '.join(SHOWN)}.",
    )
    add_options(parser, "golden", "--board", "--channel", "--release")
    add_options(parser, "--strategy", "--index", "--measure", action="append")
    add_options(
        parser,
        *("--limit", "--llm", "--llm-api-base", "--llm-options"),
        *("--replies", "--missing-replies", "--budget-usd", "--max-fallbacks", "--quiet"),
    )
    add_options(parser, "--hosted-encoder")
    parser.add_argument(
        "--against",
        metavar="RELEASE",
        help="compare with this release or channel, by its own strategy and index",
    )
    parser.add_argument(
        "--closure",
        action="store_true",
        help="queries also need everything that their tools declare to depend on",
    )
    parser.add_argument(
        "--dependency-errors",
        action="store_true",
        help="for strategies that follow dependencies: what these add, and the queries that lack a "
        "tool by cause (equation 1 and the errors of Graph RAG-Tool Fusion)",
    )
    parser.add_argument(
        "--tokens",
        action="store_true",
        help="also estimate the prompt tokens of the first k tools, as JSON and as TOON",
    )
    parser.add_argument(
        "--agents",
        action="store_true",
        help="search for agents: those that queries name, or else the owners of their tools; "
        "--strategy is then a way of searching, such as both-hybrid (default), tools-vector or "
        "both-hybrid-decomposed",
    )
    parser.add_argument(
        "--by",
        choices=("kind", "catalog"),
        action="append",
        help="also measure each kind of query, or each catalog",
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=0,
        metavar="N",
        help="show the N queries with the worst results",
    )
    add_pool_options(parser)
    add_json_option(
        parser,
        "release, rows, differences, overhead, groups, worst, unknown; with --dependency-errors "
        "also dependencies, with --tokens tokens",
    )


def add_pool_options(parser: argparse.ArgumentParser) -> None:
    """Add --tools and --noise, which are read by `pools_of`."""
    add = parser.add_argument
    add(
        "--tools",
        metavar="N,...",
        help="measure among N random tools that include all needed ones, for each N: 100,500,all",
    )
    add(
        "--noise",
        metavar="KIND:N,...",
        help="measure each query among its needed tools and N random ones (random:30), or the N "
        "nearest to each of them (near:10)",
    )


def pools_of(options: argparse.Namespace) -> "list[Pool]":
    """Return the pools of --tools and --noise, in this order."""
    from pegboard.evaluation.pools import parse_noise, parse_sizes

    sizes = parse_sizes(options.tools) if options.tools else ()
    return [*sizes, *(parse_noise(options.noise) if options.noise else ())]


def _eval(options: argparse.Namespace) -> int:
    from pegboard.evaluation.answer_tokens import answer_tokens_lines
    from pegboard.evaluation.comparison import comparison, evaluate
    from pegboard.evaluation.dependency_errors import account_lines
    from pegboard.evaluation.measures import measures_of

    measures = measures_of(options.measure or SHOWN)
    pools = pools_of(options)
    _check_options(options)
    with closing(open_searcher(options)) as searcher:
        queries = _queries(options, searcher)
        systems = _systems_in_pools(options, searcher, queries, pools)
        advance = progress_lines("asked", len(systems) * len(queries), quiet=options.quiet)
        evaluations = [evaluate(system, queries, measures, advance=advance) for system in systems]
        accounts = _accounts(systems, evaluations) if options.dependency_errors else None
        tokens = _tokens(evaluations, searcher) if options.tokens else None
    overheads = [evaluation.overhead for evaluation in evaluations]
    if options.json:
        values = comparison(evaluations, options.by or (), options.worst)
        if accounts is not None:
            values["dependencies"] = [account.to_dict() for account in accounts]
        if tokens is not None:
            values["tokens"] = tokens
        print_json(values)
    else:
        _print_evaluations(evaluations, options.by or (), options.worst)
        for account in accounts or ():
            print("\n" + "\n".join(account_lines(account.to_dict())))
        if tokens is not None:
            print("\n" + "\n".join(answer_tokens_lines(tokens)))
    for evaluation in {evaluation.release: evaluation for evaluation in evaluations}.values():
        _warn_of_missing_tools(evaluation, "agent" if options.agents else "tool")
    return fallbacks_exit_code("pegboard eval", overheads, options.max_fallbacks)


def _check_options(options: argparse.Namespace) -> None:
    """Raise QueryError for options that do not go together."""
    pools = options.tools or options.noise
    if options.against and pools:
        raise QueryError(
            "--against compares whole releases. Leave out --tools and --noise, or measure the "
            "releases one by one."
        )
    if options.agents and (options.against or pools):
        raise QueryError(
            "--agents searches the agents of one whole release. Leave out --against, --tools and "
            "--noise."
        )
    if options.dependency_errors and (options.agents or options.against or pools):
        raise QueryError(
            "--dependency-errors follows the dependencies of one whole release. Leave out "
            "--agents, --against, --tools and --noise."
        )
    if options.tokens and (options.agents or options.against):
        raise QueryError(
            "--tokens counts those of the tools of one release. Leave out --agents and --against."
        )
    if options.closure and options.agents:
        raise QueryError("--closure adds tools, and --agents needs agents. Leave one of them out.")


def _tokens(evaluations: "Sequence[Evaluation]", searcher: "Searcher") -> dict[str, Any]:
    from pegboard.evaluation.answer_tokens import answer_tokens, cut_offs_of

    return answer_tokens(evaluations, searcher, cut_offs_of(evaluations[0]))


def _systems_in_pools(
    options: argparse.Namespace,
    searcher: "Searcher",
    queries: "Sequence[GoldenQuery]",
    pools: "Sequence[Pool]",
) -> "list[ReleaseSystem]":
    """Return each system of the options in each pool, behind the baseline of --against."""
    from pegboard.evaluation.dependency_errors import follows_dependencies
    from pegboard.evaluation.pools import pool_searchers

    chosen = _systems(options, searcher)
    if options.dependency_errors and not any(map(follows_dependencies, chosen)):
        raise QueryError(
            "--dependency-errors needs a strategy that follows dependencies. Expected one with the "
            "part `dependencies`, such as --strategy dependencies."
        )
    searchers = pool_searchers(searcher, queries, pools)
    systems = [
        replace(system, searcher=pool_searcher, explain=options.dependency_errors)
        for system in chosen
        for pool_searcher in searchers
    ]
    return [_baseline(options, searcher), *systems] if options.against else systems


def _accounts(
    systems: "Sequence[ReleaseSystem]", evaluations: "Sequence[Evaluation]"
) -> "list[DependencyAccount]":
    """Return the account of each system that follows dependencies, for the largest cut-off."""
    from pegboard.evaluation.comparison import MIN_DEPTH
    from pegboard.evaluation.dependency_errors import dependency_account, follows_dependencies

    final = max(measure.k or MIN_DEPTH for measure in evaluations[0].values)
    return [
        dependency_account(system, evaluation.results, final)
        for system, evaluation in zip(systems, evaluations, strict=True)
        if follows_dependencies(system)
    ]


def _queries(options: argparse.Namespace, searcher: "Searcher") -> "list[GoldenQuery]":
    """Return the queries to measure; says how many are left out since they name no tool."""
    from pegboard.evaluation.dependency_errors import closed_queries
    from pegboard.evaluation.golden import read_queries

    queries = read_queries(options.golden, agents=True)
    if not options.agents:
        with_tools = [query for query in queries if query.tools]
        if left_out := len(queries) - len(with_tools):
            count = count_text(left_out, "query names", "queries name")
            print(
                f"pegboard eval: {count} agents alone and are left out; --agents measures them",
                file=sys.stderr,
            )
        queries = with_tools
    queries = queries[: options.limit]
    return closed_queries(queries, searcher) if options.closure else queries


def open_searcher(options: argparse.Namespace) -> "Searcher":
    """Open the release that the options name. Raises QueryError for options without effect."""
    from pegboard.evaluation.searcher import Searcher

    return Searcher.open(options.board, options.channel, options.release, **llm_arguments(options))


def _systems(options: argparse.Namespace, searcher: "Searcher") -> "list[ReleaseSystem]":
    """Return every strategy of the options in every index of the options.

    Raises ConfigurationError for a strategy that asks an LLM if none was given.
    """
    from pegboard.evaluation.overhead import check_llm
    from pegboard.evaluation.systems import ReleaseSystem
    from pegboard.retrieval.strategies import load_strategy

    if options.agents:
        return _agent_systems(options, searcher)
    strategies = [load_strategy(name) for name in options.strategy or [None]]
    systems = [
        ReleaseSystem.resolve(searcher, strategy, index)
        for strategy, index in product(strategies, options.index or [None])
    ]
    if searcher.caller is None:
        strategies = {system.strategy_name: system.strategy for system in systems}
        check_llm(strategies, options.max_fallbacks)
    return systems


def _agent_systems(options: argparse.Namespace, searcher: "Searcher") -> "list[ReleaseSystem]":
    """Return every way of searching for agents in every index of the options; raises as above."""
    from pegboard.evaluation.agent_search import (
        DEFAULT_AGENT_STRATEGY,
        AgentSystem,
        agent_strategy,
    )
    from pegboard.evaluation.overhead import check_llm_given

    strategies = [agent_strategy(name) for name in options.strategy or [DEFAULT_AGENT_STRATEGY]]
    if searcher.caller is None:
        asking = [strategy.name for strategy in strategies if strategy.asks_llm]
        check_llm_given(asking, options.max_fallbacks)
    systems: list[ReleaseSystem] = [
        AgentSystem(searcher, strategy, index)
        for strategy, index in product(strategies, options.index or [None])
    ]
    for system in systems:
        _ = system.index_name
    return systems


def _baseline(options: argparse.Namespace, searcher: "Searcher") -> "ReleaseSystem":
    """Return the release of --against, a channel or an id, with its own strategy and index."""
    from pegboard.evaluation.searcher import Searcher
    from pegboard.evaluation.systems import ReleaseSystem
    from pegboard.store.releases import ReleaseStore

    release = ReleaseStore(options.board).named(options.against)
    baseline = Searcher.open(options.board, release=release.id)
    return ReleaseSystem.resolve(Searcher(baseline.loaded, searcher.vectors, searcher.caller))


def _print_evaluations(evaluations: "Sequence[Evaluation]", by: Sequence[Any], worst: int) -> None:
    from pegboard.evaluation.comparison import differences, system_name
    from pegboard.evaluation.overhead import OVERHEAD, OVERHEAD_TITLE, overhead_lines

    measures = list(evaluations[0].values)
    print(
        f"{count_text(len(evaluations[0].results), 'query', 'queries')}, release "
        f"{evaluations[-1].release}; the mean and its 95 % interval"
    )
    pool_columns = ["pool", "tools"] if evaluations[0].pool else []
    rows = [
        [
            system_name(evaluation, evaluations),
            *_pool_cells(evaluation.pool_labels),
            *(str(evaluation.interval(measure)) for measure in measures),
        ]
        for evaluation in evaluations
    ]
    print_table(["", *pool_columns, *map(str, measures)], rows)
    _print_differences(differences(evaluations))
    for name in by:
        print(f"\nby {name}")
        rows = [
            [
                row[name],
                evaluation.system,
                *_pool_cells(evaluation.pool_labels),
                row["measure"],
                interval_text(row),
                str(row["n"]),
            ]
            for evaluation in evaluations
            for row in evaluation.group_rows(name)
        ]
        print_table([name, "", *pool_columns, "measure", "mean", "queries"], rows)
    if worst:
        for evaluation in evaluations:
            pool = f", pool {evaluation.pool}" if evaluation.pool else ""
            print(f"\nworst of {system_name(evaluation, evaluations)}{pool}")
            _print_worst(evaluation.worst(worst))
    if lines := overhead_lines(
        [evaluation.pool_labels | evaluation.overhead.to_dict() for evaluation in evaluations]
    ):
        print(f"\n{OVERHEAD_TITLE}")
        print_table(OVERHEAD, lines)


def _pool_cells(labels: Mapping[str, Any]) -> list[str]:
    """The columns of a pool: its name and its number of tools; none without pools."""
    from pegboard.evaluation.pools import size_text

    return [labels["pool"], size_text(labels["pool_size"])] if labels else []


def _print_differences(rows: Sequence[Mapping[str, Any]]) -> None:
    for against in dict.fromkeys(row["against"] for row in rows):
        print(
            f"\nagainst {against}: the difference with its interval, and p (paired "
            f"randomisation test, Holm)"
        )
        lines = [
            [
                f"{row['strategy']} in {row['index']}",
                *([row["pool"]] if "pool" in row else []),
                row["measure"],
                difference_text(row),
                f"{row['p_holm']:.4f}",
            ]
            for row in rows
            if row["against"] == against
        ]
        pool_column = ["pool"] if "pool" in rows[0] else []
        print_table(["", *pool_column, "measure", "difference", "p"], lines)


def _print_worst(queries: Sequence[dict[str, Any]]) -> None:
    for query in queries:
        ranks = ", ".join(
            f"{name} {f'at {rank}' if rank else 'not found'}"
            for name, rank in query["ranks"].items()
        )
        retrieved = ", ".join(query["found"]) or "nothing"
        print(plain(f"  {query['query']}"))
        print(plain(f"      needs {ranks}; found {retrieved}"))


def _warn_of_missing_tools(evaluation: "Evaluation", what: str) -> None:
    """Name the tools, or agents, that queries need and the release lacks."""
    if evaluation.unknown:
        names = list_text(map(plain, evaluation.unknown), MISSING_SHOWN)
        print(
            f"pegboard eval: release {evaluation.release} lacks "
            f"{count_text(len(evaluation.unknown), what)} that queries need, which count as not "
            f"found: {names}. Check the file: pegboard golden check",
            file=sys.stderr,
        )


def fallbacks_exit_code(name: str, overheads: "Sequence[Overhead]", max_fallbacks: float) -> int:
    """Return the exit code after the results; prints why if fallbacks answered too many queries.

    Args:
        name: the command, for the message.
    """
    from pegboard.evaluation.overhead import check_fallbacks

    try:
        check_fallbacks(overheads, max_fallbacks)
    except CompletionError as error:
        print_error(name, error)
        return error.exit_code
    return 0
