"""LiteLLM's proxy: the tools of a request narrowed to those that a board finds for it.

    # hooks.py, beside config.yaml with  litellm_settings: {callbacks: hooks.board_tools}
    board_tools = BoardToolFilter(pegboard.open("s3://acme/pegboard"))

Function tools of the board are told by their names; all others, and references to MCP servers, pass
as they are. What earlier requests of the conversation found stays, in the same order, so that the
provider's prompt cache holds.
"""
# pyright: basic

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from pegboard.errors import PegboardError
from pegboard.integrations.own_tools import Search, own_tools

CALL_TYPES = ("completion", "acompletion", "responses", "aresponses", "anthropic_messages")
MAX_REQUESTS = 20
"""Requests of a conversation that are searched, the latest ones."""

logger = logging.getLogger("pegboard")


class BoardToolFilter(CustomLogger):
    """Narrows the tools of requests before they reach a model.

    A failure of the board leaves a request as it is, and is logged.

    Args:
        search: how to search.
    """

    def __init__(self, search: Search) -> None:
        super().__init__()
        self._own = own_tools(search)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any] | None:
        """Return the request with fewer tools; None if nothing is to be changed."""
        tools = data.get("tools")
        if call_type not in CALL_TYPES or not isinstance(tools, list) or not tools:
            return None
        messages = _messages(data)
        queries = _requests(messages)[-MAX_REQUESTS:]
        if not queries:
            return None
        try:
            board = self._own.search.names()
            own = {*board.ids, *(name for _, name, _ in board.tools)}
            functions = {name: tool for tool in tools if (name := _function_name(tool)) in own}
            kept = await self._found(queries, functions, _called(messages))
        except PegboardError as error:
            logger.warning("The tools of a request were not narrowed: %s", error)
            return None
        if not functions:
            return None
        rest = [tool for tool in tools if _function_name(tool) not in functions]
        data["tools"] = [*rest, *(functions[name] for name in kept)]
        return data

    async def _found(
        self, queries: Sequence[str], functions: Mapping[str, Any], called: Sequence[str]
    ) -> list[str]:
        """What each request of the conversation finds, oldest first, and what was called."""
        held = {name: _description(tool) for name, tool in functions.items()}
        several = [await self._own.find_async(query, held) for query in queries if held]
        names = [name for selected in several for name in selected.names]
        return list(dict.fromkeys([*names, *(name for name in called if name in held)]))


def _messages(data: Mapping[str, Any]) -> list[Any]:
    messages = data.get("messages") or data.get("input") or []
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [message for message in messages if isinstance(message, Mapping)]


def _requests(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    texts = [_text(each.get("content")) for each in messages if each.get("role") == "user"]
    return [text for text in texts if text.strip()]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [_part(block, "text") for block in _list(content)]
    return " ".join(text for text in texts if isinstance(text, str))


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names that the conversation calls: providers refuse calls of tools that are not declared."""
    names: list[Any] = []
    for each in messages:
        names += [_part(_part(call, "function"), "name") for call in _list(each.get("tool_calls"))]
        if each.get("type") == "function_call":
            names.append(each.get("name"))
        names += [
            _part(block, "name")
            for block in _list(each.get("content"))
            if _part(block, "type") == "tool_use"
        ]
    return [name for name in names if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _function_name(tool: Any) -> str | None:
    """The name of a function, as Chat Completions, Responses and Anthropic take it; else None."""
    if not isinstance(tool, dict):
        return None
    nested = tool.get("function")
    name = nested.get("name") if isinstance(nested, dict) else tool.get("name")
    plain = tool.get("type", "custom") in ("function", "custom")
    return name if plain and isinstance(name, str) else None


def _description(tool: Mapping[str, Any]) -> str:
    nested = tool.get("function")
    return str((nested if isinstance(nested, Mapping) else tool).get("description") or "")
