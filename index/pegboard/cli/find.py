"""`pegboard find` and `pegboard agents`: ask a board by a strategy, and for the agents that a
request needs.
"""

import argparse
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_board_option, plain, print_json
from pegboard.cli.search import (
    add_filter_options,
    add_output_options,
    print_hits,
    print_tools,
    where_of,
)
from pegboard.errors import QueryError

if TYPE_CHECKING:
    from pegboard.retrieval.results import FindResult

FIND = """\
examples:
  pegboard find "book a table for two and invite Ana" --board ./board
  pegboard find "book a table for two and invite Ana" --board ./board --strategy dependencies --explain
  pegboard find "the same for Sunday" --history chat.json --llm openai/gpt-4o-mini --strategy rag-tool-fusion --json

A strategy says which parts answer: `pegboard find --strategies` lists those that come with the library, and --strategy takes a file with
a strategy of your own as JSON. Parts that want an LLM do without one where there is none or where it fails; --explain says so."""
AGENTS = """\
examples:
  pegboard agents "plan a trip: flights, a hotel and the weather" --board ./board -k 3
  pegboard agents "open an issue" --board ./board --json

Agents are found by what they say of themselves and by what their tools do. The tools of one: pegboard find ... --agent NAME"""


def register_find(subparsers: Subparsers) -> None:
    """Add the command `find`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "find",
        help="find the tools for a request of several steps, by the release's own strategy",
        description="Find the tools for a request by a strategy: its clauses searched one by one, "
        "dependencies, an LLM where there is one.",
        epilog=FIND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "request", nargs="*", help="the request, in the words of the person who has it; or several"
    )
    _add_common(parser, 5, "tools")
    parser.add_argument(
        "--strategy", help="a strategy's name, or a JSON file with one (default: the release's own)"
    )
    parser.add_argument(
        "--strategies",
        nargs=0,
        action=_Strategies,
        help="list the strategies that come with the library, and end",
    )
    parser.add_argument(
        "--history",
        metavar="FILE",
        help='the conversation before, as JSON: [{"role": ..., "content": ...}]',
    )
    parser.add_argument(
        "--llm",
        metavar="MODEL",
        help="a LiteLLM model that parts may ask, such as openai/gpt-4o-mini",
    )
    parser.add_argument(
        "--llm-api-base", metavar="URL", help="where that model is served, if not by its provider"
    )
    parser.add_argument(
        "--llm-timeout", type=float, metavar="SECONDS", help="for each question to it (default: 10)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="print what each part did, and what it cost"
    )
    add_output_options(
        parser, "release, probability, steps, hits, trace; a list of them for several requests"
    )
    parser.set_defaults(run=_find)


def register_agents(subparsers: Subparsers) -> None:
    """Add the command `agents`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "agents",
        help="find the agents (MCP servers, APIs) for a request",
        description="Find the agents for a request: by their descriptions and by their tools, in "
        "one searched space.",
        epilog=AGENTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("request", help="the request, in the words of the person who has it")
    _add_common(parser, 3, "agents")
    parser.add_argument(
        "--mode", choices=("hybrid", "vector", "text"), default="hybrid", help="default: hybrid"
    )
    parser.add_argument(
        "--decompose", action="store_true", help="search the clauses of the request, too"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: release, agents"
    )
    parser.set_defaults(run=_agents)


def _add_common(parser: argparse.ArgumentParser, k: int, what: str) -> None:
    add_board_option(parser)
    parser.add_argument("-k", type=int, default=k, help=f"{what} to return (default: {k})")
    parser.add_argument(
        "--index",
        help="an index configuration (default: the strategy's, or the release's own default)",
    )
    parser.add_argument("--channel", default="live", help="the channel to ask (default: live)")
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or its beginning"
    )
    add_filter_options(parser)


class _Strategies(argparse.Action):
    """Lists the strategies and ends, whatever else is missing on the command line."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from pegboard.retrieval.strategies import STRATEGIES

        for name, (what, _parts) in STRATEGIES.items():
            print(f"{name}\n{textwrap.indent(textwrap.fill(what, 100), '    ')}")
        parser.exit()


def _find(options: argparse.Namespace) -> int:
    import pegboard

    if not "".join(options.request).strip():
        raise QueryError(
            "There is no request. Expected one or more, each in quotes; `pegboard find --help` "
            "shows examples."
        )
    told = {"api_base": options.llm_api_base, "timeout": options.llm_timeout}
    if options.llm is None and any(value is not None for value in told.values()):
        raise QueryError(
            "--llm-api-base and --llm-timeout are about a model. Expected --llm MODEL beside them."
        )
    with pegboard.open(
        options.board,
        options.channel,
        options.release,
        llm=options.llm,
        llm_options={name: value for name, value in told.items() if value is not None},
    ) as board:
        several = board.find_many(
            options.request,
            options.k,
            strategy=strategy_option(options.strategy),
            index=options.index,
            where=where_of(options),
            history=_json(options.history, list) if options.history else (),
            explain=options.explain,
        )
        if options.shape:
            print_tools(
                list({hit.tool.id: hit for found in several for hit in found}.values()),
                options.shape,
                options.descriptions,
            )
        elif options.json:
            print_json(
                several[0].to_dict()
                if len(several) == 1
                else [found.to_dict() for found in several]
            )
        else:
            for request, found in zip(options.request, several, strict=True):
                if len(several) > 1:
                    print(f"\n{request}")
                print_hits(found, board, where_of(options))
                if options.explain:
                    _print_trace(found)
    return 0


def _agents(options: argparse.Namespace) -> int:
    import pegboard

    board = pegboard.open(options.board, options.channel, options.release)
    found = board.search_agents(
        options.request,
        options.k,
        mode=options.mode,
        decompose=options.decompose,
        index=options.index,
        where=where_of(options),
    )
    if options.json:
        print_json({"release": board.release.id, "agents": [hit.to_dict() for hit in found]})
        return 0
    if not found:
        print("No agent was found.")
    for rank, hit in enumerate(found, start=1):
        brought = (
            f"by its tool {plain(hit.why['tool'])}" if hit.why.get("tool") else "by its description"
        )
        summary = plain(textwrap.shorten(hit.agent.description, width=100, placeholder=" ..."))
        print(
            f"{rank:>3}. {plain(hit.agent.name)}  ({hit.agent.kind})  {hit.score:.4f}  {brought}"
            + (f"\n     {summary}" if summary else "")
        )
    return 0


def _print_trace(found: "FindResult") -> None:
    trace = found.trace
    cost = f", {trace.cost_usd:.5f} USD" if trace.cost_usd else ""
    asked = (
        f", {trace.llm_calls} LLM calls, {trace.tokens} tokens{cost}"
        if trace.llm_calls
        else ", no LLM call"
    )
    print(f"\nStrategy {trace.strategy}: {trace.milliseconds:.1f} ms{asked}")
    for part in trace.parts:
        step = f" of step {part.step}" if part.step is not None else ""
        print(f"  {part.stage:<9} {part.part}{step}  {part.milliseconds:.1f} ms")
        for query in part.queries:
            print(f"            {plain(textwrap.shorten(query, 110, placeholder=' ...'))}")
        for said in (part.note, part.fallback_reason and f"without an LLM: {part.fallback_reason}"):
            if said:
                print(f"            {plain(said)}")
    for hit in found:
        places = ", ".join(f"{part} {rank}" for part, rank in trace.ranks_of(hit.tool.id))
        print(f"  {plain(hit.tool.name)}: {places}")


def strategy_option(name: str | None) -> "str | dict[str, Any] | None":
    """The strategy that an option names: itself, or what its JSON file holds."""
    if name is None or not name.endswith(".json"):
        return name
    return _json(name, dict)


def _json(path: str, kind: type) -> Any:
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise QueryError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(value, kind):
        raise QueryError(
            f"{path} holds {type(value).__name__}; expected a JSON "
            f"{'object' if kind is dict else 'list'}."
        )
    return value
