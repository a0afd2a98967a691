"""Find the right few tools for a request, on a board that the Pegboard pipeline published.

    board = pegboard.open("s3://acme/pegboard")
    hits = board.find("convert 30 dollars to yen", k=5)
    tools = pegboard.as_openai_tools(hits)

Importing this costs next to nothing: every name is loaded when it is first used, LanceDB's core and
the encoders later still."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.async_board import AsyncBoard
    from pegboard.board import Board
    from pegboard.errors import PegboardError
    from pegboard.hits import (
        Hit,
        as_anthropic_tools,
        as_gemini_tools,
        as_mcp_tools,
        as_openai_tools,
        as_responses_tools,
        as_toon,
        call_names,
    )
    from pegboard.opening import open_board as open
    from pegboard.opening import open_board_async as open_async
    from pegboard.records import Agent, Edge, Enrichment, Tool
    from pegboard.retrieval.found import AgentHit, AgentResult, EntityResult, FindResult
    from pegboard.retrieval.strategy import Strategy
    from pegboard.search.follower import BoardStatus
    from pegboard.store.releases import Channel, Release, ReleaseStore

__version__ = "0.1.0"
"""The version of `pegboard` and of `pegboard-pipeline`: both pyproject.toml read it here."""

__all__ = [
    "Agent", "AgentHit", "AgentResult", "AsyncBoard", "Board", "BoardStatus", "Channel", "Edge",
    "Enrichment", "EntityResult", "FindResult", "Hit", "PegboardError", "Release", "ReleaseStore",
    "Strategy", "Tool", "as_anthropic_tools", "as_gemini_tools", "as_mcp_tools",
    "as_openai_tools", "as_responses_tools", "as_toon", "call_names", "open", "open_async",
]  # fmt: skip
_HOMES = {
    "async_board": "AsyncBoard",
    "board": "Board",
    "errors": "PegboardError",
    "hits": "Hit as_anthropic_tools as_gemini_tools as_mcp_tools as_openai_tools "
    "as_responses_tools as_toon call_names",
    "records": "Agent Edge Enrichment Tool",
    "retrieval.found": "AgentHit AgentResult EntityResult FindResult",
    "retrieval.strategy": "Strategy",
    "search.follower": "BoardStatus",
    "store.releases": "Channel Release ReleaseStore",
}
_PLACES = {
    "open": ("opening", "open_board"),
    "open_async": ("opening", "open_board_async"),
    **{name: (module, name) for module, names in _HOMES.items() for name in names.split()},
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'pegboard' has no attribute '{name}'")
    module, attribute = _PLACES[name]
    value = globals()[name] = getattr(import_module(f"pegboard.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
