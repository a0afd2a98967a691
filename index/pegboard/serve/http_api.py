"""The HTTP API under /v1: find tools, read tools, agents, dependencies and releases, and save
golden queries.

Every answer is about what the client may see, since it comes from the client's view of a release.
A tool that is hidden from it and one that does not exist get the same answer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from pegboard import __version__
from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError, did_you_mean
from pegboard.evaluation.golden import GoldenQuery
from pegboard.hits import Hit
from pegboard.records import Agent, Edge, Tool
from pegboard.redaction import redact
from pegboard.retrieval.found import Trace
from pegboard.retrieval.strategies import STRATEGIES
from pegboard.serve.access import Client
from pegboard.serve.catalogue import Entry, View
from pegboard.serve.finder import Finder, Found
from pegboard.serve.golden_file import OtherTools, add_golden_query
from pegboard.serve.http_description import describe
from pegboard.serve.http_errors import ApiError, error_of, invalid, operators_only, unexpected
from pegboard.serve.http_requests import (
    FindParameters,
    GoldenParameters,
    GraphParameters,
    ReleaseParameters,
    ToolsParameters,
    body_parameters,
    query_parameters,
)
from pegboard.serve.mcp_tools import HINTS
from pegboard.serve.metrics import CONTENT_TYPE, Metrics
from pegboard.serve.releases import ServedReleases
from pegboard.serve.tool_texts import ToolTexts

MAX_EDGES = 500
"""Dependencies in one answer."""

log = logging.getLogger("pegboard.serve")
Handler = Callable[[Request, Client], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class HttpApi:
    """The API's handlers. Each is called with the client that the application recognised.

    Attributes:
        golden: the file to which golden queries are added; None if they cannot be saved.
        metrics: None where they are not kept.
    """

    releases: ServedReleases
    golden: Path | None = None
    metrics: Metrics | None = None
    texts: ToolTexts = field(default_factory=ToolTexts)

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the API, its description and the metrics."""
        handlers: list[tuple[str, str, Handler]] = [
            ("GET", "/v1/status", self.status),
            ("GET", "/v1/find", self.find),
            ("POST", "/v1/find", self.find),
            ("GET", "/v1/tools", self.tools),
            ("GET", "/v1/tools/{id:path}", self.tool),
            ("GET", "/v1/agents", self.agents),
            ("GET", "/v1/releases", self.list_releases),
            ("GET", "/v1/graph", self.graph),
            ("POST", "/v1/golden", self.save_golden),
        ]
        if self.metrics is not None:
            handlers.append(("GET", "/metrics", self.show_metrics))
        routes: list[BaseRoute] = [
            Route(path, self._endpoint(handler), methods=[method])
            for method, path, handler in handlers
        ]
        return [*routes, Route("/openapi.json", _openapi, methods=["GET"])]

    async def status(self, request: Request, client: Client) -> Response:
        """Return what the gateway serves, and what this client may do."""
        view = await self.releases.live.catalogue.view(client)
        return _json(
            {
                "version": __version__,
                "channel": self.releases.channel,
                "release": view.release,
                "client": client.name,
                "operator": client.operator,
                "tools": len(view.entries),
                "golden": self.golden is not None and client.operator,
                "strategies": {name: description for name, (description, _) in STRATEGIES.items()},
            }
        )

    async def find(self, request: Request, client: Client) -> Response:
        """Return the tools for a request."""
        given = (
            await body_parameters(request, FindParameters)
            if request.method == "POST"
            else query_parameters(request, FindParameters)
        )
        finder = await self._finder(given.release, client)
        if given.strategy is not None and given.strategy not in STRATEGIES:
            raise invalid(
                f"There is no strategy {given.strategy!r}{did_you_mean(given.strategy, STRATEGIES)}"
                .rstrip("?") + ".", "strategy", f"Expected one of {', '.join(STRATEGIES)}.",
            )  # fmt: skip
        if given.index is not None:
            await _existing_index(await finder.catalogue.view(client), given.index)
        found = await finder.find(
            client,
            given.query,
            given.k,
            strategy=given.strategy,
            index=given.index,
            explain=given.explain,
        )
        return _json(_found_values(found))

    async def tools(self, request: Request, client: Client) -> Response:
        """Return a page of the tools that pass a filter, by id."""
        given = query_parameters(request, ToolsParameters)
        view = await self._view(given.release, client)
        matching = {entry.id for entry in view.entries.values() if _passes(entry, given)}
        if given.text:
            matching &= await self.texts.containing(view, given.text)
        later = [one for one in sorted(matching) if given.after is None or one > given.after]
        page, rest = later[: given.limit], later[given.limit :]
        rows = await _tools_of(view, page)
        return _json(
            {
                "release": view.release,
                "total": len(matching),
                "tools": [_tool_row(tool, view) for tool in rows],
                "next": page[-1] if rest else None,
            }
        )

    async def tool(self, request: Request, client: Client) -> Response:
        """Return one tool with its schemas, and its dependencies among the tools one may see."""
        given = query_parameters(request, ReleaseParameters)
        view = await self._view(given.release, client)
        tool = await _existing_tool(view, request.path_params["id"])
        agents = {agent.id: agent for agent in await view.board.list_agents()}
        graph = await view.board.graph()
        return _json(
            {
                "release": view.release,
                "tool": _tool_values(tool, view, client),
                "agent": _agent_values(agents[tool.agent]),
                "dependencies": _edges(graph.edges_from(tool.id), view),
                "dependents": _edges(graph.edges_to(tool.id), view),
            }
        )

    async def agents(self, request: Request, client: Client) -> Response:
        """Return the agents that have tools which the client may see."""
        given = query_parameters(request, ReleaseParameters)
        view = await self._view(given.release, client)
        tools = Counter(entry.agent for entry in view.entries.values())
        agents = [agent for agent in await view.board.list_agents() if tools[agent.id]]
        rows = [{**_agent_values(agent), "tools": tools[agent.id]} for agent in agents]
        return _json({"release": view.release, "agents": rows})

    async def list_releases(self, request: Request, client: Client) -> Response:
        """Return the releases of the board, newest first; to others than operators the live one."""
        listed = await self.releases.listed()
        if not client.operator:
            listed["releases"] = [row for row in listed["releases"] if row["live"]]
        return _json(listed)

    async def graph(self, request: Request, client: Client) -> Response:
        """Return the tools around one, by their dependencies in both directions."""
        given = query_parameters(request, GraphParameters)
        view = await self._view(given.release, client)
        middle = await _existing_tool(view, given.tool)
        graph = await view.board.graph()
        nodes, edges = {middle.id: 0}, dict[Edge, None]()
        for distance in range(1, given.depth + 1):
            for one in [one for one, place in nodes.items() if place == distance - 1]:
                for edge in (*graph.edges_from(one), *graph.edges_to(one)):
                    if {edge.source, edge.target} <= view.entries.keys() and len(edges) < MAX_EDGES:
                        edges[edge] = None
                        nodes.setdefault(edge.source, distance)
                        nodes.setdefault(edge.target, distance)
        return _json(
            {
                "release": view.release,
                "tool": middle.id,
                "nodes": [
                    {"id": one, "name": view.entries[one].name, "agent": view.entries[one].agent,
                     "distance": distance}
                    for one, distance in nodes.items()
                ],
                "edges": [asdict(edge) for edge in edges],
                "complete": len(edges) < MAX_EDGES,
            }
        )  # fmt: skip

    async def save_golden(self, request: Request, client: Client) -> Response:
        """Add a request with its right tools to the golden queries."""
        if not client.operator:
            raise operators_only("Golden queries")
        given = await body_parameters(request, GoldenParameters)
        if self.golden is None:
            raise ApiError(
                403, "not_configured", "This gateway saves no golden queries.", "golden",
                'Name a file under [serve] of pegboard.toml: golden = "golden.jsonl".',
            )  # fmt: skip
        view = await self._view(given.release, client)
        tools = dict.fromkeys(given.tools)
        for number, identity in enumerate(tools):
            await _existing_tool(view, identity, f"tools.{number}")
        query = GoldenQuery(redact(given.query.strip()), tuple(tools), kind=given.kind or "")
        try:
            saved = await asyncio.to_thread(add_golden_query, self.golden, query)
        except OtherTools as error:
            visible = ", ".join(one for one in error.tools if one in view.entries)
            raise ApiError(
                409, "not_saved", "The request is saved with other tools"
                f"{f': {visible}' if visible else ''}.", "golden",
                "Correct its line in the file that [serve] golden names.",
            ) from error  # fmt: skip
        except ConfigurationError as error:
            log.error("A golden query was not saved: %s", error)
            raise ApiError(
                503, "not_saved", "The file of golden queries cannot be read or written.",
                "golden", "The gateway's log says why.",
            ) from error  # fmt: skip
        return _json({"saved": saved, "id": query.id}, 201 if saved else 200)

    async def show_metrics(self, request: Request, client: Client) -> Response:
        """Return counts and times for Prometheus, of all clients."""
        if not client.operator:
            raise operators_only("Metrics")
        assert self.metrics is not None
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    async def _finder(self, release: str | None, client: Client) -> Finder:
        """Return the finder of a release. Rules are made for the tools of the served one: in
        another, a tool may lack the tag or the agent that hides it.
        """
        live = self.releases.live
        if not client.operator and release is not None:
            served = (await live.catalogue.view(client)).release
            if not served.startswith(release):
                raise operators_only("Releases that are not served")
            return live
        try:
            return await self.releases.finder(release)
        except BoardNotFound as error:
            raise ApiError(
                404, "not_found", f"No release, or several, have an id that begins {release!r}.",
                "release", "GET /v1/releases lists the newest.",
            ) from error  # fmt: skip

    async def _view(self, release: str | None, client: Client) -> View:
        finder = await self._finder(release, client)
        return await finder.catalogue.view(client)

    def _endpoint(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                response = await handler(request, request.state.client)
            except ApiError as error:
                response = error.response()
            except PegboardError as error:
                response = error_of(error).response()
            except Exception:
                log.exception("%s %s failed.", request.method, request.url.path)
                response = unexpected().response()
            response.headers["Cache-Control"] = "no-store"
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return endpoint


async def _openapi(request: Request) -> Response:
    return JSONResponse(describe())


def _json(values: Any, status: int = 200) -> JSONResponse:
    return JSONResponse(values, status)


async def _existing_tool(view: View, identity: str, where: str = "id") -> Tool:
    tool = await view.board.tool(identity) if identity in view.entries else None
    if tool is None:
        raise ApiError(
            404, "not_found", f"There is no tool {identity!r:.200} that you may see.", where,
            "GET /v1/tools lists those there are; ids are percent-encoded in an address.",
        )  # fmt: skip
    return tool


async def _existing_index(view: View, name: str) -> None:
    indexes = sorted((await view.board.release()).manifest["indexes"])
    if name not in indexes:
        raise ApiError(
            404, "not_found", f"The release {view.release} has no index {name!r}.", "index",
            f"Expected one of {', '.join(indexes)}.",
        )  # fmt: skip


async def _tools_of(view: View, ids: Sequence[str]) -> list[Tool]:
    tools = [await view.board.tool(identity) for identity in ids]
    return [tool for tool in tools if tool is not None]


def _passes(entry: Entry, given: ToolsParameters) -> bool:
    return (
        (given.agent is None or entry.agent == given.agent)
        and (given.catalog is None or entry.catalog == given.catalog)
        and (given.tag is None or given.tag in entry.tags)
    )


def _found_values(found: Found) -> dict[str, Any]:
    hits = found.hits
    return {
        **found.result.to_dict(),
        "reason": found.reason,
        "hits": [_hit_values(hit, found.view) for hit in hits],
        "trace": _trace_values(found.result.trace, {hit.tool.id for hit in hits}),
    }


def _hit_values(hit: Hit, view: View) -> dict[str, Any]:
    return {
        **hit.to_dict(),
        "agent_name": hit.agent.name,
        "call_name": view.call_name(hit.tool.id),
    }


def _trace_values(trace: Trace, shown: set[str]) -> dict[str, Any]:
    """The trace with the ranks of the hits alone."""
    values = trace.to_dict()
    for part in values["parts"]:
        ranks = {tool: rank for tool, rank in part.pop("ranks", {}).items() if tool in shown}
        if ranks:
            part["ranks"] = ranks
    return values


def _tool_row(tool: Tool, view: View) -> dict[str, Any]:
    return {
        "id": tool.id,
        "name": tool.name,
        "call_name": view.call_name(tool.id),
        "agent": tool.agent,
        "description": tool.description,
        "tags": list(tool.tags),
        "flags": list(tool.flags),
    }


def _tool_values(tool: Tool, view: View, client: Client) -> dict[str, Any]:
    annotations = {
        key: value for key, value in tool.annotations.items() if client.operator or key in HINTS
    }
    values = {
        **_tool_row(tool, view),
        "catalog": tool.catalog,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": annotations,
        "examples": list(tool.examples),
    }
    if tool.enrichment:
        values["enrichment"] = tool.enrichment.to_dict()
    return values


def _agent_values(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "name": agent.name,
        "catalog": agent.catalog,
        "kind": agent.kind,
        "description": agent.description,
    }


def _edges(edges: Sequence[Edge], view: View) -> list[dict[str, Any]]:
    visible = [edge for edge in edges if {edge.source, edge.target} <= view.entries.keys()]
    return [asdict(edge) for edge in visible[:MAX_EDGES]]
