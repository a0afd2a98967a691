"""Find the right few tools for a request, on a board that the Pegboard pipeline published.

    board = pegboard.open("s3://acme/pegboard")
    hits = board.search("convert 30 dollars to yen", k=5)
    tools = pegboard.as_openai_tools(hits)

Importing this costs little: LanceDB and the encoders are loaded when they are first used.
"""

from pegboard.board import Board
from pegboard.board import open_board as open
from pegboard.errors import PegboardError
from pegboard.hits import Hit, as_anthropic_tools, as_mcp_tools, as_openai_tools, call_names
from pegboard.records import Agent, Tool
from pegboard.releases import Channel, Release, ReleaseStore

__all__ = [
    "Agent",
    "Board",
    "Channel",
    "Hit",
    "PegboardError",
    "Release",
    "ReleaseStore",
    "Tool",
    "as_anthropic_tools",
    "as_mcp_tools",
    "as_openai_tools",
    "call_names",
    "open",
]
