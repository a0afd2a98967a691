"""`pegboard graph`: which tools need which others."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    open_board,
    print_json,
)
from pegboard.cli.tables import print_table
from pegboard.cli.tools import find_tool

if TYPE_CHECKING:
    from pegboard.records import Edge

EXAMPLES = """\
A tool is given by its id, or by its true name where only one tool has it.

examples:
  pegboard graph show get_stock_price --board ./board

No dependencies? Catalogs declare them in a column of their own, and the pipeline can infer them
(docs/explanation/dependencies.md)."""
SHOWN = 10
"""Entries of a list that is printed; --json has all."""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "graph",
        epilog=EXAMPLES,
        help="which tools need which others",
        description="Look at the dependencies between the tools of a published board, by which "
        "searches are expanded.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = add_command(
        actions,
        "show",
        _show,
        help="what a tool needs, and what needs it",
    )
    show.add_argument("tool", metavar="TOOL", help="its id, or its true name")
    add_json_option(show, "tool, needs, needs_through_others, needed_by")
    add_options(show, "--board", "--channel", "--release")


def _show(options: argparse.Namespace) -> int:
    board = open_board(options)
    graph = board.graph
    tool = options.tool if options.tool in graph else find_tool(board, options.tool).id
    needs, needed_by = graph.edges_from(tool), graph.edges_to(tool)
    direct = {tool, *(edge.target for edge in needs)}
    through = [edge for edge in graph.dependencies(tool, None) if edge.target not in direct]
    lists = {"needs": needs, "needs_through_others": through, "needed_by": needed_by}
    if options.json:
        edges = {name: [asdict(edge) for edge in group] for name, group in lists.items()}
        print_json({"tool": tool, **edges})
        return 0
    print_table((), [[tool]])
    _print_list("needs", [[edge.target, _why(edge)] for edge in needs], limit=None)
    _print_list("and through others", [[edge.target, f"(of {edge.source})"] for edge in through])
    _print_list("needed by", [[tool] for tool in dict.fromkeys(edge.source for edge in needed_by)])
    return 0


def _why(edge: "Edge") -> str:
    """How a tool needs the other, and why."""
    certain = f" ({edge.origin}, {edge.confidence:.2f})" if edge.origin != "declared" else ""
    for_parameter = f" for {edge.parameter}" if edge.parameter else ""
    return f"{edge.type}{for_parameter}{certain}{f': {edge.reason}' if edge.reason else ''}"


def _print_list(title: str, rows: list[list[str]], limit: int | None = SHOWN) -> None:
    print(f"{title}: {len(rows) or 'none'}")
    if rows:
        print_table((), rows, "  ", limit)
