"""`pegboard find` and `strategies`: tools for requests."""

import argparse
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import (
    FILTERS,
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    open_board,
    print_json,
)
from pegboard.cli.replay import print_replay
from pegboard.errors import QueryError
from pegboard.formatting import list_text, llm_calls_text, plain

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.hits import Hit
    from pegboard.retrieval.found import AgentHit, EntityResult, FindResult

FIND = """\
examples:
  pegboard find book a table for two and invite Ana
  pegboard find "what's the weather?" --board ./board --strategy dependencies --explain
  pegboard find --replay requests.jsonl --release 83b384d1c0aa
  pegboard find "plan a trip to Oslo" --llm openai/gpt-4o-mini --strategy rag-tool-fusion --json
  pegboard find "plan a trip to Oslo" --agents --decompose

A strategy decides how a request is answered: `pegboard strategies` lists the built-in ones, and
--strategy also takes a JSON file with your own. Parts that use an LLM fall back on rules where no
LLM is given or it fails; --explain shows where and why."""
STRATEGIES = """\
examples:
  pegboard strategies
  pegboard strategies --json > mine.json      a strategy of your own starts from a built-in one

Try one: pegboard find "..." --strategy NAME. Compare several on golden queries: pegboard eval."""


def register(subparsers: Subparsers) -> None:
    """Add the commands."""
    parser = add_command(
        subparsers,
        "find",
        _find,
        FIND,
        help="find the tools for requests of one or more steps, by a strategy",
        description="Find the tools for a request by a strategy: it may split the request into "
        "clauses, add the tools that others depend on, and ask an LLM.",
    )
    parser.add_argument("request", nargs="*", metavar="WORD", help="the request in plain words")
    parser.add_argument(
        "--replay",
        metavar="LOG",
        help="instead: the requests of a gateway's log; prints what they find now and did not find "
        "then, and which tools none of them finds",
    )
    parser.add_argument("-k", type=int, default=5, help="tools to return (default: 5)")
    add_options(parser, "--board", "--channel", "--release", "--index", "--hosted-encoder")
    add_options(parser, *FILTERS, action="append")
    add_options(parser, "--strategy", "--llm", "--llm-api-base", "--llm-options")
    add_options(parser, "--replies", "--missing-replies")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print what each part did and cost, and what brought each hit up",
    )
    parser.add_argument(
        "--called",
        action="append",
        default=[],
        metavar="ID",
        help="a tool that was just called for the request: what uses its result, or usually "
        "follows it, moves up; may be repeated, the last one last",
    )
    parser.add_argument(
        "--agents",
        action="store_true",
        help="rank tools and agents together: an agent that is nearer than its tools stands in "
        "their place (Tool-to-Agent Retrieval, without a strategy)",
    )
    parser.add_argument(
        "--decompose",
        action="store_true",
        help="with --agents: search the steps of the request, too, which the LLM writes, or its "
        "clauses without one",
    )
    add_json_option(
        parser,
        "release, probability, nothing_fits, judged_by, steps, hits, trace; with --agents release, "
        "steps, hits with their type, trace; with --replay counts, tools that took others' places, "
        "and each request",
    )
    parser = add_command(
        subparsers,
        "strategies",
        _strategies,
        STRATEGIES,
        help="list the built-in strategies of `find`",
        description="List the built-in strategies. Needs no board.",
    )
    add_json_option(parser, "for each name its description, its LLM calls and its definition")


def where_of(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the filter that the options give."""
    filters = {
        "agent": options.agent,
        "catalog": options.catalog,
        "kind": options.kind,
        "tags": options.tag,
    }
    return {name: values for name, values in filters.items() if values}


def llm_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return `llm` and `llm_options` of `pegboard.open`. Raises QueryError for options of an LLM
    without --llm.
    """
    given = {
        "api_base": options.llm_api_base,
        "options": options.llm_options,
        "replies": options.replies,
        "missing_replies": options.missing_replies,
        # That of `eval-agent`, which has --model, is for the agent.
        "budget_usd": None if hasattr(options, "model") else getattr(options, "budget_usd", None),
    }
    llm_options = {name: value for name, value in given.items() if value is not None}
    if not llm_options:
        return {"llm": options.llm}
    if options.llm is None and hasattr(options, "model"):  # the replies are of another model
        return {"llm": None}
    if options.llm is None:
        names = {"api_base": "--llm-api-base", "options": "--llm-options"}
        flags = ", ".join(names.get(name, f"--{name.replace('_', '-')}") for name in llm_options)
        raise QueryError(f"{flags} needs a model. Expected --llm MODEL.")
    return {"llm": options.llm, "llm_options": llm_options}


def _find(options: argparse.Namespace) -> int:
    from pegboard.retrieval.strategies import load_strategy

    if options.replay is not None and not options.agents:
        return print_replay(options, load_strategy(options.strategy), where_of(options))
    request = " ".join(options.request).strip()
    if not request:
        raise QueryError("The request is missing; `pegboard find --help` shows examples.")
    _check_agent_options(options)
    with open_board(options, **llm_arguments(options)) as board:
        if options.agents:
            _print_entities(_entities(board, request, options), board, options)
            return 0
        result = board.find(
            request,
            options.k,
            strategy=load_strategy(options.strategy),
            index=options.index,
            where=where_of(options),
            called=options.called,
            explain=options.explain,
        )
        _print_result(result, board, options)
        if not options.json:
            _warn_of_fallbacks(result)
    return 0


def _warn_of_fallbacks(result: "FindResult") -> None:
    """Say on stderr which parts of the strategy worked without their LLM: the results are then not
    those of the strategy.
    """
    for part, reason in dict.fromkeys(result.trace.fallbacks):
        print(
            plain(f"pegboard find: warning: '{part}' worked without an LLM: {reason}"),
            file=sys.stderr,
        )


def _check_agent_options(options: argparse.Namespace) -> None:
    """Raise QueryError for options that have no effect beside the others."""
    if options.decompose and not options.agents:
        raise QueryError(
            "--decompose needs --agents. A strategy decomposes by its own parts: --strategy."
        )
    if not options.agents:
        return
    given = {
        "--strategy": options.strategy,
        "--called": options.called,
        "--explain": options.explain,
        "--replay": options.replay,
        "--llm without --decompose": options.llm and not options.decompose,
    }
    if names := [name for name, value in given.items() if value]:
        raise QueryError(f"{', '.join(names)}: has no effect on --agents. Leave it out.")


def _entities(board: "Board", request: str, options: argparse.Namespace) -> "EntityResult":
    return board.search_entities(
        request,
        options.k,
        decompose=options.decompose,
        index=options.index,
        where=where_of(options),
    )


def _print_entities(result: "EntityResult", board: "Board", options: argparse.Namespace) -> None:
    if options.json:
        print_json(result.to_dict())
        return
    if not result:
        _print_hits((), board, where_of(options))
    for rank, hit in enumerate(result, start=1):
        _print_entity(rank, hit)
    for part in result.trace.parts:
        if part.fallback_reason:
            print(plain(f"Steps without an LLM: {part.fallback_reason}"))


def _print_entity(rank: int, hit: "Hit | AgentHit") -> None:
    from pegboard.retrieval.found import AgentHit

    if isinstance(hit, AgentHit):
        name = f"{hit.agent.name}  (agent)"
        description = hit.agent.description
        step = hit.why.get("step")
    else:
        name = f"{hit.tool.name}  ({hit.agent.name})"
        description = hit.tool.description
        step = hit.why["entities"].get("step")
    print(f"{rank:>3}. {plain(name)}  {hit.score:.4f}")
    print(f"     {plain(textwrap.shorten(description, width=100, placeholder=' ...'))}")
    if step:
        print(f"     for: {plain(textwrap.shorten(step, width=95, placeholder=' ...'))}")


def _print_result(result: "FindResult", board: "Board", options: argparse.Namespace) -> None:
    if options.json:
        print_json(result.to_dict())
    else:
        if result.nothing_fits and result:
            judge = ", as an LLM judged" if result.judged_by == "llm" else ""
            print(f"Nothing fits this request{judge}. The nearest tools:")
        _print_hits(result, board, where_of(options))
        if not result:
            _print_dropped(result)
        if options.explain:
            _print_trace(result)


def _strategies(options: argparse.Namespace) -> int:
    from pegboard.retrieval.strategies import STRATEGIES, named_strategy

    if options.json:
        print_json(
            {
                name: {
                    "description": description,
                    "llm_calls": named_strategy(name).llm_calls(),
                    "strategy": named_strategy(name).to_dict(),
                }
                for name, (description, _) in STRATEGIES.items()
            }
        )
        return 0
    for name, (description, _) in STRATEGIES.items():
        calls = named_strategy(name).llm_calls()
        if calls != "0":
            description = f"{description}. {llm_calls_text(calls)}"
        print(f"{name}\n{textwrap.indent(textwrap.fill(description, 95), '    ')}")
    return 0


def _print_dropped(result: "FindResult") -> None:
    """Print which parts of the strategy left out what was found."""
    trace = result.trace
    remarks = [part for part in trace.parts if part.stage == "refine" and part.note]
    for part in remarks:
        print(f"The strategy '{plain(trace.strategy)}' ({plain(part.part)}): {plain(part.note)}.")
    if remarks:
        print("Another strategy shows the nearest tools, such as --strategy clauses.")


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


def _print_hits(hits: "Sequence[Hit]", board: "Board", where: Mapping[str, Sequence[str]]) -> None:
    """Print the hits; without any, print the catalogs and agents that a filter may name."""
    if not hits:
        print("No tool was found.")
        if where:
            agents = board.list_agents()
            names = list_text((plain(agent.name) for agent in agents), 10)
            catalogs = ", ".join(sorted({plain(agent.catalog) for agent in agents}))
            print(f"Check the filter. Catalogs: {catalogs}. Agents: {names}.")
    for rank, hit in enumerate(hits, start=1):
        summary = plain(textwrap.shorten(hit.tool.description, width=100, placeholder=" ..."))
        likely = f"  {hit.probability:.0%}" if hit.probability is not None else ""
        print(
            f"{rank:>3}. {plain(hit.tool.name)}  ({plain(hit.agent.name)})  "
            f"{hit.score:.4f}{likely}\n     {summary}"
        )
        if "dependency" in hit.why:
            print(f"     needed by {plain(str(hit.why['dependency']['of']))}")
        if hit.tool.flags:
            print(f"     Suspicious text: {plain(', '.join(hit.tool.flags))}")
