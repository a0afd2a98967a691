"""Resources and prompts of the MCP servers behind the gateway, by FastMCP's proxy.

Tools come from the release instead. Names and addresses begin with the name of the server, as in
`desk_summary` and `file://desk/notes`."""

from typing import Any

from fastmcp import FastMCP
from fastmcp.client import Client as FastMCPClient
from fastmcp.server.completions import CompletionReference
from fastmcp.server.providers.proxy import ProxyProvider
from fastmcp.tools import Tool as FastMCPTool
from fastmcp.utilities.versions import VersionSpec
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, Completion, CompletionArgument, CompletionContext

from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.sessions import Sessions


class ServerResources(ProxyProvider):
    """The resources and prompts of one MCP server, for the clients that may see its agent. Lists
    are not cached, since other clients may not see them, or have a session of their own.
    """

    def __init__(self, gateway: Gateway, sessions: Sessions, agent: str) -> None:
        super().__init__(self._connected, cache_ttl=0)
        self.agent = agent
        self._gateway = gateway
        self._sessions = sessions

    async def _connected(self) -> FastMCPClient[Any]:
        """Return a client of the server.

        Raises:
            MCPError: the gateway's client may not see the server. The error is that of a server
                without resources or prompts, whose list FastMCP takes as empty.
        """
        session = self._sessions.current()
        if not await self._gateway.access.sees_agent(session.client, self.agent):
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        upstream = self._gateway.caller.upstreams[self.agent]
        async with upstream.connection(session.client.name, session.id) as connection:
            return connection.client

    async def _list_tools(self) -> list[FastMCPTool]:
        return []  # FastMCP asks every provider for tools

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> None:
        return None


class ResourceProviders:
    """Adds a provider to the gateway's MCP server for each MCP server of the configuration."""

    def __init__(self, server: FastMCP, gateway: Gateway, sessions: Sessions) -> None:
        self._server = server
        self._gateway = gateway
        self._sessions = sessions
        self._agents: dict[str, str] = {}
        """The agents with a provider, by the prefix of their names."""

    async def complete(
        self,
        ref: CompletionReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """Return the suggestions of a server for an argument of a prompt or template; None if it
        has no suggestions. FastMCP asks only about those that the client may see.
        """
        name = ref.name if ref.type == "ref/prompt" else ref.uri
        target: Any = await self._server._completion_target(ref.type, name)  # pyright: ignore[reportPrivateUsage]
        if ref.type == "ref/prompt":
            server_ref = ref.model_copy(update={"name": target._backend_name})
        else:
            server_ref = ref.model_copy(update={"uri": target._backend_uri_template})
        client = await target._get_client()
        other_arguments = context and context.arguments
        try:
            return await client.complete(server_ref, argument.model_dump(), other_arguments)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return None

    def add_new(self) -> None:
        """Add providers for servers that the configuration has and the MCP server has not."""
        for agent, upstream in self._gateway.caller.upstreams.items():
            if upstream.has_functions or agent in self._agents.values():
                continue
            catalog, _, name = agent.partition("/")
            if name in self._agents:
                name = f"{catalog}_{name}"
            self._agents[name] = agent
            provider = ServerResources(self._gateway, self._sessions, agent)
            self._server.add_provider(provider, namespace=name)
