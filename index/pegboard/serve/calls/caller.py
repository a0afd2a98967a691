"""Calls of tools: checks, confirmation, limits, and the record of the outcome."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent, ToolListChangedNotification

from pegboard.records import Tool
from pegboard.schemas.for_models import original_arguments
from pegboard.serve.access.clients import Client
from pegboard.serve.access.views import check_callable
from pegboard.serve.calls.arguments import check_arguments
from pegboard.serve.calls.changes import ChangeEvents
from pegboard.serve.calls.confirmation import SEPARATOR, AskFirst
from pegboard.serve.calls.connection import ListChange
from pegboard.serve.calls.openapi import OpenAPICalls
from pegboard.serve.calls.upstreams import OnListChanged, Upstream, configured_upstreams
from pegboard.serve.concurrency import ConcurrencyLimit
from pegboard.serve.errors import CallProblem, Outcome, answer_too_large
from pegboard.serve.metrics import Metrics
from pegboard.serve.settings import GatewaySettings

Confirm = Callable[[Tool, Mapping[str, Any]], Awaitable[str | None]]
"""Asks the user about a call, and returns if the user agrees; see `confirmation.confirm`."""


class Caller:
    """Calls tools, and records each call. `serve.access` decides which tools a client may call.

    Args:
        events: is told when a server says that its list changed; None for nobody.

    Attributes:
        limits: `[serve.calls]`.
        upstreams: the MCP servers by agent.
        on_shared_change: called with an agent when its server, which all clients share, says that
            its prompts or resources changed.
    """

    def __init__(
        self, settings: GatewaySettings, metrics: Metrics, events: ChangeEvents | None = None
    ) -> None:
        self._metrics = metrics
        self.on_shared_change: OnListChanged = lambda agent, change: None
        self._events = events or ChangeEvents(None, "")
        self._concurrency: dict[str, ConcurrencyLimit] = {}
        self._apply(settings)

    def _apply(self, settings: GatewaySettings) -> None:
        serve = settings.serve
        self.limits = serve.calls
        self.upstreams = configured_upstreams(settings, self._list_changed)
        self._events.settings = serve.events
        self._apis = OpenAPICalls(serve.apis, serve.calls)

    def _list_changed(self, agent: str, change: ListChange) -> None:
        if isinstance(change, ToolListChangedNotification):
            self._events.changed(agent)  # clients are not notified: their list is the release's
        else:
            self.on_shared_change(agent, change)

    async def reload(self, settings: GatewaySettings) -> None:
        """Apply other settings. Sessions with unchanged MCP servers stay open."""
        previous_apis = self._apis
        previous_upstreams = self.upstreams
        self._apply(settings)
        closing = [previous_apis.close()]
        for agent, previous in previous_upstreams.items():
            upstream = self.upstreams.get(agent)
            if upstream is not None and upstream.configuration == previous.configuration:
                previous.settings = settings
                self.upstreams[agent] = previous
            else:
                closing.append(previous.close())
        await asyncio.gather(*closing)

    def health(self) -> dict[str, dict[str, str]]:
        """Return the state of each MCP server by agent, as `Upstream.health` does."""
        return {agent: upstream.health() for agent, upstream in self.upstreams.items()}

    def end_idle(self) -> None:
        """Start to end the idle sessions with servers."""
        for upstream in self.upstreams.values():
            upstream.end_idle()

    def call_problem(self, tool: Tool, kind: str) -> str:
        """Return why a tool of the release cannot be called with these settings; "" if it can.

        Args:
            kind: the kind of the tool's agent.
        """
        try:
            check_callable(tool, kind)
            self._upstream_of(tool)
        except CallProblem as problem:
            return str(problem)
        return ""

    def needs_confirmation(self, tool: Tool) -> bool:
        """Whether the user has to agree to a call of a tool."""
        return tool.is_destructive and self.limits.destructive == "confirm"

    async def call(
        self,
        client: Client,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        kind: str = "",
        session: str = "",
        confirm: Confirm | None = None,
    ) -> CallToolResult:
        """Return the result of a call. A failure is a result with `isError`.

        Args:
            kind: the kind of the tool's agent.
            session: the client's session, for servers that have a session for each; "" outside
                one.
            confirm: asks the user about a call that may destroy something.

        Raises:
            AskFirst: the client must ask its user, and repeat the call.
        """
        start = time.perf_counter()
        size = 0
        outcome: Outcome = "failed"
        try:
            result = await self._checked_call(client, session, tool, kind, arguments, confirm)
            # Structured content repeats the content, if there is any.
            excluded = {"structured_content"} if result.content else None
            size = len(result.model_dump_json(exclude=excluded, exclude_none=True))
            if size > self.limits.max_bytes:
                raise answer_too_large(self.limits.max_bytes)
            outcome = "tool_error" if result.is_error else "ok"
        except CallProblem as problem:
            result = CallToolResult(content=[TextContent(text=str(problem))], is_error=True)
            outcome = problem.outcome
        except AskFirst:
            outcome = "unconfirmed"
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            ms = (time.perf_counter() - start) * 1_000
            self._metrics.record_call(client, session, tool.id, outcome, ms, size)
        return result

    async def close(self) -> None:
        """Close the connections to servers and APIs, and end the servers that were started."""
        closing = [upstream.close() for upstream in self.upstreams.values()]
        await asyncio.gather(self._apis.close(), *closing)

    async def _checked_call(
        self,
        client: Client,
        session: str,
        tool: Tool,
        kind: str,
        arguments: Mapping[str, Any],
        confirm: Confirm | None,
    ) -> CallToolResult:
        """Check the arguments, ask the user if necessary, and call within the limits."""
        check_callable(tool, kind)
        upstream = self._upstream_of(tool)
        arguments = original_arguments(tool.input_schema, arguments)
        arguments = check_arguments(tool, arguments)
        agreed_state: str | None = None
        if tool.is_destructive and self.limits.destructive != "allow":
            if self.limits.destructive == "refuse" or confirm is None:
                raise CallProblem("refused", f"{tool.id} may destroy something, and is refused.")
            agreed_state = await confirm(tool, arguments)
        try:
            return await self._limited_call(upstream, client, session, tool, arguments)
        except AskFirst as question:
            if agreed_state:
                state = f"{agreed_state}{SEPARATOR}{question.result.request_state or ''}"
                question.result = question.result.model_copy(update={"request_state": state})
            raise

    async def _limited_call(
        self,
        upstream: Upstream | None,
        client: Client,
        session: str,
        tool: Tool,
        arguments: Mapping[str, Any],
    ) -> CallToolResult:
        """Call within the time limit, and the concurrency limit of the tool's server or API."""
        timeout = self.limits.timeout
        key = tool.agent if upstream is not None else tool.catalog
        limit = self._concurrency.setdefault(key, ConcurrencyLimit(self.limits.concurrency))
        busy = f"Too many calls of {key} are under way, and {tool.id} was not called. Try again."
        async with limit.place(client, timeout, busy):
            try:
                async with asyncio.timeout(timeout):
                    if upstream is not None:
                        return await upstream.call(client.name, session, tool, arguments)
                    return await self._apis.call(tool, arguments)
            except TimeoutError:
                raise CallProblem(
                    "timeout",
                    f"{tool.id} did not answer within {timeout:g} seconds. Whether the call had an "
                    f"effect is not known: check before you repeat it.",
                ) from None

    def _upstream_of(self, tool: Tool) -> Upstream | None:
        """Return the MCP server that runs a tool; None if it is an operation of an API.

        Raises:
            CallProblem: nothing in the settings runs it.
        """
        upstream = self.upstreams.get(tool.agent)
        if upstream is not None:
            return upstream
        if tool.annotations.get("path") and tool.annotations.get("method"):
            self._apis.check(tool)
            return None
        raise CallProblem(
            "refused",
            f"The tool {tool.id} cannot be called: the gateway's pegboard.toml has nothing that "
            f"runs it. The gateway's operator adds its MCP server, [serve.apis], or its catalog "
            f"to [serve] python; the gateway's log says if something is wrong with the catalog.",
        )
