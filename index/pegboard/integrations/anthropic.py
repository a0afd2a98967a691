"""Anthropic's Messages API: a search tool that answers with references, over a board.

    tools = MessagesToolSearch(Discovery(board))
    message = client.messages.create(model=..., tools=tools.tools(), messages=history)
    history += [message_param, {"role": "user", "content": tools.answers(message.content)}]

Only found tools are declared, with `defer_loading` and in order of discovery: such definitions are
not part of the cached prefix, so a board may have any number of tools. Needs no package except the
caller's own client.
"""

from collections.abc import Mapping
from typing import Any

from pegboard.hits import as_anthropic_tools
from pegboard.integrations.board_search import (
    QUERY_SCHEMA,
    SEARCH_DESCRIPTION,
    SEARCH_TOOL,
    Selected,
)
from pegboard.integrations.discovery import ProviderToolSearch


class MessagesToolSearch(ProviderToolSearch):
    """Declares the tools that one conversation found, and answers its searches.

    Args:
        discovery: the tools that the conversation found.
    """

    _arguments = "input"

    def tools(self) -> list[dict[str, Any]]:
        """Return the entries of `tools`: the search, then all found tools as deferred ones.

        The search may have a `cache_control`, and deferred tools must have none.
        """
        search = {
            "name": SEARCH_TOOL,
            "description": SEARCH_DESCRIPTION,
            "input_schema": dict(QUERY_SCHEMA),
        }
        tools = as_anthropic_tools(self.discovery.found, self.discovery.options.descriptions)
        return [search, *({**tool, "defer_loading": True} for tool in tools)]

    def _is_search(self, item: Mapping[str, Any]) -> bool:
        return item.get("type") == "tool_use" and item.get("name") == SEARCH_TOOL

    def _answer(self, item: Mapping[str, Any], selected: Selected) -> list[dict[str, Any]]:
        references = [{"type": "tool_reference", "tool_name": name} for name in selected.names]
        content = references or [{"type": "text", "text": selected.reason}]
        return [{"type": "tool_result", "tool_use_id": item["id"], "content": content}]
