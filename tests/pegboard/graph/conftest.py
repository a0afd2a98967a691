"""Graphs in short: `a>b` is a direct dependency, `a~b` an indirect one."""

import pytest

from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge

DIRECT, INDIRECT = "tool-directly-depends-on", "tool-indirectly-depends-on"


@pytest.fixture(scope="session")
def edge():
    """An edge, from `a>b` or `a~b` and its other fields."""

    def make(ends, **fields):
        kind, sign = (INDIRECT, "~") if "~" in ends else (DIRECT, ">")
        source, target = ends.split(sign)
        return Edge(source, target, **{"type": kind, **fields})

    return make


@pytest.fixture(scope="session")
def graph_of(edge):
    """A graph, from its edges in one text."""
    return lambda edges: ToolGraph(map(edge, edges.split()))
