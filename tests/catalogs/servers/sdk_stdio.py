"""A well-behaved MCP server over stdio, written with the official SDK."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer(
    "weather", title="Weather desk", instructions="Ask for the weather of a city.", version="1"
)


@server.tool(title="Forecast", annotations=ToolAnnotations(read_only_hint=True))
def forecast(city: str, days: int = 1) -> dict[str, float]:
    """The temperatures of the next days in a city."""
    return {city: 20.0 + days}


@server.tool(title="Report the weather outside")
def report(text: str) -> str:
    return text


@server.prompt()
def small_talk() -> str:
    """Something to say about the weather."""
    return "Nice day, is it not?"


if __name__ == "__main__":
    server.run()
