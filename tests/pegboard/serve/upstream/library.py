"""An MCP server with resources, templates, prompts and completion, over stdio."""

from fastmcp import FastMCP
from mcp_types import PromptReference

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


@server.completion
def complete(reference, argument, context):
    if isinstance(reference, PromptReference) and reference.name == "summary":
        return [topic for topic in ("history", "hiking") if topic.startswith(argument.value)]
    return None


if __name__ == "__main__":
    server.run(show_banner=False)
