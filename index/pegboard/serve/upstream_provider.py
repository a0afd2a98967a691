"""Resources and prompts of the MCP servers behind the gateway, by FastMCP's proxy.

Tools do not come from here: the release has them. Names and addresses begin with the server's, as
`desk_summary` and `file://desk/notes`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastmcp import FastMCP
from fastmcp.client import Client as FastMCPClient
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.providers.proxy import ProxyProvider
from fastmcp.tools import Tool as FastMCPTool
from fastmcp.utilities.versions import VersionSpec

from pegboard.records import Tool, tool_id
from pegboard.redaction import redact_line
from pegboard.serve.access import Client
from pegboard.serve.gateway import Gateway
from pegboard.serve.sessions import current_session

LIST_SECONDS = 30.0
"""For a server to start and to list what it has; one that takes longer is left out of the list."""
Component = TypeVar("Component")
Listed = Callable[[], Awaitable[Sequence[Component]]]

log = logging.getLogger("pegboard.serve")


class UpstreamProvider(ProxyProvider):
    """The resources and prompts of one MCP server, for the clients that may see its agent."""

    def __init__(self, gateway: Gateway, agent: str) -> None:
        super().__init__(self._connected)
        self.agent = agent
        self._gateway = gateway

    async def _connected(self) -> FastMCPClient[Any]:
        session = current_session(self._gateway)
        upstreams = self._gateway.caller.upstreams
        return await upstreams.client(self.agent, session.client.name, session.id)

    async def allowed(self) -> bool:
        """Whether the client may see a tool of the agent, or the agent if it has no tools."""
        client = current_session(self._gateway).client
        _, entries = await self._gateway.views.entries()
        own = [entry for entry in entries.values() if entry.agent == self.agent]
        return any(map(client.permits, own)) if own else _permits_agent(client, self.agent)

    async def _list_tools(self) -> Sequence[FastMCPTool]:
        return []  # FastMCP asks, for those that have a page of their own

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> None:
        return None

    async def _list_resources(self) -> Sequence[Resource]:
        return await self._listed(super()._list_resources)

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        return await super()._get_resource(uri, version) if await self.allowed() else None

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return await self._listed(super()._list_resource_templates)

    async def _get_resource_template(
        self, uri: str, version: VersionSpec | None = None
    ) -> ResourceTemplate | None:
        return await super()._get_resource_template(uri, version) if await self.allowed() else None

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._listed(super()._list_prompts)

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:
        return await super()._get_prompt(name, version) if await self.allowed() else None

    async def _listed(self, listed: Listed[Component]) -> Sequence[Component]:
        """Return a server's list; none of one that fails, so that it costs no other its own."""
        if not await self.allowed():
            return []
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return await listed()
        except Exception as error:
            why = redact_line(str(error) or type(error).__name__, 300)
            log.warning("The MCP server '%s' does not list what it has: %s", self.agent, why)
            return []


class UpstreamServers:
    """Adds a provider to the gateway's MCP server for each MCP server of the configuration."""

    def __init__(self, server: FastMCP, gateway: Gateway) -> None:
        self._server, self._gateway = server, gateway
        self._agents: dict[str, str] = {}

    def add_new(self) -> None:
        """Add those that the configuration has got since."""
        for agent in self._gateway.caller.upstreams.relayed():
            if agent in self._agents.values():
                continue
            catalog, _, name = agent.partition("/")
            name = name if name not in self._agents else f"{catalog}_{name}"
            self._agents[name] = agent
            self._server.add_provider(UpstreamProvider(self._gateway, agent), namespace=name)


def _permits_agent(client: Client, agent: str) -> bool:
    catalog = agent.partition("/")[0]
    return client.permits(Tool(tool_id(agent, "-"), catalog, agent, "-"))
