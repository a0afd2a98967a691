"""An MCP server with resources, templates and prompts, over stdio."""

from fastmcp import FastMCP

server = FastMCP("library", instructions="Lends books.")


@server.resource("notes://today")
def today() -> str:
    """What happened today."""
    return "Nothing was lent."


@server.resource("books://{isbn}")
def book(isbn: str) -> str:
    """One book."""
    return f"The book {isbn}."


@server.prompt
def summary(topic: str) -> str:
    """Summarise what is known."""
    return f"Summarise {topic}."


if __name__ == "__main__":
    server.run(show_banner=False)
