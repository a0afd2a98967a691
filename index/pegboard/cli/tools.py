"""`pegboard tools` and `graph`: the tools of a board, one of them in full, and what it needs."""

import argparse
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from pegboard.cli.find import where_of
from pegboard.cli.output import (
    FILTERS,
    Subparsers,
    add_command,
    add_json_option,
    add_options,
    open_board,
    print_json,
    print_table,
)
from pegboard.errors import BoardNotFound, QueryError
from pegboard.formatting import count_text, list_text, plain

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.records import Agent, Edge, Tool

EXAMPLES = """\
A tool is given by its id, or by its true name where only one tool has it.

examples:
  pegboard tools list
  pegboard tools list currency --agent finance --json
  pegboard tools show finance/finance/convert_currency

`list` compares text; to find tools for a request use `pegboard find`. What a tool needs, and what
needs it, is in `pegboard graph show`."""
GRAPH = """\
A tool is given by its id, or by its true name where only one tool has it.

No dependencies? Catalogs declare them in a column of their own, and the pipeline can infer them
(docs/explanation/dependencies.md)."""
LISTED = 200
"""Maximum number of tools printed; --json has all."""
NAMED = 10
"""Maximum number of ids in an error."""
WIDTH = 60
"""Maximum number of characters of a description in the list."""
SHOWN = 10
"""Maximum number of dependencies printed of a kind; --json has all."""


def register(subparsers: Subparsers) -> None:
    """Add the commands."""
    parser = add_command(
        subparsers,
        "tools",
        epilog=EXAMPLES,
        help="list the tools of a board, or show one in full",
        description="List the tools of a published board, or show one in full.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add_command(actions, "list", _list, help="list tools, by id")
    listing.add_argument(
        "text", nargs="?", default="", help="only tools whose id or description has it"
    )
    add_options(listing, *FILTERS, action="append")
    add_json_option(listing, "release, tools")
    show = add_command(actions, "show", _show, help="show one tool, and where its parts came from")
    show.add_argument("tool", metavar="TOOL", help="its id, or its true name")
    add_json_option(show, "release, tool, agent")
    parser = add_command(
        subparsers,
        "graph",
        epilog=GRAPH,
        help="which tools need which others",
        description="Look at the dependencies between the tools of a published board, by which "
        "searches are expanded.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    graph = add_command(actions, "show", _show_graph, help="what a tool needs, and what needs it")
    graph.add_argument("tool", metavar="TOOL", help="its id, or its true name")
    add_json_option(graph, "tool, needs, needs_through_others, needed_by")
    for action in (listing, show, graph):
        add_options(action, "--board", "--channel", "--release")


def find_tool(board: "Board", name_or_id: str) -> "Tool":
    """Return the tool with an id or a true name.

    Raises:
        QueryError: several tools have that name.
        BoardNotFound: there is none; the message names ids that contain the text.
    """
    if tool := board.tool(name_or_id):
        return tool
    tools = board.list_tools()
    named = [tool for tool in tools if tool.name == name_or_id]
    if len(named) == 1:
        return named[0]
    if named:
        raise QueryError(
            f"{len(named)} tools are called '{name_or_id}'; give the id of one: {_ids(named)}."
        )
    similar = [tool for tool in tools if name_or_id.casefold() in tool.id.casefold()]
    hint = f"There are: {_ids(similar)}." if similar else "`pegboard tools list` lists them."
    raise BoardNotFound(f"Release {board.release.id} has no tool '{name_or_id}'. {hint}")


def _ids(tools: "list[Tool]") -> str:
    return list_text((plain(tool.id) for tool in tools), NAMED)


def _list(options: argparse.Namespace) -> int:
    board = open_board(options)
    text = options.text.casefold()
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
    print_table(("TOOL", "DESCRIPTION"), rows, limit=LISTED)
    print(f"{count_text(len(tools), 'tool')} of release {board.release.id}")
    return 0


def _show(options: argparse.Namespace) -> int:
    board = open_board(options)
    tool = find_tool(board, options.tool)
    agent = next(agent for agent in board.list_agents() if agent.id == tool.agent)
    if options.json:
        print_json({"release": board.release.id, "tool": asdict(tool), "agent": asdict(agent)})
        return 0
    print_table((), list(_parts(tool, agent)))
    return 0


def _parts(tool: "Tool", agent: "Agent") -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a tool as label, origin (catalog, LLM or build) and text."""
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


def _show_graph(options: argparse.Namespace) -> int:
    board = open_board(options)
    graph = board.graph
    tool = options.tool if options.tool in graph else find_tool(board, options.tool).id
    needs = graph.edges_from(tool)
    needed_by = graph.edges_to(tool)
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
    """Return how a tool needs the other, and why."""
    certain = f" ({edge.origin}, {edge.confidence:.2f})" if edge.origin != "declared" else ""
    for_parameter = f" for {edge.parameter}" if edge.parameter else ""
    return f"{edge.type}{for_parameter}{certain}{f': {edge.reason}' if edge.reason else ''}"


def _print_list(title: str, rows: list[list[str]], limit: int | None = SHOWN) -> None:
    print(f"{title}: {len(rows) or 'none'}")
    if rows:
        print_table((), rows, "  ", limit)
