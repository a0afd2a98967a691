"""A graph of tools for other programs: GraphML (Gephi, networkx, yEd) and node-link JSON (networkx,
D3).

Nodes have the tool's id and its `name`, `agent` and `role` (core or regular). Edges lead from a
tool to what it needs and have `type`, `parameter` (empty for the tool as a whole), `reason`,
`origin` and `confidence`."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape, quoteattr

from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to say (section 2.2): most control characters, lone surrogates, U+FFFE
and U+FFFF.
"""
BREAKS = (0x2028, 0x2029)
DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
REFERENCES = {
    chr(code): f"&#{code};" for code in (0x0A, 0x0D, *range(0x7F, 0xA0), *BREAKS, *DIRECTIONS)
}
"""Written as references: line breaks, which parsers would change and which could forge a line, and
characters that a terminal may obey.
"""
NODE_KEYS = {"name": "string", "agent": "string", "role": "string"}
EDGE_KEYS = {
    "type": "string",
    "parameter": "string",
    "reason": "string",
    "origin": "string",
    "confidence": "double",
}
"""The attributes of nodes and of edges, and their types in GraphML."""


def name_of(tool: str) -> str:
    """The true name of a tool, from its id."""
    return unquote(tool.rpartition("/")[2])


def subgraph(graph: ToolGraph, tool: str, depth: int | None = None) -> ToolGraph:
    """What a tool needs and what needs it, through `depth` edges each way at most (None for any
    number), and all edges between those.

    What else needs the same tools is left out: nearly everything needs some core tool.
    """
    near = {tool}
    for towards in (graph.edges_from, graph.edges_to):
        seen, level, steps = {tool}, [tool], 0
        while level and (depth is None or steps < depth):
            ends = (
                end for one in level for edge in towards(one) for end in (edge.source, edge.target)
            )
            level = list(dict.fromkeys(end for end in ends if end not in seen))
            seen.update(level)
            steps += 1
        near |= seen
    between = [edge for edge in graph.edges if edge.source in near and edge.target in near]
    return ToolGraph(between, [one for one in graph.core_tools() if one in near])


def to_node_link(graph: ToolGraph, only: Iterable[str] = ()) -> dict[str, Any]:
    """The graph as JSON values, as `networkx.node_link_graph` takes them: `nodes` with `id`,
    `edges` with `source`, `target`, `key`.

    Args:
        only: tools that are given even if no edge leaves or reaches them.
    """
    keys: dict[tuple[str, str], int] = {}
    edges: list[dict[str, Any]] = []
    for edge in graph.edges:
        ends = (edge.source, edge.target)
        keys[ends] = keys.get(ends, -1) + 1  # a tool may need another in several ways
        edges.append(
            {"source": edge.source, "target": edge.target, "key": keys[ends], **_edge_values(edge)}
        )
    nodes = [{"id": tool, **values} for tool, values in _nodes(graph, only)]
    return {"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}


def to_graphml(graph: ToolGraph, only: Iterable[str] = ()) -> str:
    """The graph as a GraphML document; ids of nodes are ids of tools. Characters that XML does not
    know are dropped.

    Args:
        only: tools that are given even if no edge leaves or reaches them.
    """
    return "\n".join(_graphml(graph, only)) + "\n"


def _graphml(graph: ToolGraph, only: Iterable[str]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for of, keys in (("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for name, kind in keys.items():
            yield f'  <key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph id="tools" edgedefault="directed">'
    for tool, values in _nodes(graph, only):
        yield f"    <node id={_attribute(tool)}>{_data(values)}</node>"
    for number, edge in enumerate(graph.edges):
        ends = f"source={_attribute(edge.source)} target={_attribute(edge.target)}"
        yield f'    <edge id="e{number}" {ends}>{_data(_edge_values(edge))}</edge>'
    yield "  </graph>"
    yield "</graphml>"


def _nodes(graph: ToolGraph, only: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    core: Collection[str] = set(graph.core_tools())
    for tool in dict.fromkeys((*graph.tools, *only)):
        role = "core" if tool in core else "regular"
        yield tool, {"name": name_of(tool), "agent": tool.rpartition("/")[0], "role": role}


def _edge_values(edge: Edge) -> dict[str, str | float]:
    return {
        "type": edge.type,
        "parameter": edge.parameter or "",
        "reason": edge.reason,
        "origin": edge.origin,
        "confidence": edge.confidence,
    }


def _data(values: Mapping[str, str | float]) -> str:
    return "".join(
        f'<data key="{name}">{escape(_allowed(str(value)), REFERENCES)}</data>'
        for name, value in values.items()
    )


def _attribute(text: str) -> str:
    return quoteattr(_allowed(text), REFERENCES)


def _allowed(text: str) -> str:
    return FORBIDDEN.sub("", text)
