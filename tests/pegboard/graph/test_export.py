"""Graphs for other programs."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from pegboard.graph.export import name_of, subgraph, to_graphml, to_node_link
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import tool_id

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
NASTY = (
    "</data><edge source='x' target='y'/> & \"quotes\" ]]> \x00\x08\x1b[31m \ud800 \uffff "
    "\r\n\t é 天気 \U0001f600"
)
CLEAN = "</data><edge source='x' target='y'/> & \"quotes\" ]]> [31m   \r\n\t é 天気 \U0001f600"
INFERRED = {
    "type": "parameter-indirectly-depends-on",
    "parameter": "symbol",
    "reason": "To find it.",
    "origin": "inferred",
    "confidence": 0.75,
}


@pytest.fixture
def graph(edge):
    edges = [
        edge("c/a/price>c/a/ticker", **INFERRED),
        edge("c/a/price>c/a/ticker"),
        edge("c/a/ticker>c/os/wifi", reason="Connectivity."),
    ]
    return ToolGraph(edges, core=["c/os/wifi"])


def parsed(text):
    """The nodes and edges of a GraphML document, by what the keys say."""
    root = ElementTree.fromstring(text)
    types = {"string": str, "double": float}
    keys = {
        key.get("id"): (key.get("attr.name"), types[key.get("attr.type")])
        for key in root.iter(f"{GRAPHML}key")
    }

    def values(element):
        pairs = [(keys[data.get("key")], data.text) for data in element.iter(f"{GRAPHML}data")]
        return {name: convert(text or "") for (name, convert), text in pairs}

    nodes = {node.get("id"): values(node) for node in root.iter(f"{GRAPHML}node")}
    edges = [(edge, values(edge)) for edge in root.iter(f"{GRAPHML}edge")]
    assert root.find(f"{GRAPHML}graph").get("edgedefault") == "directed"
    assert len({edge.get("id") for edge, _ in edges}) == len(edges)
    return nodes, [(edge.get("source"), edge.get("target"), data) for edge, data in edges]


def test_graphml_has_typed_keys_and_everything_of_nodes_and_edges(graph):
    nodes, edges = parsed(to_graphml(graph))

    assert nodes == {
        "c/a/price": {"name": "price", "agent": "c/a", "role": "regular"},
        "c/a/ticker": {"name": "ticker", "agent": "c/a", "role": "regular"},
        "c/os/wifi": {"name": "wifi", "agent": "c/os", "role": "core"},
    }
    assert [(source, target) for source, target, _ in edges] == [
        (edge.source, edge.target) for edge in graph.edges
    ]
    assert edges[2][2] == INFERRED


def test_text_of_a_catalog_stays_text(edge):
    source, target = tool_id("c/a", 'a"<b>&\x00\n'), tool_id("c/a", "天気/予報")
    hostile = replace(edge("a>b", parameter=NASTY, reason=NASTY), source=source, target=target)

    nodes, [(*ends, data)] = parsed(to_graphml(ToolGraph([hostile])))

    assert (ends, nodes[target]["name"]) == ([source, target], "天気/予報")
    assert (data["parameter"], data["reason"]) == (CLEAN, CLEAN)


def test_node_link_tells_edges_between_the_same_tools_apart(graph):
    value = json.loads(json.dumps(to_node_link(graph)))

    assert (value["directed"], value["multigraph"]) == (True, True)
    assert value["nodes"][1] == {
        "id": "c/a/ticker",
        "name": "ticker",
        "agent": "c/a",
        "role": "regular",
    }
    assert [(edge["source"][-5:], edge["target"][-4:], edge["key"]) for edge in value["edges"]] == [
        ("price", "cker", 0),
        ("icker", "wifi", 0),
        ("price", "cker", 1),
    ]


def test_a_tool_without_edges_is_exported_where_it_is_named():
    empty = ToolGraph(())

    assert [*parsed(to_graphml(empty, ["c/a/alone"]))[0]] == ["c/a/alone"]
    assert [node["id"] for node in to_node_link(empty, ["c/a/alone"])["nodes"]] == ["c/a/alone"]
    assert parsed(to_graphml(empty)) == ({}, [])


def test_networkx_reads_both(graph):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")

    for read in (
        networkx.parse_graphml(to_graphml(graph)),
        networkx.node_link_graph(to_node_link(graph), edges="edges"),
    ):
        assert read.is_directed()
        assert read.nodes["c/os/wifi"]["role"] == "core"
        assert sorted(read.edges()) == sorted((edge.source, edge.target) for edge in graph.edges)


@pytest.mark.parametrize("name", ["plain", "a/b#c%2F", "new\nline", "天気 予報"])
def test_the_name_of_a_tool_is_in_its_id(name):
    assert name_of(tool_id("c/a", name)) == name


@pytest.mark.parametrize(
    ("tool", "depth", "edges"),
    [
        ("c", None, "a>b b>c c>d d>e b>d"),
        ("c", 1, "b>c c>d b>d"),
        ("c", 0, ""),
        ("unknown", None, ""),
    ],
)
def test_a_subgraph_is_what_a_tool_needs_and_what_needs_it(graph_of, tool, depth, edges):
    graph = graph_of("a>b b>c c>d d>e x>d b>d a>z")

    around = subgraph(graph, tool, depth).edges

    assert [f"{edge.source}>{edge.target}" for edge in around] == edges.split()


def test_a_subgraph_remembers_which_tools_are_core_tools(graph_of):
    graph = graph_of(" ".join(f"t{number}>wifi" for number in range(9)))

    assert subgraph(graph, "t0").core_tools() == ["wifi"]
