"""fastmcp: the BM25 of its search transform. Tools of several servers have the server's name before
their own, as its proxy names them."""

import asyncio

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool

PACKAGE = "fastmcp"


def rank(tools, queries, k, encode):
    """Rank by words."""
    several = len({tool["agent"] for tool in tools}) > 1
    ids = {}
    listed = []
    for tool in tools:
        name = f"{tool['agent']}_{tool['name']}" if several else tool["name"]
        ids[name] = tool["id"]
        values = {"name": name, "description": tool["description"]}
        listed.append(Tool(**values, parameters=tool["parameters"]))
    transform = BM25SearchTransform(max_results=k)

    async def search():
        found = [await transform._search(listed, query) for query in queries]
        return [[ids[tool.name] for tool in one] for one in found]

    return asyncio.run(search())
