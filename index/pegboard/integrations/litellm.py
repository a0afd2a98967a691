"""LiteLLM's proxy: MCP tools of a request narrowed to those that a board finds for it.

    # hooks.py, beside config.yaml with  litellm_settings: {callbacks: hooks.board_tools}
    board_tools = BoardToolFilter(pegboard.open("s3://acme/pegboard"))

Function tools of the board are told by their names; all others pass as they are. A reference to the
proxy's MCP servers keeps its form, and allows only what was found among their tools. What earlier
requests of the conversation found stays, in the same order, so that the provider's prompt cache
holds.
"""
# pyright: basic

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from pegboard.errors import PegboardError
from pegboard.integrations.own_tools import Search, Selected, own_tools

CALL_TYPES = ("completion", "acompletion", "responses", "aresponses", "anthropic_messages")
STATS, NAMES = "pegboard_filter_stats", "pegboard_filter_tools"
HEADERS = {STATS: "x-litellm-semantic-filter", NAMES: "x-litellm-semantic-filter-tools"}
"""Response headers of LiteLLM's own filter, such as `33->5`."""
MAX_HEADER = 1_000
MAX_REQUESTS = 20
"""Requests of a conversation that are searched, the latest ones."""
NOTHING = "pegboard_no_tool_fits"
"""Allowed where nothing is: LiteLLM takes an empty list for all tools."""

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
            narrowed = await self._narrowed(tools, queries, _called(messages), user_api_key_dict)
        except PegboardError as error:
            logger.warning("The tools of a request were not narrowed: %s", error)
            return None
        if narrowed is None:
            return None
        data["tools"], before, names = narrowed
        where = "litellm_metadata" if "litellm_metadata" in data else "metadata"
        data[where] = {
            **(data.get(where) or {}),
            STATS: f"{before}->{len(names)}",
            NAMES: _header(names),
        }
        return data

    async def async_post_call_response_headers_hook(
        self, data: dict[str, Any], user_api_key_dict: Any, response: Any, *_: Any, **__: Any
    ) -> dict[str, str] | None:
        """Return the headers that say how many tools there were and which were kept."""
        metadata = data.get("litellm_metadata") or data.get("metadata") or {}
        headers = {header: metadata[key] for key, header in HEADERS.items() if key in metadata}
        return headers or None

    async def _narrowed(
        self, tools: Sequence[Any], queries: Sequence[str], called: Sequence[str], key: Any
    ) -> tuple[list[Any], int, list[str]] | None:
        """The tools kept, how many there were to narrow, and the names of those kept of them."""
        board = self._own.search.names()
        own = {*board.ids, *(name for _, name, _ in board.tools)}
        functions = {name: tool for tool in tools if (name := _function_name(tool)) in own}
        references = [tool for tool in tools if _is_reference(tool)]
        listed = await _listed(references, key) if references else {}
        if not functions and not listed:
            return None
        descriptions = {name: _description(tool) for name, tool in functions.items()}
        kept = await self._found(queries, descriptions, called) if functions else []
        allowed = await self._found(queries, listed, called) if listed else []
        rest = [
            {**tool, "allowed_tools": allowed or [NOTHING]}
            if listed and _is_reference(tool)
            else tool
            for tool in tools
            if _function_name(tool) not in functions
        ]
        narrowed = [*rest, *(functions[name] for name in kept)]
        return narrowed, len(functions) + len(listed), [*kept, *allowed]

    async def _found(
        self, queries: Sequence[str], held: Mapping[str, str], called: Sequence[str]
    ) -> list[str]:
        """What each request of the conversation finds, oldest first, and what was called."""
        several: list[Selected] = [await self._own.find_async(query, held) for query in queries]
        names = [name for selected in several for name in selected.names]
        return list(dict.fromkeys([*names, *(name for name in called if name in held)]))


async def _listed(references: Sequence[Any], key: Any) -> dict[str, str]:
    """The descriptions of the tools that MCP references mean and the caller may use, by name.

    LiteLLM applies each reference's own `allowed_tools`. Empty if it cannot list them.
    """
    try:
        from litellm.responses.mcp.litellm_proxy_mcp_handler import (
            LiteLLM_Proxy_MCP_Handler as Handler,
        )

        own, _ = await Handler.split_mcp_tools(references)
        tools, _ = await Handler.process_mcp_tools_to_openai_format(
            user_api_key_auth=key, mcp_tools_with_litellm_proxy=own
        )
    except Exception as error:
        logger.warning("MCP tools could not be listed, and are not narrowed: %s", error)
        return {}
    plain = [tool if isinstance(tool, dict) else tool.model_dump() for tool in tools]
    return {name: _description(tool) for tool in plain if (name := _function_name(tool))}


def _is_reference(tool: Any) -> bool:
    """Whether a tool stands for those of the proxy's own MCP servers."""
    if not isinstance(tool, dict) or tool.get("type") != "mcp":
        return False
    return str(tool.get("server_url") or "").startswith("litellm_proxy")


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


def _header(names: Sequence[str]) -> str:
    """The names as one line, cut at a name."""
    line = ""
    for name in names:
        if len(line) + len(name) + 1 > MAX_HEADER:
            break
        line = f"{line},{name}" if line else name
    return line
