"""From a tool and its arguments to the result of the real thing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from mcp_types import CallToolResult

from pegboard.records import READ_KINDS, Tool, agent_id, tool_id
from pegboard.serve.access import Client
from pegboard.serve.calls.arguments import check_arguments
from pegboard.serve.calls.confirm import SEPARATOR, AskFirst
from pegboard.serve.calls.openapi import OpenAPICalls
from pegboard.serve.calls.results import CallProblem, error_result, too_large
from pegboard.serve.calls.turns import Turns
from pegboard.serve.calls.upstreams import configured_upstreams
from pegboard.serve.observer import Observer, Outcome
from pegboard.serve.settings import GatewaySettings

Confirm = Callable[[Tool, Mapping[str, Any]], Awaitable[str | None]]
"""Returns if the user agrees to a call; see `pegboard.serve.calls.confirm`."""


class Caller:
    """Calls tools, and tells the observer of each call. Callers check what a client may call."""

    def __init__(self, settings: GatewaySettings, observer: Observer) -> None:
        self.observer = observer
        self._turns: dict[str, Turns] = {}
        self._set(settings)

    def _set(self, settings: GatewaySettings) -> None:
        serve = settings.serve
        self.limits = serve.calls
        self.upstreams = configured_upstreams(settings)
        self._apis = OpenAPICalls(serve.apis, serve.calls)

    async def reload(self, settings: GatewaySettings) -> None:
        """Take other settings; sessions with MCP servers that did not change go on."""
        apis, upstreams = self._apis, self.upstreams
        self._set(settings)
        ended = [apis.close()]
        for agent, upstream in upstreams.items():
            new = self.upstreams.get(agent)
            if new is not None and new.configuration == upstream.configuration:
                upstream.settings = settings
                self.upstreams[agent] = upstream
            else:
                ended.append(upstream.close())
        await asyncio.gather(*ended)

    def health(self) -> dict[str, dict[str, str]]:
        """Return by agent the state of its server, as `Upstream.health`."""
        return {agent: upstream.health() for agent, upstream in self.upstreams.items()}

    def end_idle(self) -> None:
        """Begin to end the sessions with servers that nobody uses."""
        for upstream in self.upstreams.values():
            upstream.end_idle()

    def can_call(self, tool: Tool, kind: str = "") -> str:
        """Return why a tool of the release cannot be called with these settings; "" if it can.

        Args:
            kind: of its agent.
        """
        try:
            self._route("", "", tool, kind, {})
        except CallProblem as problem:
            return str(problem)
        return ""

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
        """Return the result of a call; a failure is a result with `isError`.

        Args:
            kind: of the tool's agent.
            session: the client's, "" for none: servers have a session of their own for each.
            confirm: asks the user about a call that may destroy something.

        Raises:
            AskFirst: as `confirm` does.
        """
        start, size = time.perf_counter(), 0
        outcome: Outcome = "failed"
        try:
            result = await self._guarded(client, session, tool, kind, arguments, confirm)
            repeated = {"structured_content"} if result.content else None  # else all there is
            size = len(result.model_dump_json(exclude=repeated, exclude_none=True))
            if size > self.limits.max_bytes:
                raise CallProblem("too_large", too_large(self.limits.max_bytes))
            outcome = "tool_error" if result.is_error else "ok"
        except CallProblem as problem:
            result, outcome = error_result(str(problem)), problem.outcome
        except AskFirst:
            outcome = "unconfirmed"
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            ms = (time.perf_counter() - start) * 1_000
            self.observer.called(client, session, tool.id, outcome, ms, size)
        return result

    async def close(self) -> None:
        """End the servers that were started."""
        upstreams = (upstream.close() for upstream in self.upstreams.values())
        await asyncio.gather(self._apis.close(), *upstreams)

    async def _guarded(
        self,
        client: Client,
        session: str,
        tool: Tool,
        kind: str,
        arguments: Mapping[str, Any],
        confirm: Confirm | None,
    ) -> CallToolResult:
        """Check the arguments, ask the user if need be, and call within the time limit."""
        limit = self.limits.timeout
        place, call = self._route(client.name, session, tool, kind, arguments)
        check_arguments(tool, arguments)
        agreed: str | None = None
        if tool.is_destructive and self.limits.destructive != "allow":
            if self.limits.destructive == "refuse" or confirm is None:
                raise CallProblem("refused", f"{tool.id} may destroy something, and is refused.")
            agreed = await confirm(tool, arguments)
        turns = self._turns.setdefault(place, Turns(self.limits.concurrency))
        busy = f"Too many calls of {place} are under way, and {tool.id} was not called. Try again."
        async with turns.of(client, limit, busy):
            try:
                async with asyncio.timeout(limit):
                    return await call()
            except AskFirst as question:
                if agreed:
                    state = f"{agreed}{SEPARATOR}{question.result.request_state or ''}"
                    question.result = question.result.model_copy(update={"request_state": state})
                raise
            except TimeoutError:
                raise CallProblem(
                    "timeout",
                    f"{tool.id} did not answer within {limit:g} seconds. Whether the call had an "
                    f"effect is not known: check before you repeat it.",
                ) from None

    def _route(
        self, client: str, session: str, tool: Tool, kind: str, arguments: Mapping[str, Any]
    ) -> tuple[str, Callable[[], Awaitable[CallToolResult]]]:
        """Return whose turns a call takes, a server's by its agent or a catalog's, and the call."""
        if kind in READ_KINDS:
            raise CallProblem(
                "refused",
                f"{tool.id} is a {kind}, which is not called. Read it with get_tool, and follow "
                f"it.",
            )
        # Rules decide by the id: it has to be that of what is called.
        of_agent = tool.id == tool_id(tool.agent, tool.name)
        if not of_agent or not tool.agent.startswith(agent_id(tool.catalog, "")):
            raise CallProblem("refused", f"{tool.id} is not the id of its catalog, agent and name.")
        if (upstream := self.upstreams.get(tool.agent)) is not None:
            return tool.agent, partial(upstream.call, client, session, tool, arguments)
        if tool.annotations.get("path") and tool.annotations.get("method"):
            self._apis.check(tool)
            return tool.catalog, partial(self._apis.call, tool, arguments)
        raise CallProblem(
            "refused",
            f"The tool {tool.id} cannot be called: the gateway's pegboard.toml has nothing that "
            f"runs it. The gateway's operator adds its MCP server, [serve.apis], or its catalog "
            f"to [serve] python; the gateway's log says if something is wrong with the catalog.",
        )
