"""The gateway's MCP server, on FastMCP: each request is answered from its client's view of the
release, and calls go to the real tools."""

from collections.abc import Awaitable, Callable, Sequence
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
from pegboard.records import Tool
from pegboard.serve.calls.confirm import AskFirst, confirm
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_errors import error_of, invalid_parameters
from pegboard.serve.own_tools import (
    CALL_TOOL,
    GET_TOOL,
    SEARCH_AGENTS,
    SEARCH_TOOLS,
    CallTool,
    GetTool,
    OwnArguments,
    SearchAgents,
    SearchTools,
    compact_json,
    definition_of,
    listed_tools,
    search_answer,
    search_text,
)
from pegboard.serve.sessions import Session, client_of, current_session, stated_text
from pegboard.serve.upstream_provider import UpstreamServers
from pegboard.serve.views import View
from pegboard.tokens import estimate_tokens

INSTRUCTIONS = (
    f"Many tools are available here, and only a few are listed. Ask {SEARCH_TOOLS} for what you "
    f"need in plain words, then call what it found with {CALL_TOOL}."
)
CONTEXT_HEADER, CONTEXT_META = "pegboard-context", "pegboard/context"
"""By which a client tells `tools/list` what it is about."""
CANDIDATES = 3
"""Tools that are named in place of an unknown one."""


def mcp_server(gateway: Gateway) -> FastMCP:
    """Return an MCP server in front of a gateway, for many sessions in both protocol eras."""
    server = FastMCP(
        "pegboard",
        INSTRUCTIONS,
        version=__version__,
        dereference_schemas=False,
        mask_error_details=True,
    )
    servers = UpstreamServers(server, gateway)
    server.add_middleware(GatewayMiddleware(gateway, servers))
    server.add_completion_handler(servers.complete)

    async def listen(
        ctx: Any, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await gateway.sessions.of_request(client_of(gateway, ctx), ctx).listen(ctx, params)

    low_level = server._mcp_server  # pyright: ignore[reportPrivateUsage]
    low_level.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen)
    low_level.get_tool_input_schema = _unchecked_headers
    return server


class ListedTool(FastMCPTool):
    """A tool that is listed as `definition` says."""

    definition: McpTool

    def to_mcp_tool(self, **_: Any) -> McpTool:
        """Return the definition, without what FastMCP adds."""
        return self.definition


class GatewayMiddleware(Middleware):
    """Answers `tools/list` and `tools/call`: the tools of a board, and the gateway's own. It keeps
    unforeseen errors of all requests to the log.
    """

    def __init__(self, gateway: Gateway, servers: UpstreamServers) -> None:
        self._gateway, self._servers = gateway, servers
        self._own: dict[str, tuple[type[OwnArguments], Callable[..., Awaitable[ToolResult]]]] = {
            SEARCH_TOOLS: (SearchTools, self._search),
            CALL_TOOL: (CallTool, self._call_tool),
            SEARCH_AGENTS: (SearchAgents, self._search_agents),
            GET_TOOL: (GetTool, self._get_definition),
        }

    async def on_request(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Answer a request."""
        self._servers.add_new()
        try:
            return await call_next(context)
        except (MCPError, NotFoundError):
            raise
        except Exception as error:
            problem = error_of(error)
            code = INVALID_PARAMS if problem.status == 400 else INTERNAL_ERROR
            raise MCPError(code, str(problem)) from None

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Sequence[FastMCPTool]:
        """Return the tools that a session is sent."""
        session = current_session(self._gateway)
        about = stated_text(get_context().request_context, CONTEXT_HEADER, CONTEXT_META)
        return [
            ListedTool(name=tool.name, parameters=tool.input_schema, definition=tool)
            for tool in await listed_tools(self._gateway, session, about)
        ]

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> ToolResult:
        """Answer a call. Whether there is such a tool is decided here: the answer names others."""
        name, arguments = context.message.name, context.message.arguments or {}
        session = current_session(self._gateway)
        try:
            if name not in self._own:
                return await self._call(session, name, arguments)
            model, own = self._own[name]
            return await own(session, model.model_validate(arguments))
        except MCPError:
            raise
        except ValidationError as error:
            problem = invalid_parameters(error.errors(), "Correct it.")
            return _error(f"{name} was not called: {problem}")
        except Exception as error:
            return _error(f"{name:.100} failed: {error_of(error)}")

    async def _search(self, session: Session, given: SearchTools) -> ToolResult:
        serve = self._gateway.settings.serve
        found = await self._gateway.finder.find(
            session.client,
            given.query,
            min(given.k or serve.k, serve.max_k),
            session=session.id,
            where={"agent": given.agent} if given.agent else None,
            callable_only=True,
        )
        names = {found.view.call_name(hit.tool.id): hit.tool.id for hit in found.result.hits}
        answer = search_answer(found, session.listed or ())
        if session.remember(names) and serve.mode == "gateway":
            await session.tell_of_changes()
        text = search_text(found, serve.results, answer)
        self._gateway.observer.listed(
            session.client, session.id, len(names), estimate_tokens(text), found.view.tokens
        )
        # Beside structured content, many clients show a model nothing else.
        whole = answer if serve.results == "compact" else None
        return ToolResult([TextContent(text=text)], whole)

    async def _search_agents(self, session: Session, given: SearchAgents) -> ToolResult:
        agents = await self._gateway.finder.find_agents(session.client, given.query)
        return _result({"agents": agents})

    async def _get_definition(self, session: Session, given: GetTool) -> ToolResult:
        view, tool = await self._tool(session, given.name)
        if tool is None:
            return await self._unknown(session, given.name)
        return _result(definition_of(view, tool))

    async def _call_tool(self, session: Session, given: CallTool) -> ToolResult:
        return await self._call(session, given.name, given.arguments)

    async def _call(self, session: Session, name: str, arguments: dict[str, Any]) -> ToolResult:
        view, tool = await self._tool(session, name)
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

    async def _tool(self, session: Session, name: str) -> tuple[View, Tool | None]:
        """Return the client's view, and the tool that it means by a name or id; None without one,
        and for a name that has come to mean another tool than the session was given.
        """
        view = await self._gateway.views.of(session.client)
        identity = view.id_of(name)
        if identity is None or session.given.get(name, identity) != identity:
            return view, None
        tool = await view.board.tool(identity)
        # Decided once more over what will be called: a promotion may have come in between.
        return view, tool if tool is not None and session.client.permits(tool) else None

    async def _unknown(self, session: Session, name: str) -> ToolResult:
        """Return the answer to a name without a tool, which names others: in the same words,
        whether there is no such tool or the client may not see it.
        """
        observer = self._gateway.observer
        observer.called(session.client, session.id, "", "unknown", 0.0, 0)
        observer.refused("unknown_tool", name, session.client.name, session.id)
        view = await self._gateway.views.of(session.client, callable_only=True)
        candidates = view.names.named_in(name)[:CANDIDATES]
        if not candidates and name.strip() and view.entries:
            words = name.replace("_", " ").replace("/", " ")[:200]
            words = words.encode("utf-8", "replace").decode()
            result = await view.board.find(words, CANDIDATES, llm=False)
            candidates = [hit.tool.id for hit in result]
        names = ", ".join(view.call_name(one) for one in candidates)
        close = f" Those closest to it: {names}." if names else ""
        return _error(
            f"Unknown tool: {name!r:.200}.{close} Ask {SEARCH_TOOLS} what you need, and call what "
            f"it returns by its name."
        )


def _unchecked_headers(name: str) -> None:
    """Say that headers are not checked against schemas: what a client was sent is not kept."""


def _result(values: dict[str, Any]) -> ToolResult:
    return ToolResult([TextContent(text=compact_json(values))], values)


def _error(message: str) -> ToolResult:
    return ToolResult([TextContent(text=message)], is_error=True)
