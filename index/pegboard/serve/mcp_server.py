"""The gateway's MCP server: `search_tools`, `call_tool`, and the tools that a session sees."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard import __version__
from pegboard.errors import PegboardError, QueryError
from pegboard.records import Tool
from pegboard.serve.access import Client
from pegboard.serve.calls.confirm import AskFirst, Confirmation
from pegboard.serve.calls.results import error_result
from pegboard.serve.connections import RequestShare
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_errors import ApiError, error_of, unexpected
from pegboard.serve.listing import listed_tools
from pegboard.serve.mcp_tools import CALL_TOOL, SEARCH_AGENTS, SEARCH_TOOLS, object_schema
from pegboard.serve.observer import Found
from pegboard.serve.sessions import Session
from pegboard.servers.connection import Report
from pegboard.tokens import estimate_tokens

INSTRUCTIONS = (
    "Many tools are available here, and only a few are listed. Ask search_tools for what you need "
    "in plain words, then call what it found with call_tool."
)
SESSION_HEADER, SESSION_META = "pegboard-session", "pegboard/session"
"""By which a client of the protocol since 2026-07-28, which has no sessions, names one."""
CONTEXT_HEADER, CONTEXT_META = "pegboard-context", "pegboard/context"
"""By which a client tells `tools/list` what it is about."""

Context = Any
"""`ServerRequestContext`, whose type arguments are of no use here."""
Handler = Callable[[Any, Any], Awaitable[Any]]

log = logging.getLogger("pegboard.serve")


class McpServer(Server[Any]):
    """An MCP server in front of a gateway, for any number of sessions in both protocol eras."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(
            "pegboard",
            version=__version__,
            instructions=INSTRUCTIONS,
            # Headers are checked against the schemas that this client was sent; there are none.
            get_tool_input_schema=lambda _: None,
            on_list_tools=self._guarded(self._list_tools),
            on_call_tool=self._guarded(self._call_tool),
            on_subscriptions_listen=self._listen,
        )
        self.gateway = gateway
        self._share = RequestShare()

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **options: Any
    ) -> InitializationOptions:
        """Announce that `tools/list` may change."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, *args, **options)

    def _guarded(self, handler: Handler) -> Handler:
        """Return a handler that takes so many requests of one client and no more, since those of
        the older protocol go on when their connection has ended; and whose unforeseen errors are
        logged and tell the client nothing, while the SDK sends the messages of some and logs few.
        """

        async def answer(ctx: Context, params: Any) -> Any:
            size = 0 if ctx.request is None else ctx.request.state.size
            try:
                with self._share.of(self._client(ctx), size):
                    return await handler(ctx, params)
            except MCPError:
                raise
            except ApiError as error:
                raise MCPError(INVALID_REQUEST, str(error)) from None
            except Exception:
                log.exception("A request failed.")
                raise MCPError(INTERNAL_ERROR, str(unexpected())) from None

        return answer

    async def _list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        session, context = self._session(ctx), _said(ctx, CONTEXT_HEADER, CONTEXT_META)
        try:
            tools = await listed_tools(self.gateway, session, context)
        except PegboardError as error:
            code = INVALID_PARAMS if isinstance(error, QueryError) else INTERNAL_ERROR
            raise MCPError(code, f"The tools cannot be listed: {error_of(error)}") from None
        return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def _call_tool(
        self, ctx: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        session = self._session(ctx)
        arguments: dict[str, Any] = params.arguments or {}
        if params.name == SEARCH_TOOLS:
            return await self._search(session, arguments)
        if params.name == SEARCH_AGENTS:
            return await self._search_agents(session, arguments)
        name: Any = params.name
        if params.name == CALL_TOOL:
            name, arguments = _call_arguments(arguments)
        try:
            tool = await self._tool(session, name)
        except PegboardError as error:
            return error_result(f"The tool was not called: {error_of(error)}")
        confirmation = Confirmation(ctx, params, session.client.name)
        try:
            return await self.gateway.caller.call(
                session.client,
                tool,
                arguments,
                session=session.id,
                confirm=confirmation.confirm,
                report=_progress(ctx),
            )
        except AskFirst as question:
            return question.result

    async def _tool(self, session: Session, name: str) -> Tool:
        """Return the tool that a client calls by a name or id. Raises MCPError without one: in the
        same words, whether there is none or the client may not see it.
        """
        view = await self.gateway.catalogue.view(session.client)
        identity = view.id_of(name)
        moved = session.given.get(name, identity) != identity
        tool = None if moved else await view.tool(name)
        # Decided once more over what will be called: a promotion may have come in between.
        if tool is None or not session.client.permits(tool):
            self.gateway.observers.called(session.client, session.id, "", "unknown", 0.0, 0)
            raise MCPError(
                INVALID_PARAMS, f"Unknown tool: {name!r:.200}. Ask {SEARCH_TOOLS} for one."
            )
        return tool

    async def _search(self, session: Session, arguments: dict[str, Any]) -> CallToolResult:
        serve = self.gateway.settings.serve
        query, k, agent = (
            arguments.get("query"),
            arguments.get("k", serve.k),
            arguments.get("agent"),
        )
        if unknown := [name for name in arguments if name not in ("query", "k", "agent")]:
            return error_result(
                f"{SEARCH_TOOLS} takes query, k and agent alone, and not {unknown[0]!r:.100}."
            )
        if (
            not isinstance(query, str)
            or not isinstance(k, int)
            or isinstance(k, bool)
            or k < 1
            or not isinstance(agent, str | None)
        ):
            return error_result(
                f"{SEARCH_TOOLS} takes query, a text, k, a number from 1 to {serve.max_k}, and "
                "agent, a text."
            )
        where = {"agent": agent} if agent else None
        try:
            found = await self.gateway.finder.find(
                session.client, query, min(k, serve.max_k), session=session.id, where=where
            )
        except PegboardError as error:
            return error_result(f"The search failed: {error_of(error)}")
        names = {found.view.call_name(hit.tool.id): hit.tool.id for hit in found.hits}
        if session.remember(names) and serve.mode == "gateway":
            await session.tell_of_changes()
        return self._search_result(session, found)

    async def _search_agents(self, session: Session, arguments: dict[str, Any]) -> CallToolResult:
        query = arguments.get("query")
        if not isinstance(query, str) or len(arguments) > 1:
            return error_result(f"{SEARCH_AGENTS} takes query, a text, alone.")
        try:
            agents = await self.gateway.finder.find_agents(session.client, query)
        except PegboardError as error:
            return error_result(f"The search failed: {error_of(error)}")
        values: dict[str, Any] = {"agents": agents}
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(text=text)], structured_content=values)

    def _search_result(self, session: Session, found: Found) -> CallToolResult:
        tools = [
            {
                "name": found.view.call_name(hit.tool.id),
                "description": hit.tool.description,
                "inputSchema": object_schema(hit.tool.input_schema),
            }
            for hit in found.hits
        ]
        values: dict[str, Any] = {"tools": tools}
        if found.reason:
            values["note"] = found.reason
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)
        tokens = estimate_tokens(text)
        self.gateway.observers.listed(
            session.client, session.id, len(tools), tokens, found.view.tokens
        )
        return CallToolResult(content=[TextContent(text=text)], structured_content=values)

    async def _listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self._session(ctx).listen(ctx, params)

    def _session(self, ctx: Context) -> Session:
        """Return the session of a request; the client is decided anew for each."""
        session = self.gateway.sessions.get(self._client(ctx), _session_id(ctx))
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            session.peer = ctx.session
        return session

    def _client(self, ctx: Context) -> Client:
        if ctx.request is None:
            return self.gateway.rules.current().named(self.gateway.stdio_client)
        client = self.gateway.client(ctx.request.headers)
        if client is None:
            raise MCPError(INVALID_REQUEST, "The credentials are not known here.")
        return client


def _progress(ctx: Context) -> Report | None:
    """Return what passes a call's progress on to a client that asked for it."""
    token = (ctx.meta or {}).get("progress_token")
    if token is None:
        return None

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await ctx.session.send_progress_notification(
            token, progress, total, message, ctx.request_id
        )

    return report


def _call_arguments(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of the tool that `call_tool` is to call."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    if inner is None:
        inner = {}
    if isinstance(inner, str):  # some models write JSON into the text
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            inner = None
    if not isinstance(name, str) or not isinstance(inner, dict):
        raise MCPError(INVALID_PARAMS, f"{CALL_TOOL} takes name, a text, and arguments, an object.")
    return name, inner


def _session_id(ctx: Context) -> str:
    """Return the id of a request's session, "" for none; ids of both eras cannot meet."""
    if ctx.request is None:
        return "stdio"
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        named = _said(ctx, SESSION_HEADER, SESSION_META)
        return f"named:{named[:200]}" if named else ""
    return ctx.request.headers.get("mcp-session-id", "")


def _said(ctx: Context, header: str, meta: str) -> str:
    """Return what a request says in `_meta` or in a header."""
    said = (ctx.meta or {}).get(meta)
    if not said and ctx.request is not None:
        said = ctx.request.headers.get(header)
    return said if isinstance(said, str) else ""
