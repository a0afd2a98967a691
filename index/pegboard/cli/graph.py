"""`pegboard graph`: which tools need which others."""

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    open_board,
    print_json,
)
from pegboard.cli.tables import count_text, print_table
from pegboard.cli.tools import find_tool

if TYPE_CHECKING:
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.records import Edge

EXAMPLES = """\
A tool is given by its id, or by its true name where only one tool has it.

examples:
  pegboard graph show --board ./board                     how many dependencies, of which tools
  pegboard graph show get_stock_price --board ./board     what a tool needs, and what needs it

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
        help="what a tool needs and what needs it; of all tools, an overview",
    )
    show.add_argument("tool", nargs="?", metavar="TOOL", help="a tool; without it, an overview")
    add_json_option(show, "everything that is known")
    add_options(show, "--board", "--channel", "--release")


def _show(options: argparse.Namespace) -> int:
    board = open_board(options)
    graph = board.graph
    if options.tool:
        tool = options.tool if options.tool in graph else find_tool(board, options.tool).id
        return _show_tool(graph, tool, as_json=options.json)
    needing = Counter({tool: len(_targets(graph.edges_from(tool))) for tool in graph.tools})
    needed = Counter({tool: len({e.source for e in graph.edges_to(tool)}) for tool in graph.tools})
    overview: dict[str, Any] = {
        "release": board.release.id,
        "tools": len(graph.tools),
        "edges": len(graph),
        "types": dict(Counter(edge.type for edge in graph.edges).most_common()),
        "origins": dict(Counter(edge.origin for edge in graph.edges).most_common()),
        "most_needed": _most(needed),
        "most_needing": _most(needing),
    }
    if options.json:
        print_json(overview)
        return 0
    found = count_text(len(graph), "dependency", "dependencies")
    print(f"release {overview['release']}: {found} of {count_text(len(+needing), 'tool')}")
    for name in ("types", "origins"):
        counts = ", ".join(f"{count} {value}" for value, count in overview[name].items())
        print(f"{name}: {counts or 'none'}")
    for title, name in (("most needed", "most_needed"), ("needing most", "most_needing")):
        _print_list(title, [[f"{count:>4}", tool] for tool, count in overview[name].items()])
    return 0


def _show_tool(graph: "ToolGraph", tool: str, *, as_json: bool) -> int:
    needs, needed_by = graph.edges_from(tool), graph.edges_to(tool)
    direct = {tool, *_targets(needs)}
    through = [edge for edge in graph.dependencies(tool, None) if edge.target not in direct]
    lists = {"needs": needs, "needs_through_others": through, "needed_by": needed_by}
    if as_json:
        edges = {name: [asdict(edge) for edge in group] for name, group in lists.items()}
        print_json({"tool": tool, **edges})
        return 0
    print_table((), [[tool]])
    _print_list("needs", [[edge.target, _why(edge)] for edge in needs], limit=None)
    _print_list("and through others", [[edge.target, f"(of {edge.source})"] for edge in through])
    _print_list("needed by", [[tool] for tool in dict.fromkeys(edge.source for edge in needed_by)])
    return 0


def _most(counts: Counter[str]) -> dict[str, int]:
    """The highest counts, equal ones by id; those that are not zero."""
    return dict(sorted((+counts).items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN])


def _targets(edges: "Iterable[Edge]") -> list[str]:
    return list(dict.fromkeys(edge.target for edge in edges))


def _why(edge: "Edge") -> str:
    """How a tool needs the other, and why."""
    certain = f" ({edge.origin}, {edge.confidence:.2f})" if edge.origin != "declared" else ""
    for_parameter = f" for {edge.parameter}" if edge.parameter else ""
    return f"{edge.type}{for_parameter}{certain}{f': {edge.reason}' if edge.reason else ''}"


def _print_list(title: str, rows: list[list[str]], limit: int | None = SHOWN) -> None:
    print(f"{title}: {len(rows) or 'none'}")
    if rows:
        print_table((), rows, "  ", limit)
