"""`pegboard search`: ask a board from the command line."""

import argparse
import json
import textwrap

from pegboard.cli import Subparsers, add_board_option, print_json

__all__ = ["register_search"]

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
    parser.add_argument("--mode", choices=("hybrid", "vector", "text"), default="hybrid", help="default: hybrid")
    parser.add_argument("--index", help="an index configuration (default: the release's own default)")
    parser.add_argument("--channel", default="live", help="the channel to ask (default: live)")
    parser.add_argument("--release", help="a release to ask instead of a channel, by id or its beginning")
    for name, what in (
        ("agent", "the agent with this id or name"),
        ("catalog", "this catalog"),
        ("kind", "agents of this kind"),
        ("tag", "tools with this tag"),
    ):
        parser.add_argument(f"--{name}", action="append", metavar=name.upper(), help=f"only {what}; may be repeated")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object: release, index, mode, hits")
    output.add_argument(
        "--as", dest="shape", choices=("openai", "anthropic", "mcp"), help="print the tools for an API call, as JSON"
    )
    parser.add_argument(
        "--descriptions",
        choices=("catalog", "written"),
        default="catalog",
        help="with --as: the catalog's descriptions, or those that an LLM wrote, where there are any (default: catalog)",
    )
    parser.set_defaults(run=_search)


def _search(options: argparse.Namespace) -> int:
    import pegboard

    board = pegboard.open(options.board, options.channel, options.release)
    filters = {
        "agent": options.agent,
        "catalog": options.catalog,
        "kind": options.kind,
        "tags": options.tag,
    }
    where = {name: values for name, values in filters.items() if values}
    hits = board.search(options.query, options.k, mode=options.mode, index=options.index, where=where)
    if options.shape:
        shapes = {
            "openai": pegboard.as_openai_tools,
            "anthropic": pegboard.as_anthropic_tools,
            "mcp": pegboard.as_mcp_tools,
        }
        tools = shapes[options.shape](hits, options.descriptions)
        print(json.dumps(tools, ensure_ascii=False, indent=2))
    elif options.json:
        release = board.release
        index = options.index or release.manifest["default_index"]
        print_json(
            {"release": release.id, "index": index, "mode": options.mode, "hits": [hit.to_dict() for hit in hits]}
        )
    elif not hits:
        print("No tool was found.")
    for rank, hit in enumerate(hits, start=1):
        if options.shape or options.json:
            break
        summary = textwrap.shorten(hit.tool.description, width=100, placeholder=" ...")
        print(f"{rank:>3}. {hit.tool.name}  ({hit.agent.name})  {hit.score:.4f}\n     {summary}")
        if hit.tool.flags:
            print(f"     Suspicious text: {', '.join(hit.tool.flags)}")
    return 0
