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


@server.prompt()
def explain(city: str, tone: str = "dry") -> str:
    """Explain the weather of a city."""
    return f"Why does it rain in {city}? Be {tone}."


@server.resource("desk://stations", mime_type="text/csv")
def stations() -> str:
    """The stations that measure."""
    return "Oslo,Bergen"


@server.resource("desk://years/{year}/{month}")
def months(year: str, month: str) -> str:
    """The means of a month."""
    return f"{year}-{month}"


@server.resource("skill://packing/SKILL.md")
def packing() -> str:
    """What to pack."""
    return "---\nname: packing\ndescription: Packs for the weather.\n---\nTake a coat."


if __name__ == "__main__":
    server.run()
