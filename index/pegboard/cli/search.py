"""`pegboard search`: ask a board from the command line."""

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import Subparsers, add_board_option, plain, print_json

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.hits import Hit

EXAMPLES = """\
examples:
  pegboard search "convert 30 dollars to yen" --board ./board
  pegboard search "open an issue" --board ./board -k 3 --catalog github --json
  pegboard search "open an issue" --board ./board --as openai > tools.json

Nothing sensible among the hits? --mode text and --mode vector show which half found what; the score of one search
cannot be compared with that of another mode."""


def register_search(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "search",
        help="find the tools for a request",
        description="Find the tools for a request on a published board.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", help="the request, in the words of the person who has it")
    add_board_option(parser)
    parser.add_argument("-k", type=int, default=5, help="tools to return (default: 5)")
    parser.add_argument(
        "--mode", choices=("hybrid", "vector", "text"), default="hybrid", help="default: hybrid"
    )
    parser.add_argument(
        "--index", help="an index configuration (default: the release's own default)"
    )
    parser.add_argument("--channel", default="live", help="the channel to ask (default: live)")
    parser.add_argument(
        "--release", help="a release to ask instead of a channel, by id or its beginning"
    )
    add_filter_options(parser)
    add_output_options(parser, "release, index, mode, hits")
    parser.set_defaults(run=_search)


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
    """The filter that the options say."""
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
        choices=("openai", "anthropic", "mcp"),
        help="print the tools for an API call, as JSON",
    )
    parser.add_argument(
        "--descriptions",
        choices=("catalog", "written"),
        default="catalog",
        help="with --as: the catalog's descriptions, or those that an LLM wrote, where there are "
        "any (default: catalog)",
    )


def print_tools(hits: "Sequence[Hit]", shape: str, descriptions: Any) -> None:
    """Print the hits as the tools of an API call."""
    import pegboard

    shapes = {
        "openai": pegboard.as_openai_tools,
        "anthropic": pegboard.as_anthropic_tools,
        "mcp": pegboard.as_mcp_tools,
    }
    print(json.dumps(shapes[shape](hits, descriptions), ensure_ascii=False, indent=2))


def print_hits(hits: "Sequence[Hit]", board: "Board", where: Mapping[str, Sequence[str]]) -> None:
    """Print the hits for people; where there are none, what a filter could have let through."""
    if not hits:
        print("No tool was found.")
        if where:
            agents = board.list_agents()
            names = ", ".join(plain(agent.name) for agent in agents[:10]) + (
                ", ..." if len(agents) > 10 else ""
            )
            catalogs = ", ".join(sorted({plain(agent.catalog) for agent in agents}))
            print(f"The filter may be why. Catalogs: {catalogs}. Agents: {names}.")
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
            print(f"     Suspicious text: {', '.join(hit.tool.flags)}")


def _search(options: argparse.Namespace) -> int:
    import pegboard

    board = pegboard.open(options.board, options.channel, options.release)
    hits = board.search(
        options.query, options.k, mode=options.mode, index=options.index, where=where_of(options)
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
