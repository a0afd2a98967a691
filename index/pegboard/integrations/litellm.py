"""LiteLLM's proxy: the tools of a request narrowed to those that a board finds for it.

    # hooks.py, beside config.yaml with  litellm_settings: {callbacks: hooks.board_tools}
    board_tools = BoardToolFilter(pegboard.open("s3://acme/pegboard"))

Function tools are matched with the board's by their names; all others, and references to MCP
servers, pass unchanged. Tools found by earlier requests of the conversation stay, in the same
order, so that the provider's prompt cache stays valid.
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
"""Maximum number of a conversation's latest requests that are searched."""

logger = logging.getLogger("pegboard")


class BoardToolFilter(CustomLogger):
    """Narrows the tools of requests before they reach a model.

    A failure of the board is logged and leaves the request unchanged.

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
            names = self._own.search.names()
            board_names = {*names.ids, *(name for _, name, _ in names.tools)}
            functions = {
                name: tool for tool in tools if (name := _function_name(tool)) in board_names
            }
            selected_names = await self._found(queries, functions, _called(messages))
        except PegboardError as error:
            logger.warning("The tools of a request were not narrowed: %s", error)
            return None
        if not functions:
            return None
        unmatched = [tool for tool in tools if _function_name(tool) not in functions]
        data["tools"] = [*unmatched, *(functions[name] for name in selected_names)]
        return data

    async def _found(
        self, queries: Sequence[str], functions: Mapping[str, Any], called: Sequence[str]
    ) -> list[str]:
        """Return the names that the requests find, oldest request first, then those called."""
        if not functions:
            return []
        descriptions = {name: _description(tool) for name, tool in functions.items()}
        found_names = [
            name
            for query in queries
            for name in (await self._own.find_async(query, descriptions)).names
        ]
        called_names = [name for name in called if name in descriptions]
        return list(dict.fromkeys([*found_names, *called_names]))


def _messages(data: Mapping[str, Any]) -> list[Any]:
    messages = data.get("messages") or data.get("input") or []
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [message for message in messages if isinstance(message, Mapping)]


def _requests(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    texts = [_text(message.get("content")) for message in messages if message.get("role") == "user"]
    return [text for text in texts if text.strip()]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [_part(block, "text") for block in _list(content)]
    return " ".join(text for text in texts if isinstance(text, str))


def _called(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tool names that the conversation calls. They must stay declared, since providers
    reject calls of undeclared tools.
    """
    names: list[Any] = []
    for message in messages:
        calls = _list(message.get("tool_calls"))
        names += [_part(_part(call, "function"), "name") for call in calls]
        if message.get("type") == "function_call":
            names.append(message.get("name"))
        names += [
            _part(block, "name")
            for block in _list(message.get("content"))
            if _part(block, "type") == "tool_use"
        ]
    return [name for name in names if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _function_name(tool: Any) -> str | None:
    """Return the name of a function in the format of Chat Completions, Responses or Anthropic; None
    for anything else.
    """
    if not isinstance(tool, dict):
        return None
    nested = tool.get("function")
    name = nested.get("name") if isinstance(nested, dict) else tool.get("name")
    is_function = tool.get("type", "custom") in ("function", "custom")
    return name if is_function and isinstance(name, str) else None


def _description(tool: Mapping[str, Any]) -> str:
    nested = tool.get("function")
    return str((nested if isinstance(nested, Mapping) else tool).get("description") or "")
