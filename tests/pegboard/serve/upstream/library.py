"""An MCP server with resources, templates and prompts, over stdio."""

import os

from fastmcp import FastMCP

SHELF = os.environ.get("SHELF", "")
server = FastMCP("library", instructions="Lends books.")


@server.resource("notes://today")
def today() -> str:
    """What happened today."""
    return f"Nothing was lent from {SHELF}."


@server.resource("books://{isbn}")
def book(isbn: str) -> str:
    """One book."""
    return f"The book {isbn}."


@server.prompt
def summary(topic: str) -> str:
    """Summarise what is known."""
    return f"Summarise {topic} of {SHELF}."


if __name__ == "__main__":
    server.run(show_banner=False)
