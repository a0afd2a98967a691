"""Anthropic's Messages API: a search tool that answers with references, over a board.

    tools = MessagesToolSearch(Discovery(board))
    message = client.messages.create(model=..., tools=tools.tools(), messages=history)
    history += [message_param, {"role": "user", "content": tools.answers(message.content)}]

Only what was found is declared, with `defer_loading` and in order of discovery: such definitions
are no part of the cached prefix, so a board may have any number of tools. `add_to_runner` is the
same for the beta tool runner. Needs no package but the caller's own client.
"""

# pyright: reportMissingImports=false

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pegboard.errors import QueryError
from pegboard.hits import Hit, as_anthropic_tools
from pegboard.integrations.board_search import (
    QUERY_SCHEMA,
    SEARCH_DESCRIPTION,
    SEARCH_TOOL,
    query_of,
)
from pegboard.integrations.discovery import Discovered, Discovery

Call = Callable[[Hit, dict[str, Any]], Any]
"""Calls a tool with arguments, and returns the content of its result."""


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
        self._search = search_definition(description)
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


def search_definition(description: str = SEARCH_DESCRIPTION) -> dict[str, Any]:
    """Return the definition of the search tool, which is never deferred."""
    return {"name": SEARCH_TOOL, "description": description, "input_schema": dict(QUERY_SCHEMA)}


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


def runnable_search(
    discovery: Discovery, call: Call, runner: Callable[[], Any], *, asynchronous: bool = False
) -> Any:
    """Return the search as a tool for `client.beta.messages.tool_runner(tools=[...])`.

    What it finds is added by `runner.add_tools`, in the messages and not in `tools`, so that the
    cached prefix stays as it is. The runner needs `betas=["inline-tools-2026-09-15"]`.

    Args:
        call: calls a found tool; a coroutine function if `asynchronous`.
        runner: returns the runner, which exists only once it has been made with this tool.
        asynchronous: whether the client is an `AsyncAnthropic`.

    Raises:
        ImportError: the package `anthropic` is not installed.
    """
    from anthropic.lib.tools import beta_async_tool, beta_tool

    def load(found: Discovered) -> str:
        added = {name: found.tools[name] for name in (*found.new, *found.changed)}
        runner().add_tools(*_runnables(discovery, added, call, asynchronous))
        return found.text

    definition = search_definition()
    if asynchronous:

        async def search_async(query: str = "") -> str:
            return load(await discovery.search_async(query))

        return beta_async_tool(search_async, **definition)

    def search(query: str = "") -> str:
        return load(discovery.search(query))

    return beta_tool(search, **definition)


def _runnables(
    discovery: Discovery, found: Mapping[str, Hit], call: Call, asynchronous: bool
) -> Sequence[Any]:
    """Found tools as the runner's tools; a call is answered by `call`."""
    from anthropic.lib.tools import beta_async_tool, beta_tool

    def function(name: str) -> Any:
        if asynchronous:

            async def run_async(**arguments: Any) -> Any:
                return await call(_hit(discovery, name), arguments)

            return run_async

        def run(**arguments: Any) -> Any:
            return call(_hit(discovery, name), arguments)

        return run

    make: Any = beta_async_tool if asynchronous else beta_tool
    definitions = as_anthropic_tools(found, discovery.options.descriptions)
    return [make(function(definition["name"]), **definition) for definition in definitions]


def _hit(discovery: Discovery, name: str) -> Hit:
    from anthropic.lib.tools import ToolError

    try:
        return discovery.called(name)
    except QueryError as error:
        raise ToolError(str(error)) from error


def _is_search(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == SEARCH_TOOL


def _query(block: Mapping[str, Any]) -> str:
    return query_of(block.get("input"))


def _fields(block: Any) -> Mapping[str, Any]:
    return block if isinstance(block, Mapping) else block.model_dump()
