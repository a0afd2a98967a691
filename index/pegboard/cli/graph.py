"""`pegboard graph`: which tools need which others."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.output import (
    Subparsers,
    add_board_option,
    add_channel_option,
    add_json_option,
    add_release_option,
    json_text,
    plain,
    print_json,
)
from pegboard.cli.tables import count_text
from pegboard.cli.tools import find_tool
from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.records import Edge

EXAMPLES = """\
A tool is given by its id, or by its true name where only one tool has it.

examples:
  pegboard graph show --board ./board                     how many dependencies, core tools, circles
  pegboard graph show get_stock_price --board ./board     what a tool needs, and what needs it
  pegboard graph path get_stock_price get_wifi_status --board ./board
  pegboard graph export --format graphml -o tools.graphml --board ./board
  pegboard graph export --format json --tool get_stock_price --depth 2 --board ./board

No dependencies? Catalogs declare them in a column of their own, and the pipeline can infer them
(docs/explanation/dependencies.md)."""
SHOWN = 10
"""Entries of a list that is printed; --json has all."""


def register_graph(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "graph",
        help="which tools need which others",
        description="Look at the dependencies between the tools of a published board, by which "
        "searches are expanded.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = _action(
        actions, "show", "what a tool needs and what needs it; of all tools, an overview"
    )
    show.add_argument("tool", nargs="?", metavar="TOOL", help="a tool; without it, an overview")
    show.add_argument("--json", action="store_true", help="print one JSON object, with everything")
    show.set_defaults(run=_show)
    path = _action(actions, "path", "why one tool needs another: the shortest ways, with reasons")
    path.add_argument("source", metavar="FROM", help="the tool that needs the other")
    path.add_argument("target", metavar="TO", help="the tool that is needed")
    add_json_option(path, "from, to, paths")
    path.set_defaults(run=_path)
    export = _action(
        actions,
        "export",
        "the graph for other programs: GraphML for Gephi, JSON for networkx and D3",
    )
    export.add_argument(
        "--format", choices=("graphml", "json"), default="graphml", help="default: graphml"
    )
    export.add_argument("-o", "--out", metavar="FILE", help="write to this file (default: print)")
    export.add_argument("--tool", help="only what this tool needs, and what needs it")
    export.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="with --tool: through N dependencies each way (default: all)",
    )
    export.set_defaults(run=_export)


def _action(actions: Subparsers, name: str, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_board_option(parser)
    add_channel_option(parser)
    add_release_option(parser)
    return parser


def _show(options: argparse.Namespace) -> int:
    board = _board(options)
    graph = board.graph
    if options.tool:
        return _show_tool(graph, _tool(board, graph, options.tool), as_json=options.json)
    from pegboard.graph.paths import cycles

    needed, circles = graph.needed(), cycles(graph)
    needing = Counter(
        {tool: len(_others(graph.edges_from(tool), "target")) for tool in graph.tools}
    )
    overview: dict[str, Any] = {
        "release": board.release.id,
        "tools": len(graph.tools),
        "edges": len(graph),
        "types": dict(Counter(edge.type for edge in graph.edges).most_common()),
        "origins": dict(Counter(edge.origin for edge in graph.edges).most_common()),
        "core": graph.core_tools(),
        "most_needed": _most(needed),
        "most_needing": _most(needing),
        "cycles": [list(group) for group in circles],
    }
    if options.json:
        print_json(overview)
        return 0
    found = count_text(len(graph), "dependency", "dependencies")
    print(f"release {overview['release']}: {found} of {count_text(len(+needing), 'tool')}")
    for name in ("types", "origins"):
        print(
            f"{name}: "
            + (", ".join(f"{count} {value}" for value, count in overview[name].items()) or "none")
        )
    _print_list("core tools", [plain(tool) for tool in overview["core"]])
    for title, counts in (
        ("most needed", overview["most_needed"]),
        ("needing most", overview["most_needing"]),
    ):
        _print_list(
            title, [f"{count:>4}  {plain(tool)}" for tool, count in counts.items()], count=False
        )
    _print_list("circles", [_some(group) for group in circles])
    return 0


def _show_tool(graph: "ToolGraph", tool: str, *, as_json: bool) -> int:
    needs, needed_by = graph.edges_from(tool), graph.edges_to(tool)
    direct = {tool, *_others(needs, "target")}
    through = [edge for edge in graph.dependencies(tool, None) if edge.target not in direct]
    role = "core" if tool in graph.core_tools() else "regular"
    if as_json:
        lists = {"needs": needs, "needs_through_others": through, "needed_by": needed_by}
        print_json(
            {
                "tool": tool,
                "role": role,
                **{name: [asdict(one) for one in some] for name, some in lists.items()},
            }
        )
        return 0
    print(f"{plain(tool)}  ({role} tool)")
    _print_list(
        "needs",
        [line for edge in needs for line in _edge(edge, edge.target)],
        count=False,
        most=10**6,
    )
    _print_list(
        "and through others",
        [f"{plain(edge.target)}  (of {plain(edge.source)})" for edge in through],
    )
    _print_list("needed by", [plain(one) for one in _others(needed_by, "source")])
    return 0


def _path(options: argparse.Namespace) -> int:
    from pegboard.graph.paths import explain_path

    board = _board(options)
    graph = board.graph
    source, target = (_tool(board, graph, one) for one in (options.source, options.target))
    ways = explain_path(graph, source, target)
    if options.json:
        print_json(
            {
                "from": source,
                "to": target,
                "paths": [[asdict(edge) for edge in way] for way in ways],
            }
        )
        return 0
    if not ways:
        print(f"{plain(source)} does not need {plain(target)}, not even through others.")
    for number, way in enumerate(ways):
        print(("\n" if number else "") + plain(source))
        for edge in way:
            print("\n".join(f"  {line}" for line in _edge(edge, edge.target)))
    return 0


def _export(options: argparse.Namespace) -> int:
    from pegboard.graph.export import subgraph, to_graphml, to_node_link

    if options.depth is not None and (options.depth < 0 or not options.tool):
        raise ConfigurationError(
            f"--depth is {options.depth}; expected 0 or more, beside a --tool around which to look."
        )
    board = _board(options)
    graph, only = board.graph, list[str]()
    if options.tool:
        only = [_tool(board, graph, options.tool)]
        graph = subgraph(graph, only[0], options.depth)
    if options.format == "json":
        text = json_text(to_node_link(graph, only)) + "\n"
    else:
        text = to_graphml(graph, only)
    if not options.out:
        print(text, end="")
        return 0
    try:
        Path(options.out).write_text(text, "utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"The graph could not be written to {options.out}: {error.strerror}. Give -o a file "
            f"that can be written."
        ) from error
    found = count_text(len(graph), "dependency", "dependencies")
    print(f"{options.out} has {found} between {count_text(len(graph.tools), 'tool')}")
    return 0


def _board(options: argparse.Namespace) -> "Board":
    import pegboard

    return pegboard.open(options.board, options.channel, options.release)


def _tool(board: "Board", graph: "ToolGraph", given: str) -> str:
    """The id of the tool that is given by its id or its true name."""
    return given if given in graph else find_tool(board, given).id


def _most(counts: Counter[str]) -> dict[str, int]:
    """The highest counts, equal ones by id; those that are not zero."""
    return dict(sorted((+counts).items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN])


def _others(edges: "Sequence[Edge]", end: str) -> list[str]:
    """The tools at that end of the edges, each once."""
    return list(dict.fromkeys(getattr(edge, end) for edge in edges))


def _edge(edge: "Edge", tool: str) -> list[str]:
    """A dependency in two lines: the tool that is needed, and how and why."""
    certain = (
        "" if edge.origin == "declared" else f" ({edge.origin}, confidence {edge.confidence:.2f})"
    )
    for_parameter = f" for {plain(edge.parameter)}" if edge.parameter else ""
    reason = f": {plain(edge.reason)}" if edge.reason else ""
    return [f"-> {plain(tool)}", f"   {edge.type}{for_parameter}{certain}{reason}"]


def _print_list(title: str, lines: Sequence[str], *, count: bool = True, most: int = SHOWN) -> None:
    print(f"{title}: {len(lines) or 'none'}" if count or not lines else f"{title}:")
    for line in lines[:most]:
        print(f"  {line}")
    if len(lines) > most:
        print(f"  ... and {len(lines) - most} more; --json lists all")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(plain(one) for one in ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
