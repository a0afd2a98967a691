"""LangChain and LangGraph: an agent's tools, searched on a board.

agent = create_agent(model, middleware=[BoardToolsMiddleware(board, tools)])
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from pegboard.errors import did_you_mean
from pegboard.integrations.board_search import (
    QUERY_DESCRIPTION,
    SEARCH_DESCRIPTION,
    SEARCH_TOOL,
    Selected,
)
from pegboard.integrations.own_tools import Search, own_tools


def _appended(earlier: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*(earlier or ()), *(new or ())]))


class FoundTools(AgentState[Any]):
    """The state of an agent with the names of the tools that it found, in order of discovery."""

    found_tools: NotRequired[Annotated[list[str], _appended]]


class BoardToolsMiddleware(AgentMiddleware):
    """Shows a model the tools that its conversation found on a board, and a tool that finds others.

    The names of the tools found are part of the agent's state: conversations share nothing, and a
    checkpointer stores them. Pass `tools` here and not to `create_agent`.

    Args:
        search: how to search.
        tools: the tools that may be found, with unique names.
    """

    state_schema = FoundTools

    def __init__(self, search: Search, tools: Sequence[BaseTool]) -> None:
        super().__init__()
        self._own = own_tools(search)
        self._held = {tool.name: tool for tool in tools}
        self._descriptions = {tool.name: tool.description for tool in tools}
        self.tools = [self._search_tool()]

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """Call the model with the agent's own tools, then those found, in order of discovery."""
        return handler(self._with_found(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Do what `wrap_model_call` does."""
        return await handler(self._with_found(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a tool that was found; other tools of the agent run as without this middleware."""
        run = self._runnable(request)
        return run if isinstance(run, ToolMessage) else handler(run)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do what `wrap_tool_call` does."""
        run = self._runnable(request)
        return run if isinstance(run, ToolMessage) else await handler(run)

    def _with_found(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        tools = [self._held[name] for name in self._found(request.state)]
        return request.override(tools=[*request.tools, *tools])

    def _found(self, state: Any) -> list[str]:
        """Return the names found, except those of a stored conversation that no longer exist."""
        return [name for name in state.get("found_tools") or () if name in self._held]

    def _runnable(self, request: Any) -> Any:
        call = request.tool_call
        name = call["name"]
        found_names = self._found(request.state)
        if request.tool is not None and name not in self._held:
            return request
        if name in found_names:
            return request.override(tool=self._held[name])
        text = (
            f"No tool of this conversation is called {name!r:.80}"
            f"{did_you_mean(name, found_names)}. Search for it first."
        )
        return ToolMessage(text, tool_call_id=call["id"], name=name, status="error")

    def _search_tool(self) -> BaseTool:
        def search_tools(query: Annotated[str, QUERY_DESCRIPTION], runtime: ToolRuntime) -> Any:
            return _update(self._own.find(query, self._descriptions), runtime.tool_call_id)

        async def search_async(
            query: Annotated[str, QUERY_DESCRIPTION], runtime: ToolRuntime
        ) -> Any:
            selected = await self._own.find_async(query, self._descriptions)
            return _update(selected, runtime.tool_call_id)

        return StructuredTool.from_function(
            func=search_tools,
            coroutine=search_async,
            name=SEARCH_TOOL,
            description=SEARCH_DESCRIPTION,
        )


def _update(selected: Selected, call: str | None) -> Command[Any]:
    message = ToolMessage(selected.text, tool_call_id=call or "", name=SEARCH_TOOL)
    return Command(update={"found_tools": list(selected.names), "messages": [message]})
