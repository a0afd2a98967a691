"""An MCP server of FastMCP whose tools are searched on a board; a client asks it in this process.

    python examples/agents/fastmcp_server.py

`server().run()` serves it over stdio to any MCP host."""

import asyncio
import json

from fastmcp import Client, FastMCP
from office import FUNCTIONS, open_board

from pegboard.integrations.fastmcp import BoardSearchTransform


def server() -> FastMCP:
    """Return the server: it lists `search_tools` and `call_tool` alone."""
    office = FastMCP("office")
    for function in FUNCTIONS:
        office.tool(function)
    office.add_transform(BoardSearchTransform(open_board()))
    return office


async def ask() -> None:
    async with Client(server()) as client:
        print("listed:", *(tool.name for tool in await client.list_tools()))
        found = await client.call_tool("search_tools", {"query": "book a meeting room"})
        name = json.loads(found.content[0].text)[0]["name"]
        arguments = {"day": "Monday", "people": 4}
        booked = await client.call_tool("call_tool", {"name": name, "arguments": arguments})
        print(f"{name}: {booked.content[0].text}")


if __name__ == "__main__":
    asyncio.run(ask())
