"""An MCP server with resources, templates and prompts, over stdio."""

import os

from fastmcp import Context, FastMCP
from mcp_types import PromptListChangedNotification

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
async def summary(topic: str, ctx: Context) -> str:
    """Summarise what is known."""
    await ctx.send_notification(PromptListChangedNotification())
    return f"Summarise {topic} of {SHELF}."


def complete(ref, argument, context):
    name = ref.name if ref.type == "ref/prompt" else ref.uri
    year = context.arguments["year"] if context else "any year"
    return [f"{argument.value}a for {argument.name} of {name} in {year}", SHELF]


if __name__ == "__main__":
    if SHELF:
        server.add_completion_handler(complete)
    server.run(show_banner=False)
