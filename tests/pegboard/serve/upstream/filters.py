"""An MCP server over stdio, and an API, whose arguments have names that model APIs refuse; each
answers with what it was sent."""

from fastmcp import FastMCP
from fastmcp.tools import Tool, ToolResult

SCHEMA = {
    "type": "object",
    "properties": {
        "filter[city]": {"type": "string"},
        "rows": {"type": "array", "items": {"$ref": "#/definitions/Row"}},
    },
    "required": ["filter[city]"],
    "definitions": {"Row": {"properties": {"größe": {"type": "integer"}}}},
}
LISTED = {"name": "list_stations", "description": "Lists stations.", "inputSchema": SCHEMA}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Stations", "version": "1"},
    "paths": {
        "/orders": {
            "get": {
                "operationId": "find_orders",
                "summary": "Finds orders.",
                "parameters": [
                    {"name": name, "in": "query", "schema": {"type": "string"}}
                    for name in ("filter[item]", "$select")
                ],
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}


class Repeat(Tool):
    async def run(self, arguments):
        return ToolResult(structured_content={"sent": arguments})


if __name__ == "__main__":
    server = FastMCP("stations")
    server.add_tool(Repeat(name="list_stations", description="Lists stations.", parameters=SCHEMA))
    server.run(show_banner=False)
