"""Anthropic's Messages API: a search tool that answers with references, over a board.

    tools = MessagesToolSearch(Discovery(board))
    message = client.messages.create(model=..., tools=tools.tools(), messages=history)
    history += [message_param, {"role": "user", "content": tools.answers(message.content)}]

Only what was found is declared, with `defer_loading` and in order of discovery: such definitions
are no part of the cached prefix, so a board may have any number of tools. Needs no package but the
caller's own client.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.hits import Hit, as_anthropic_tools
from pegboard.integrations.board_search import (
    QUERY_SCHEMA,
    SEARCH_DESCRIPTION,
    SEARCH_TOOL,
    query_of,
)
from pegboard.integrations.discovery import Discovered, Discovery


class MessagesToolSearch:
    """Declares the found tools of one conversation, and answers its searches.

    Args:
        discovery: of the conversation.
        description: of the search, for the model.
        cache_control: of the search tool, the last one in the cached prefix if it is sent last of
            the tools that are not deferred. Deferred tools must have none.
    """

    def __init__(
        self,
        discovery: Discovery,
        *,
        description: str = SEARCH_DESCRIPTION,
        cache_control: Mapping[str, Any] | None = None,
    ) -> None:
        self.discovery = discovery
        self._search: dict[str, Any] = {
            "name": SEARCH_TOOL,
            "description": description,
            "input_schema": dict(QUERY_SCHEMA),
        }
        if cache_control is not None:
            self._search["cache_control"] = dict(cache_control)

    def tools(self) -> list[dict[str, Any]]:
        """Return the entries of `tools`: the search, then all found tools as deferred ones."""
        found = as_anthropic_tools(self.discovery.found, self.discovery.options.descriptions)
        return [dict(self._search), *({**tool, "defer_loading": True} for tool in found)]

    def answers(self, content: Iterable[Any]) -> list[dict[str, Any]]:
        """Return a `tool_result` block for every search among a message's content blocks."""
        return [
            answer(block["id"], self.discovery.search(_query(block)))
            for block in map(_fields, content)
            if _is_search(block)
        ]

    async def answers_async(self, content: Iterable[Any]) -> list[dict[str, Any]]:
        """Return what `answers` does; the event loop goes on meanwhile."""
        return [
            answer(block["id"], await self.discovery.search_async(_query(block)))
            for block in map(_fields, content)
            if _is_search(block)
        ]

    def called(self, block: Any) -> Hit:
        """Return the tool that a `tool_use` block calls. Raises as `Discovery.called` does."""
        return self.discovery.called(str(_fields(block).get("name", "")))


def answer(tool_use_id: str, found: Discovered) -> dict[str, Any]:
    """Return the result of a search: references, or a text that says why there are none."""
    content: list[dict[str, Any]] = [
        {"type": "tool_reference", "tool_name": name} for name in found.tools
    ]
    return {
        "type": "tool_result",
        "tool_use_id": tool_use_id,
        "content": content or [{"type": "text", "text": found.reason}],
    }


def _is_search(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == SEARCH_TOOL


def _query(block: Mapping[str, Any]) -> str:
    return query_of(block.get("input"))


def _fields(block: Any) -> Mapping[str, Any]:
    return block if isinstance(block, Mapping) else block.model_dump()
