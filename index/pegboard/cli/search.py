"""`pegboard search` and `pegboard agents`, and what commands that search share."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import (
    Subparsers,
    add_board_option,
    add_channel_option,
    add_json_option,
    add_release_option,
    plain,
    print_json,
)

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.hits import Hit

SEARCH = """\
examples:
  pegboard search "convert 30 dollars to yen" --board ./board
  pegboard search "open an issue" --board ./board -k 3 --catalog github --json
  pegboard search "open an issue" --board ./board --as openai > tools.json

One search ranks single needs. For requests with several steps use `pegboard find`.
If the hits are poor, compare --mode text with --mode vector. Scores of different modes
cannot be compared."""
AGENTS = """\
examples:
  pegboard agents "plan a trip: flights, a hotel and the weather" --board ./board -k 3
  pegboard agents "open an issue" --board ./board --json

An agent is found by its own description and by its tools. To search the tools of one agent:
pegboard find ... --agent NAME"""


def register_search(subparsers: Subparsers) -> None:
    """Add the command `search`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "search",
        help="rank the tools for a request by one search",
        description="Rank the tools of a published board for a request, by one search.",
        epilog=SEARCH,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", nargs="+", metavar="WORD", help="the request in plain words")
    add_request_options(parser, 5, "tools")
    _add_mode_option(parser)
    add_output_options(parser, "release, index, mode, hits")
    parser.set_defaults(run=_search)


def register_agents(subparsers: Subparsers) -> None:
    """Add the command `agents`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "agents",
        help="rank the agents (MCP servers, APIs) for a request",
        description="Rank agents for a request: their descriptions and their tools are searched as "
        "one space.",
        epilog=AGENTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("request", nargs="+", metavar="WORD", help="the request in plain words")
    add_request_options(parser, 3, "agents")
    _add_mode_option(parser)
    parser.add_argument(
        "--decompose", action="store_true", help="search the clauses of the request, too"
    )
    add_json_option(parser, "release, steps, agents, entities (tools and agents), trace")
    parser.set_defaults(run=_search_agents)


def add_request_options(parser: argparse.ArgumentParser, k: int, what: str) -> None:
    """Add --board, -k, --index, --channel, --release and the filters."""
    add_board_option(parser)
    parser.add_argument("-k", type=int, default=k, help=f"{what} to return (default: {k})")
    parser.add_argument("--index", help="the index to search (default: the release's own)")
    add_channel_option(parser)
    add_release_option(parser)
    add_filter_options(parser)


def _add_mode_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        choices=("hybrid", "vector", "text"),
        default="hybrid",
        help="rank by meaning (vector), by words (text) or both (default: hybrid)",
    )


def add_filter_options(parser: argparse.ArgumentParser) -> None:
    """Add --agent, --catalog, --kind and --tag, which `where_of` reads."""
    for name, what in (
        ("agent", "the agent with this id or name"),
        ("catalog", "this catalog"),
        ("kind", "agents of this kind"),
        ("tag", "tools with this tag"),
    ):
        parser.add_argument(
            f"--{name}", action="append", metavar=name.upper(), help=f"only {what}; may be repeated"
        )


def where_of(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the filter that the options give."""
    filters = {
        "agent": options.agent,
        "catalog": options.catalog,
        "kind": options.kind,
        "tags": options.tag,
    }
    return {name: values for name, values in filters.items() if values}


def add_output_options(parser: argparse.ArgumentParser, keys: str) -> None:
    """Add --json, --as and --descriptions; `keys` are those of the JSON object."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help=f"print one JSON object: {keys}")
    output.add_argument(
        "--as",
        dest="shape",
        choices=("openai", "anthropic", "mcp", "toon"),
        help="print the tools for an API call, as JSON; or as compact text for a prompt (toon)",
    )
    parser.add_argument(
        "--descriptions",
        choices=("catalog", "written"),
        default="catalog",
        help="with --as: the catalog's descriptions, or those written by an LLM where a tool has "
        "one (default: catalog)",
    )


def print_tools(hits: "Sequence[Hit]", shape: str, descriptions: Any) -> None:
    """Print the hits as the tools of an API call, or as TOON."""
    import pegboard

    if shape == "toon":
        print(pegboard.as_toon(hits, descriptions))
        return
    shapes = {
        "openai": pegboard.as_openai_tools,
        "anthropic": pegboard.as_anthropic_tools,
        "mcp": pegboard.as_mcp_tools,
    }
    print_json(shapes[shape](hits, descriptions))


def print_hits(hits: "Sequence[Hit]", board: "Board", where: Mapping[str, Sequence[str]]) -> None:
    """Print the hits; without any, print the catalogs and agents that a filter may name."""
    if not hits:
        print("No tool was found.")
        if where:
            agents = board.list_agents()
            names = ", ".join(plain(agent.name) for agent in agents[:10]) + (
                ", ..." if len(agents) > 10 else ""
            )
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


def _search(options: argparse.Namespace) -> int:
    import pegboard

    board = pegboard.open(options.board, options.channel, options.release)
    query = " ".join(options.query)
    hits = board.search(
        query, options.k, mode=options.mode, index=options.index, where=where_of(options)
    )
    if options.shape:
        print_tools(hits, options.shape, options.descriptions)
    elif options.json:
        release = board.release
        index = options.index or release.manifest["default_index"]
        print_json(
            {
                "release": release.id,
                "index": index,
                "mode": options.mode,
                "hits": [hit.to_dict() for hit in hits],
            }
        )
    else:
        print_hits(hits, board, where_of(options))
    return 0


def _search_agents(options: argparse.Namespace) -> int:
    import pegboard

    board = pegboard.open(options.board, options.channel, options.release)
    found = board.search_agents(
        " ".join(options.request),
        options.k,
        mode=options.mode,
        decompose=options.decompose,
        index=options.index,
        where=where_of(options),
    )
    if options.json:
        print_json(found.to_dict())
        return 0
    if not found:
        print("No agent was found.")
    for rank, hit in enumerate(found, start=1):
        tool = hit.why.get("tool")
        by = f"by its tool {plain(tool)}" if tool else "by its description"
        print(f"{rank:>3}. {plain(hit.agent.name)}  ({hit.agent.kind})  {hit.score:.4f}  {by}")
        if summary := textwrap.shorten(hit.agent.description, width=100, placeholder=" ..."):
            print(f"     {plain(summary)}")
    return 0
