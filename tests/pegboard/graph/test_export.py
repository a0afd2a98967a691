"""Graphs for other programs."""

import json
from xml.etree import ElementTree

import pytest

from pegboard.graph.export import name_of, subgraph, to_graphml, to_node_link
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge, tool_id

DIRECT = "tool-directly-depends-on"
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
NASTY = (
    "</data><edge source='x' target='y'/> & \"quotes\" ]]> \x00\x08\x1b[31m \ud800 \uffff "
    "\r\n\t é 天気 \U0001f600"
)
CLEAN = "</data><edge source='x' target='y'/> & \"quotes\" ]]> [31m   \r\n\t é 天気 \U0001f600"


@pytest.fixture
def graph():
    parameter = "parameter-indirectly-depends-on"
    return ToolGraph(
        [
            Edge("c/a/price", "c/a/ticker", parameter, "symbol", "To find it.", "inferred", 0.75),
            Edge("c/a/price", "c/a/ticker", DIRECT),
            Edge("c/a/ticker", "c/os/wifi", DIRECT, None, "Connectivity."),
        ],
        core=["c/os/wifi"],
    )


def parsed(text):
    """The nodes and edges of a GraphML document, by what the keys say."""
    root = ElementTree.fromstring(text)
    types = {"string": str, "double": float}
    keys = {
        key.get("id"): (key.get("attr.name"), types[key.get("attr.type")])
        for key in root.iter(f"{GRAPHML}key")
    }

    def values(element):
        pairs = [
            (keys[data.get("key")], data.text or "") for data in element.iter(f"{GRAPHML}data")
        ]
        return {name: convert(value) for (name, convert), value in pairs}

    nodes = {node.get("id"): values(node) for node in root.iter(f"{GRAPHML}node")}
    edges = [
        (edge.get("source"), edge.get("target"), values(edge))
        for edge in root.iter(f"{GRAPHML}edge")
    ]
    return nodes, edges


def test_graphml_has_typed_keys_and_everything_of_nodes_and_edges(graph):
    nodes, edges = parsed(to_graphml(graph))

    assert nodes == {
        "c/a/price": {"name": "price", "agent": "c/a", "role": "regular"},
        "c/a/ticker": {"name": "ticker", "agent": "c/a", "role": "regular"},
        "c/os/wifi": {"name": "wifi", "agent": "c/os", "role": "core"},
    }
    assert [(source, target) for source, target, _ in edges] == [
        (one.source, one.target) for one in graph.edges
    ]
    assert edges[2][2] == {
        "type": "parameter-indirectly-depends-on",
        "parameter": "symbol",
        "reason": "To find it.",
        "origin": "inferred",
        "confidence": 0.75,
    }


def test_ids_of_edges_are_unique_and_the_document_says_that_it_is_directed(graph):
    root = ElementTree.fromstring(to_graphml(graph))

    ids = [edge.get("id") for edge in root.iter(f"{GRAPHML}edge")]
    assert len(set(ids)) == len(graph) == 3
    assert root.find(f"{GRAPHML}graph").get("edgedefault") == "directed"


def test_what_a_catalog_says_stays_text():
    source, target = tool_id("c/a", 'a"<b>&\x00\n'), tool_id("c/a", "天気/予報")

    nodes, edges = parsed(to_graphml(ToolGraph([Edge(source, target, DIRECT, NASTY, NASTY)])))

    assert set(nodes) == {source, target}
    assert nodes[target]["name"] == "天気/予報"
    assert [(one, other, data["parameter"], data["reason"]) for one, other, data in edges] == [
        (source, target, CLEAN, CLEAN)
    ]


def test_node_link_is_json_that_tells_edges_between_the_same_tools_apart(graph):
    value = json.loads(json.dumps(to_node_link(graph)))

    assert (value["directed"], value["multigraph"]) == (True, True)
    assert value["nodes"][1] == {
        "id": "c/a/ticker",
        "name": "ticker",
        "agent": "c/a",
        "role": "regular",
    }
    assert [(edge["source"], edge["target"], edge["key"]) for edge in value["edges"]] == [
        ("c/a/price", "c/a/ticker", 0), ("c/a/ticker", "c/os/wifi", 0), ("c/a/price", "c/a/ticker",
        1),
    ]  # fmt: skip


def test_a_tool_without_edges_is_exported_where_it_is_asked_for():
    empty = ToolGraph(())

    assert list(parsed(to_graphml(empty, ["c/a/alone"]))[0]) == ["c/a/alone"]
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


def test_the_name_of_a_tool_is_in_its_id():
    for name in ("plain", "a/b#c%2F", "new\nline", "天気 予報"):
        assert name_of(tool_id("c/a", name)) == name


def test_a_subgraph_is_what_a_tool_needs_and_what_needs_it():
    edges = ["a>b", "b>c", "c>d", "d>e", "x>d", "b>d", "a>z"]
    graph = ToolGraph(Edge(*one.split(">"), DIRECT) for one in edges)

    def around(tool, depth=None):
        return [f"{edge.source}>{edge.target}" for edge in subgraph(graph, tool, depth).edges]

    assert around("c") == ["a>b", "b>c", "c>d", "d>e", "b>d"]
    assert around("c", 1) == ["b>c", "c>d", "b>d"]
    assert around("c", 0) == []
    assert around("unknown") == []


def test_a_subgraph_remembers_which_tools_are_core_tools():
    graph = ToolGraph([Edge(f"t{number}", "wifi", DIRECT) for number in range(9)])

    assert subgraph(graph, "t0").core_tools() == ["wifi"]
