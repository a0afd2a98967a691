"""Tools made up for tests of inferred dependencies."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from pegboard.records import Edge, Tool, tool_id
from tasks.dependencies.infer import infer_agent_edges

STRING = {"type": "string"}
VERBS = ("search", "list", "get", "update", "create", "calculate")
THINGS = ("order", "cart", "voyage", "crew")
NOUNS = [f"{kind}{thing}" for kind in ("", "draft_", "open_", "shared_") for thing in THINGS]


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


def make_board(size: int, agents: int) -> list[Tool]:
    """Tools that all ask for, and provide, the same few nouns."""
    dice = random.Random(4)

    def tools() -> Iterator[Tool]:
        for at in range(size):
            verb = VERBS[at % 6]
            noun = dice.choice(NOUNS)
            other = dice.choice(NOUNS)
            parameters = {"search": ["text"], "list": [], "calculate": [other, "start_date"]}
            service = dice.choice(("acme", "zeta", "nova", "orbit"))
            crew = "" if at % 3 else f"_for_crew{at}x"
            third = dice.choice(NOUNS)
            yield make_tool(
                f"{service}_{verb}_{noun}{crew}_by_{at}",
                *parameters.get(verb, [f"{other}_id", "id"]),
                description=f"{verb} a {noun}. Returns the {third} id and the {other} of a person.",
                agent=f"shop{at % 2}/agent{at % agents}",
            )
        yield make_tool("get_current_date", agent="shop0/clock")

    return list(tools())


def infer_edges(tools: Iterable[Tool]) -> list[Edge]:
    """Infer the edges of these tools, sorted by source, target, type and parameter."""
    tools = sorted(tools, key=attrgetter("agent", "id"))
    by_agent = groupby(tools, attrgetter("agent"))
    edges = [edge for _, own in by_agent for edge in infer_agent_edges([*own])]
    return sorted(
        edges, key=lambda edge: (edge.source, edge.target, edge.type, edge.parameter or "")
    )
