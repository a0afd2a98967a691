"""The gateway's MCP server, on FastMCP. Each request is answered from its client's view of the
release, and calls are forwarded to the tools."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import Tool as FastMCPTool
from fastmcp.tools import ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
)
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from pegboard import __version__
from pegboard.serve.calls.confirmation import AskFirst, confirm
from pegboard.serve.errors import invalid_parameters, reported_error
from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.gateway_tools import (
    CALL_TOOL,
    EXPECTED,
    GET_TOOL,
    SEARCH_AGENTS,
    SEARCH_TOOLS,
    CallTool,
    GetTool,
    SearchAgents,
    SearchTools,
    compact_json,
    definition_of,
    listed_tools,
    search_answer,
    search_text,
)
from pegboard.serve.mcp.resources import ResourceProviders
from pegboard.serve.mcp.sessions import Session, Sessions, stated_text
from pegboard.tokens import estimate_tokens

INSTRUCTIONS = (
    f"Many tools are available here, and only a few are listed. Ask {SEARCH_TOOLS} for what you "
    f"need in plain words, then call what it found with {CALL_TOOL}."
)
CONTEXT_HEADER = "pegboard-context"
"""The header with the context of a `tools/list` request: what the client is about to do."""
CONTEXT_META = "pegboard/context"
"""The key in `_meta` with the context of a `tools/list` request, instead of the header."""
CANDIDATES = 3
"""Most tools that are suggested for an unknown name."""


class GatewayServer(FastMCP):
    """The MCP server in front of a gateway.

    Attributes:
        sessions: the sessions of its clients.
    """

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(
            "pegboard",
            INSTRUCTIONS,
            version=__version__,
            dereference_schemas=False,
            mask_error_details=True,
        )
        self.sessions = Sessions(gateway.access)


def mcp_server(gateway: Gateway) -> GatewayServer:
    """Return an MCP server in front of a gateway, for many sessions in both protocol eras."""
    server = GatewayServer(gateway)
    gateway.caller.on_shared_change = server.sessions.tell_soon
    resources = ResourceProviders(server, gateway, server.sessions)
    server.add_middleware(GatewayMiddleware(gateway, server.sessions, resources))
    server.add_completion_handler(resources.complete)

    async def listen(
        context: Any, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await server.sessions.of_request(context).listen(context, params)

    low_level = server._mcp_server  # pyright: ignore[reportPrivateUsage]
    low_level.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen)
    low_level.get_tool_input_schema = _unchecked_headers
    return server


class ListedTool(FastMCPTool):
    """A tool that is listed with a given definition."""

    definition: McpTool

    def to_mcp_tool(self, **_: Any) -> McpTool:
        """Return the definition, without what FastMCP adds."""
        return self.definition


class GatewayMiddleware(Middleware):
    """Answers `tools/list` and `tools/call` for the tools of a board and the gateway's own.
    Unexpected errors of all requests are only written to the log.
    """

    def __init__(self, gateway: Gateway, sessions: Sessions, resources: ResourceProviders) -> None:
        self._gateway = gateway
        self._sessions = sessions
        self._resources = resources

    async def on_request(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Answer a request, with a reported error if it fails."""
        self._resources.add_new()
        try:
            return await call_next(context)
        except (MCPError, NotFoundError):
            raise
        except Exception as error:
            problem = reported_error(error)
            code = INVALID_PARAMS if problem.status == 400 else INTERNAL_ERROR
            raise MCPError(code, str(problem)) from None

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Sequence[FastMCPTool]:
        """Return the tools that a session is sent."""
        session = self._sessions.current()
        request_context = stated_text(get_context().request_context, CONTEXT_HEADER, CONTEXT_META)
        return [
            ListedTool(name=tool.name, parameters=tool.input_schema, definition=tool)
            for tool in await listed_tools(self._gateway, session, request_context)
        ]

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> ToolResult:
        """Answer a call. Unknown names do not get FastMCP's error, but one that suggests tools."""
        name = context.message.name
        arguments = context.message.arguments or {}
        session = self._sessions.current()
        try:
            if name == SEARCH_TOOLS:
                return await self._search(session, SearchTools.model_validate(arguments))
            if name == SEARCH_AGENTS:
                return await self._search_agents(session, SearchAgents.model_validate(arguments))
            if name == GET_TOOL:
                return await self._get_definition(session, GetTool.model_validate(arguments))
            if name == CALL_TOOL:
                request = CallTool.model_validate(arguments)
                return await self._call(session, request.name, request.arguments)
            return await self._call(session, name, arguments)
        except MCPError:
            raise
        except ValidationError as error:
            expected = f"Expected {EXPECTED[name]}." if name in EXPECTED else "Correct it."
            problem = invalid_parameters(error.errors(), expected)
            return _error(f"{name} was not called: {problem}")
        except Exception as error:
            return _error(f"{name:.100} failed: {reported_error(error)}")

    async def _search(self, session: Session, request: SearchTools) -> ToolResult:
        serve = self._gateway.settings.serve
        search = await self._gateway.finder.find(
            session.client,
            request.query,
            min(request.k or serve.k, serve.max_k),
            session=session.id,
            where={"agent": request.agent} if request.agent else None,
            callable_only=True,
        )
        names = {search.view.call_name(hit.tool.id): hit.tool.id for hit in search.result.hits}
        answer = search_answer(search, session.listed or ())
        if session.remember(names) and serve.mode == "gateway":
            await session.tell_of_changes()
        text = search_text(search, serve.results, answer)
        self._gateway.metrics.record_list(
            session.client, session.id, len(names), estimate_tokens(text), search.view.tokens
        )
        # Many clients show a model only the structured content if there is any.
        structured_content = answer if serve.results == "compact" else None
        return ToolResult([TextContent(text=text)], structured_content)

    async def _search_agents(self, session: Session, request: SearchAgents) -> ToolResult:
        agents = await self._gateway.finder.find_agents(session.client, request.query)
        return _result({"agents": agents})

    async def _get_definition(self, session: Session, request: GetTool) -> ToolResult:
        view = await self._gateway.access.view(session.client)
        tool = await view.tool_named(request.name, session.sent_names)
        if tool is None:
            return await self._unknown(session, request.name)
        return _result(definition_of(view, tool))

    async def _call(self, session: Session, name: str, arguments: dict[str, Any]) -> ToolResult:
        view = await self._gateway.access.view(session.client)
        tool = await view.tool_named(name, session.sent_names)
        if tool is None:
            return await self._unknown(session, name)
        try:
            result = await self._gateway.caller.call(
                session.client,
                tool,
                arguments,
                kind=view.entries[tool.id].kind,
                session=session.id,
                confirm=partial(confirm, get_context(), session.client.name),
            )
        except AskFirst as question:
            return InputRequiredToolResult(question.result)
        return ToolResult.from_mcp_result(result)

    async def _unknown(self, session: Session, name: str) -> ToolResult:
        """Return the answer to a name that means no visible tool, with suggestions. The answer is
        the same whether there is no such tool or the client may not see it.
        """
        metrics = self._gateway.metrics
        metrics.record_call(session.client, session.id, "", "unknown", 0.0, 0)
        metrics.record_refusal("unknown_tool", name, session.client.name, session.id)
        view = await self._gateway.access.view(session.client, callable_only=True)
        candidates = view.names.named_in(name)[:CANDIDATES]
        if not candidates and name.strip() and view.entries:
            words = name.replace("_", " ").replace("/", " ")[:200]
            words = words.encode("utf-8", "replace").decode()
            result = await view.board.find(words, CANDIDATES, llm=False)
            candidates = [hit.tool.id for hit in result]
        names = ", ".join(view.call_name(identity) for identity in candidates)
        suggestion = f" Those closest to it: {names}." if names else ""
        return _error(
            f"Unknown tool: {name!r:.200}.{suggestion} Ask {SEARCH_TOOLS} what you need, and call "
            f"what it returns by its name."
        )


def _unchecked_headers(name: str) -> None:
    """Return no schema, so that the SDK checks no headers: sent definitions are not stored."""


def _result(values: dict[str, Any]) -> ToolResult:
    return ToolResult([TextContent(text=compact_json(values))], values)


def _error(message: str) -> ToolResult:
    return ToolResult([TextContent(text=message)], is_error=True)
