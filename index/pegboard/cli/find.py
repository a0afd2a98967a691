"""`pegboard find` and `pegboard strategies`: answer requests by a strategy."""

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_json_option, plain, print_json
from pegboard.cli.search import (
    add_output_options,
    add_request_options,
    print_hits,
    print_tools,
    where_of,
)
from pegboard.errors import QueryError

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.retrieval.found import FindResult

FIND = """\
examples:
  pegboard find book a table for two and invite Ana
  pegboard find "what's the weather?" --board ./board --strategy dependencies --explain
  pegboard find --requests requests.txt --json
  pegboard find "the same for Sunday" --board ./board --history chat.json \\
      --llm openai/gpt-4o-mini --strategy rag-tool-fusion --json

A strategy decides how a request is answered: `pegboard strategies` lists the built-in ones, and
--strategy also takes a JSON file with your own. Parts that use an LLM fall back on rules where no
LLM is given or it fails; --explain shows where and why."""
STRATEGIES = """\
examples:
  pegboard strategies
  pegboard strategies --json > mine.json      a strategy of your own starts from a built-in one

Try one: pegboard find "..." --strategy NAME. Compare several on golden queries: pegboard eval."""


def register_find(subparsers: Subparsers) -> None:
    """Add the command `find`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "find",
        help="find the tools for requests of one or more steps, by a strategy",
        description="Find the tools for a request by a strategy: it may split the request into "
        "clauses, add the tools that others depend on, and ask an LLM.",
        epilog=FIND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("request", nargs="*", metavar="WORD", help="the request in plain words")
    parser.add_argument(
        "--requests",
        metavar="FILE",
        help="instead: a file with one request in each line; - is stdin",
    )
    add_request_options(parser, 5, "tools")
    parser.add_argument(
        "--strategy", help="a strategy's name, or a JSON file with one (default: the release's own)"
    )
    parser.add_argument(
        "--history",
        metavar="FILE",
        help='the conversation so far, as JSON: [{"role": ..., "content": ...}]',
    )
    parser.add_argument(
        "--llm",
        metavar="MODEL",
        help="a LiteLLM model for the strategy, such as openai/gpt-4o-mini",
    )
    parser.add_argument(
        "--llm-api-base", metavar="URL", help="the model's server, if not its provider's"
    )
    parser.add_argument(
        "--llm-timeout", type=float, metavar="SECONDS", help="per question to it (default: 10)"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print what each part did and cost, and what brought each hit up",
    )
    add_output_options(
        parser,
        "release, probability, nothing_fits, steps, hits, trace; with --requests a list of them",
    )
    parser.set_defaults(run=_find)


def register_strategies(subparsers: Subparsers) -> None:
    """Add the command `strategies`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "strategies",
        help="list the built-in strategies of `find`",
        description="List the built-in strategies. Needs no board.",
        epilog=STRATEGIES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_json_option(parser, "for each name its description and its definition")
    parser.set_defaults(run=_strategies)


def strategy_option(name: str | None) -> "str | dict[str, Any] | None":
    """Return the strategy that an option names: its name, or what its JSON file holds."""
    if name is None or not name.endswith(".json"):
        return name
    return _read_json(name, dict)


def _find(options: argparse.Namespace) -> int:
    import pegboard

    requests = _requests(options)
    llm_options = {"api_base": options.llm_api_base, "timeout": options.llm_timeout}
    llm_options = {name: value for name, value in llm_options.items() if value is not None}
    if options.llm is None and llm_options:
        raise QueryError("--llm-api-base and --llm-timeout need a model. Expected --llm MODEL.")
    with pegboard.open(
        options.board, options.channel, options.release, llm=options.llm, llm_options=llm_options
    ) as board:
        results = board.find_many(
            requests,
            options.k,
            strategy=strategy_option(options.strategy),
            index=options.index,
            where=where_of(options),
            history=_read_json(options.history, list) if options.history else (),
            explain=options.explain,
        )
        _print_results(requests, results, board, options)
    return 0


def _requests(options: argparse.Namespace) -> list[str]:
    """The words of the command line as one request, or the lines of a file."""
    words = " ".join(options.request).strip()
    if options.requests is None and words:
        return [words]
    if options.requests is None or words:
        raise QueryError(
            "The request is missing, or given twice. Expected words, or --requests FILE; `pegboard "
            "find --help` shows examples."
        )
    lines = (line.strip() for line in _read_text(options.requests).splitlines())
    requests = [line for line in lines if line]
    if not requests:
        raise QueryError(f"{options.requests} holds no request; expected one in each line.")
    return requests


def _print_results(
    requests: Sequence[str],
    results: "Sequence[FindResult]",
    board: "Board",
    options: argparse.Namespace,
) -> None:
    if options.shape:
        hits = {hit.tool.id: hit for result in results for hit in result}
        print_tools(list(hits.values()), options.shape, options.descriptions)
    elif options.json:
        values = [result.to_dict() for result in results]
        print_json(values if options.requests else values[0])
    else:
        for request, result in zip(requests, results, strict=True):
            if len(results) > 1:
                print(f"\n{plain(request)}")
            if result.nothing_fits and result:
                print("Nothing fits this request. The nearest tools:")
            print_hits(result, board, where_of(options))
            if options.explain:
                _print_trace(result)


def _strategies(options: argparse.Namespace) -> int:
    from pegboard.retrieval.strategies import STRATEGIES, named_strategy

    if options.json:
        print_json(
            {
                name: {"description": description, "strategy": named_strategy(name).to_dict()}
                for name, (description, _) in STRATEGIES.items()
            }
        )
        return 0
    for name, (description, _) in STRATEGIES.items():
        print(f"{name}\n{textwrap.indent(textwrap.fill(description, 95), '    ')}")
    return 0


def _print_trace(result: "FindResult") -> None:
    trace = result.trace
    usage = "no LLM call"
    if trace.llm_calls:
        cost = f", {trace.cost_usd:.5f} USD" if trace.cost_usd else ""
        usage = f"{trace.llm_calls} LLM calls, {trace.tokens} tokens{cost}"
    print(f"\nStrategy {trace.strategy}: {trace.milliseconds:.1f} ms, {usage}")
    for part in trace.parts:
        step = f" of step {part.step}" if part.step is not None else ""
        print(f"  {part.stage:<9} {part.part}{step}  {part.milliseconds:.1f} ms")
        for query in part.queries:
            print(f"            {plain(textwrap.shorten(query, 85, placeholder=' ...'))}")
        fallback = part.fallback_reason and f"without an LLM: {part.fallback_reason}"
        for remark in (part.note, fallback):
            if remark:
                print(f"            {plain(remark)}")
    for hit in result:
        ranks = ", ".join(f"{part} {rank}" for part, rank in trace.ranks_of(hit.tool.id))
        print(f"  {plain(hit.tool.name)}: {ranks}")
        if adds := hit.why.get("ranker", {}).get("adds"):
            print(f"      {_sum_text(adds)}")


def _sum_text(adds: Mapping[str, float]) -> str:
    """What adds to a score, the most first, without what is next to nothing."""
    parts = sorted(adds.items(), key=lambda pair: -abs(pair[1]))
    return ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= 0.005)


def _read_text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise QueryError(f"{path} cannot be read: {error}.") from error


def _read_json(path: str, kind: type) -> Any:
    try:
        value = json.loads(_read_text(path))
    except ValueError as error:
        raise QueryError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(value, kind):
        expected = "object" if kind is dict else "list"
        raise QueryError(f"{path} holds {type(value).__name__}; expected a JSON {expected}.")
    return value
