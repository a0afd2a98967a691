"""From a tool and its arguments to the result of the real thing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from mcp_types import CallToolResult

from pegboard.records import Tool, agent_id, tool_id
from pegboard.serve.access import Client
from pegboard.serve.calls.arguments import MAX_WORKERS, ArgumentCheck
from pegboard.serve.calls.confirm import AskFirst, is_destructive
from pegboard.serve.calls.mcp_servers import McpServers
from pegboard.serve.calls.openapi import OpenAPICalls
from pegboard.serve.calls.python import PythonCalls
from pegboard.serve.calls.results import CallProblem, error_result, sendable
from pegboard.serve.calls.turns import Turns
from pegboard.serve.observer import Observers, Outcome
from pegboard.serve.settings import GatewaySettings
from pegboard.servers.connection import Report

Confirm = Callable[[Tool, Mapping[str, Any]], Awaitable[None]]
"""Returns if the user agrees to a call; see `Confirmation.confirm`."""


class Caller:
    """Calls tools, and reports each call to the observers. Callers check what a client may call."""

    def __init__(self, settings: GatewaySettings, observers: Observers) -> None:
        serve, catalogs, base = settings.serve, settings.catalogs, settings.base
        self.observers, self.limits = observers, serve.calls
        self._check = ArgumentCheck()
        self._servers = McpServers(catalogs, base, serve.calls)
        self._apis = OpenAPICalls(serve.apis, serve.calls)
        self._python = PythonCalls(catalogs, serve.python, base, serve.calls)
        self._checks = Turns(MAX_WORKERS)
        self._turns: dict[str, Turns] = {}

    async def call(
        self,
        client: Client,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        session: str = "",
        confirm: Confirm | None = None,
        report: Report | None = None,
    ) -> CallToolResult:
        """Return the result of a call; a failure is a result with `isError`.

        Args:
            session: for the observers.
            confirm: asks the user about a call that may destroy something.
            report: is told of the call's progress.

        Raises:
            AskFirst: as `confirm` does.
        """
        start, size = time.perf_counter(), 0
        outcome: Outcome = "failed"
        try:
            result = await self._guarded(client, tool, arguments, confirm, report)
            outcome = "tool_error" if result.is_error else "ok"
            size = _size(result)
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
            self.observers.called(client, session, tool.id, outcome, ms, size)
        return sendable(result)

    async def close(self) -> None:
        """End the servers that were started."""
        await self._check.close()
        await self._servers.close()
        await self._apis.close()
        self._python.close()

    async def _guarded(
        self,
        client: Client,
        tool: Tool,
        arguments: Mapping[str, Any],
        confirm: Confirm | None,
        report: Report | None,
    ) -> CallToolResult:
        """Check the arguments, ask the user if need be, and call within the time limit."""
        limit = self.limits.timeout
        busy = f"The gateway is busy, and {tool.id} was not called. Try again later."
        async with self._checks.of(client, limit, busy):
            try:
                async with asyncio.timeout(limit):
                    await self._check.check(tool, arguments)
            except TimeoutError:
                raise CallProblem("timeout", busy) from None
        if is_destructive(tool) and self.limits.destructive != "allow":
            if self.limits.destructive == "refuse" or confirm is None:
                raise CallProblem("refused", f"{tool.id} may destroy something, and is refused.")
            await confirm(tool, arguments)
        place, call = self._route(tool, arguments, report)
        turns = self._turns.setdefault(place, Turns(self.limits.concurrency))
        busy = f"Too many calls of {place} are under way, and {tool.id} was not called. Try again."
        async with turns.of(client, limit, busy):
            try:
                async with asyncio.timeout(limit):
                    return await call()
            except TimeoutError:
                raise CallProblem(
                    "timeout",
                    f"{tool.id} did not answer within {limit:g} seconds. Whether the call had an "
                    f"effect is not known: check before you repeat it.",
                ) from None

    def _route(
        self, tool: Tool, arguments: Mapping[str, Any], report: Report | None
    ) -> tuple[str, Callable[[], Awaitable[CallToolResult]]]:
        """Return whose turns a call takes, a server's by its agent or a catalog's, and the call."""
        if not _is_consistent(tool):
            raise CallProblem("refused", f"The release contradicts itself about {tool.id}.")
        if self._servers.serves(tool.agent):
            return tool.agent, partial(self._servers.call, tool, arguments, report)
        if tool.annotations.get("path") and tool.annotations.get("method"):
            return tool.catalog, partial(self._apis.call, tool, arguments)
        if self._python.serves(tool.catalog):
            return tool.catalog, partial(self._python.call, tool, arguments)
        raise CallProblem(
            "refused",
            f"The tool {tool.id} cannot be called: the gateway's pegboard.toml has nothing that "
            f"runs it. Whoever runs the gateway adds its MCP server, [serve.apis], or its catalog "
            f"to [serve] python; the gateway's log says if something is wrong with the catalog.",
        )


def _is_consistent(tool: Tool) -> bool:
    """Whether the id, by which rules decide, is that of what would be called."""
    of_agent = tool.id == tool_id(tool.agent, tool.name)
    return of_agent and tool.agent.startswith(agent_id(tool.catalog, ""))


def _size(result: CallToolResult) -> int:
    """Return the characters of a result's contents, about its bytes."""
    return sum(
        len(getattr(content, "text", "") or getattr(content, "data", "") or "")
        for content in result.content
    )
