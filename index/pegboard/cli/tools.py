"""`pegboard tools`: which tools a board has, and one of them in full."""

import argparse
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from pegboard.cli.output import (
    Subparsers,
    add_board_option,
    add_channel_option,
    add_json_option,
    add_release_option,
    plain,
    print_json,
)
from pegboard.cli.search import add_filter_options, where_of
from pegboard.cli.tables import count_text, limited_lines, table_lines
from pegboard.errors import BoardNotFound, QueryError

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.records import Agent, Tool

EXAMPLES = """\
A tool is given by its id, or by its true name where only one tool has it.

examples:
  pegboard tools list
  pegboard tools list currency --agent finance --json
  pegboard tools show finance/finance/convert_currency

`list` compares text; to find tools for a request use `pegboard find`."""
LISTED = 200
"""Tools that are printed; --json has all."""
NAMED = 10
"""Ids that an error names."""
WIDTH = 60
"""Characters of a description in the list."""


def register_tools(subparsers: Subparsers) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "tools",
        help="list the tools of a board, or show one in full",
        description="List the tools of a published board, or show one in full.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list tools, by id")
    listing.add_argument(
        "text", nargs="?", default="", help="only tools whose id or description has it"
    )
    add_filter_options(listing)
    add_json_option(listing, "release, tools")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="show one tool, and where its parts came from")
    show.add_argument("tool", metavar="TOOL", help="its id, or its true name")
    add_json_option(show, "release, tool, agent, needs, needed_by")
    show.set_defaults(run=_show)
    for action in (listing, show):
        add_board_option(action)
        add_channel_option(action)
        add_release_option(action)


def find_tool(board: "Board", given: str) -> "Tool":
    """Return the tool of an id or a true name.

    Raises:
        QueryError: several tools have that name.
        BoardNotFound: there is none; the message names ids that contain the text.
    """
    if tool := board.tool(given):
        return tool
    tools = board.list_tools()
    named = [tool for tool in tools if tool.name == given]
    if len(named) == 1:
        return named[0]
    if named:
        ids = _ids(named)
        raise QueryError(f"{len(named)} tools are called '{given}'; give the id of one: {ids}.")
    like = [tool for tool in tools if given.casefold() in tool.id.casefold()]
    hint = f"There are: {_ids(like)}." if like else "`pegboard tools list` lists them."
    raise BoardNotFound(f"Release {board.release.id} has no tool '{given}'. {hint}")


def _ids(tools: "list[Tool]") -> str:
    more = ", ..." if len(tools) > NAMED else ""
    return ", ".join(plain(tool.id) for tool in tools[:NAMED]) + more


def _open(options: argparse.Namespace) -> "Board":
    import pegboard

    return pegboard.open(options.board, options.channel, options.release)


def _list(options: argparse.Namespace) -> int:
    board, text = _open(options), options.text.casefold()
    tools = [
        tool
        for tool in board.list_tools(where_of(options))
        if text in f"{tool.id}\n{tool.name}\n{tool.description}".casefold()
    ]
    if options.json:
        rows = [
            {"id": tool.id, "name": tool.name, "agent": tool.agent, "description": tool.description}
            for tool in tools
        ]
        print_json({"release": board.release.id, "tools": rows})
        return 0
    rows = [
        (tool.id, textwrap.shorten(tool.description, WIDTH, placeholder=" ...")) for tool in tools
    ]
    for line in limited_lines(
        table_lines(("TOOL", "DESCRIPTION"), rows), LISTED + 1, "", "; --json lists all"
    ):
        print(line)
    print(f"{count_text(len(tools), 'tool')} of release {board.release.id}")
    return 0


def _show(options: argparse.Namespace) -> int:
    board = _open(options)
    tool = find_tool(board, options.tool)
    agent = next(agent for agent in board.list_agents() if agent.id == tool.agent)
    graph = board.graph
    if options.json:
        values = {
            "release": board.release.id,
            "tool": asdict(tool),
            "agent": asdict(agent),
            "needs": [asdict(edge) for edge in graph.edges_from(tool.id)],
            "needed_by": [asdict(edge) for edge in graph.edges_to(tool.id)],
        }
        print_json(values)
        return 0
    for label, origin, text in [*_parts(tool, agent), *_dependencies(graph, tool.id)]:
        print(f"{label:<12} {origin:<9} {plain(text)}")
    return 0


def _parts(tool: "Tool", agent: "Agent") -> Iterator[tuple[str, str, str]]:
    """What is known of a tool, part by part, and whether the catalog says it or an LLM wrote it."""
    listed_at = f", listed at {agent.source}" if agent.source else ""
    yield "id", "", tool.id
    yield "name", "catalog", tool.name
    yield "agent", "catalog", f"{agent.name} ({agent.kind}){listed_at}"
    written = tool.enrichment.to_dict() if tool.enrichment else {}
    arguments: Mapping[str, str] = written.pop("arguments", {})
    written.pop("dependencies", None)
    yield "description", "catalog", tool.description or "none"
    for name in ("description", "avoid"):
        if name in written:
            yield name, "LLM", written[name]
    for name, schema in tool.input_schema.get("properties", {}).items():
        fields = schema if isinstance(schema, Mapping) else {}
        needed = ", required" if name in tool.input_schema.get("required", ()) else ""
        kind = json.dumps(fields.get("type", "any"), ensure_ascii=False).strip('"')
        yield "argument", "catalog", f"{name} ({kind}{needed}): {fields.get('description', '')}"
        if name in arguments:
            yield "argument", "LLM", f"{name}: {arguments[name]}"
    for label, texts in (("example", tool.examples), ("tag", tool.tags)):
        yield from ((label, "catalog", text) for text in texts)
    for label in ("questions", "topics"):
        yield from ((label.removesuffix("s"), "LLM", text) for text in written.get(label, ()))
    for label, value in (("returns", tool.output_schema), ("annotations", tool.annotations)):
        if value:
            yield label, "catalog", json.dumps(value, ensure_ascii=False)
    yield from (("suspicious", "build", flag) for flag in tool.flags)


def _dependencies(graph: "ToolGraph", tool: str) -> Iterator[tuple[str, str, str]]:
    for edge in graph.edges_from(tool):
        reason = f": {edge.reason}" if edge.reason else ""
        certain = f" (confidence {edge.confidence:.2f})" if edge.origin != "declared" else ""
        yield "needs", edge.origin, f"{edge.target}{certain}{reason}"
    for edge in graph.edges_to(tool):
        yield "needed by", edge.origin, edge.source
