"""graph-tool-call: its graph, words and embeddings together, with its default weights.

It knows tools by name; where several have one name, the agent's name goes before it, as its
`on_conflict="prefix"` does."""

from collections import Counter

from graph_tool_call import ToolGraph

PACKAGE = "graph-tool-call"
LARGEST = 2_500
"""Tools from which on it takes hours to relate all pairs of tools."""
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title")


def rank(tools, queries, k, encode):
    """Rank by its graph."""
    if len(tools) > LARGEST:
        raise ValueError(f"not asked: {len(tools)} tools, more than {LARGEST}")
    times = Counter(tool["name"] for tool in tools)
    ids = {}
    definitions = []
    for tool in tools:
        name = tool["name"] if times[tool["name"]] == 1 else f"{tool['agent']}.{tool['name']}"
        ids[name] = tool["id"]
        definition = {"name": name, "description": tool["description"]}
        definition["inputSchema"] = tool["parameters"]
        hints = {key: tool["annotations"][key] for key in HINTS if key in tool["annotations"]}
        definitions.append(definition | ({"annotations": hints} if hints else {}))
    graph = ToolGraph()
    for schema, tool in zip(graph.add_tools(definitions), tools, strict=True):
        for key in ("method", "path"):
            if key in tool["annotations"]:
                schema.metadata[key] = tool["annotations"][key]
    graph.enable_embedding(encode)
    return [[ids[hit.name] for hit in graph.retrieve(query, top_k=k)] for query in queries]
