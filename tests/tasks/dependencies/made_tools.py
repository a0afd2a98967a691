"""Tools made up for tests of inferred dependencies."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.records import Edge, Tool, tool_id

STRING = {"type": "string"}


def make_tool(
    name: str,
    *strings: str,
    description: str = "",
    properties: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
    agent: str = "shop/orders",
    **schema: Any,
) -> Tool:
    """A tool with required parameters: strings by name, and `properties`."""
    parameters = {**dict.fromkeys(strings, STRING), **(properties or {})}
    inputs = {"type": "object", "properties": parameters, "required": [*parameters], **schema}
    outputs = None if output is None else {"type": "object", "properties": output}
    catalog = agent.partition("/")[0]
    return Tool(tool_id(agent, name), catalog, agent, name, description, inputs, outputs)


def triples(edges: Sequence[Edge], min_confidence: float = 0.5) -> set[tuple[str, str | None, str]]:
    """(source, parameter, target) of edges, by the names of the tools."""
    return {
        (edge.source.rpartition("/")[2], edge.parameter, edge.target.rpartition("/")[2])
        for edge in edges
        if edge.confidence >= min_confidence
    }
