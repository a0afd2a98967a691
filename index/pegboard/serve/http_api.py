"""The HTTP API under /v1: find, read and call tools, read agents, dependencies, releases and the
states of servers, and save golden queries; beside it /healthz and /metrics.

Every answer is about what the client may see, since it comes from the client's view of a release.
A tool that is hidden from it and one that does not exist get the same answer.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from mcp_types import InputRequiredResult
from starlette.requests import Request
from starlette.responses import Response

from pegboard import __version__
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries
from pegboard.records import Agent, Edge, Tool
from pegboard.redaction import redact
from pegboard.retrieval.strategies import STRATEGIES
from pegboard.serve import http_models as models
from pegboard.serve.access import TOKEN, Client, bearer_token
from pegboard.serve.calls.confirm import AskFirst
from pegboard.serve.finder import Finder
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_errors import ApiError, error_of, invalid, operators_only
from pegboard.serve.own_tools import HINTS, READ
from pegboard.serve.views import View

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of Prometheus' text format."""

log = logging.getLogger("pegboard.serve")


def _client(request: Request) -> Client:
    return request.state.client


Answer = dict[str, Any]
Asking = Annotated[Client, Depends(_client)]
"""The client that the application recognised."""


class ApiRoute(APIRoute):
    """A route whose errors say what is wrong, where, and the next step."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the handler of a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handle(request)
            except Exception as error:
                response = self.refusal(error_of(error))
            response.headers["Cache-Control"] = "no-store"
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return answer

    def refusal(self, error: ApiError) -> Response:
        """Return an error as the response of this route."""
        return error.response()


class HttpApi:
    """The API's handlers. Each is called with the client that the application recognised."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._releases = gateway, gateway.releases
        self._saving = asyncio.Lock()

    def router(self) -> APIRouter:
        """Return the routes of the API, of the health and of the metrics."""
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", "/healthz", self.health),
            ("GET", "/metrics", self.metrics),
            ("GET", "/v1/status", self.status),
            ("POST", "/v1/find", self.find),
            ("GET", "/v1/tools", self.tools),
            ("GET", "/v1/tools/{id:path}", self.tool),
            ("POST", "/v1/call", self.call),
            ("GET", "/v1/agents", self.agents),
            ("GET", "/v1/releases", self.list_releases),
            ("POST", "/v1/golden", self.save_golden),
            ("GET", "/v1/servers", self.servers),
        ]
        bearer = Depends(HTTPBearer(auto_error=False))
        router = APIRouter(
            route_class=ApiRoute,
            dependencies=[bearer],
            responses={"default": {"model": models.Error}},
        )
        for method, path, handler in routes:
            router.add_api_route(
                path,
                handler,
                methods=[method],
                operation_id=f"{handler.__name__}_{method}".lower(),
                include_in_schema=path.startswith("/v1/"),
            )
        return router

    async def health(self) -> Answer:
        """Return whether the board can be read (`stale` if not), and the number of MCP servers by
        state.
        """
        status = self._gateway.board.status()
        states = [server["state"] for server in self._gateway.caller.upstreams.health().values()]
        return {
            "status": "ok" if status.error is None else "stale",
            "release": status.release,
            "channel": status.channel,
            "age_seconds": round(status.age_seconds, 1),
            "upstreams": Counter(states),
        }

    async def metrics(self, client: Asking) -> Response:
        """Return counts and times for Prometheus, of all clients."""
        _check_operator(client, "Metrics")
        text = self._gateway.observer.metrics(self._gateway.caller.upstreams.health())
        return Response(text, media_type=CONTENT_TYPE)

    async def status(self, client: Asking) -> Answer:
        """Return what the gateway serves, and what this client may do."""
        view = await self._gateway.views.of(client)
        return {
            "version": __version__,
            "channel": self._releases.channel,
            "release": view.release,
            "client": client.name,
            "operator": client.operator,
            "tools": len(view.entries),
            "golden": self._gateway.golden is not None and client.operator,
            "strategies": {name: description for name, (description, _) in STRATEGIES.items()},
        }

    async def find(self, client: Asking, given: models.FindParameters) -> Answer:
        """Return the tools for a request, best first. `probability` is that of at least one fitting
        tool; `reason` says why there are no hits, or why they may not fit. `why` has, for each
        ranking that found a tool, its rank and score there.
        """
        finder = await self._finder(given.release, client)
        if given.strategy not in (None, *STRATEGIES):
            raise invalid(
                f"There is no strategy {given.strategy!r}.", "strategy",
                f"Expected one of {', '.join(STRATEGIES)}.",
            )  # fmt: skip
        options = given.model_dump(include={"strategy", "index", "explain"})
        found = await finder.find(client, given.query, given.k, **options)
        answer = found.result.to_dict()
        for hit, values in zip(found.hits, answer["hits"], strict=True):
            values["agent_name"] = hit.agent.name
            values["call_name"] = found.view.call_name(hit.tool.id)
        shown = {hit.tool.id for hit in found.hits}
        for part in answer["trace"]["parts"]:
            ranks = part.get("ranks", {})
            part["ranks"] = {tool: rank for tool, rank in ranks.items() if tool in shown}
        return {"reason": found.reason, **answer}

    async def tools(
        self, client: Asking, given: Annotated[models.ToolsParameters, Query()]
    ) -> Answer:
        """Return a page of the tools that pass a filter, by id; `next` is null on the last one."""
        view = await self._view(given.release, client)
        words = (given.text or "").casefold().split()
        matching = {
            entry.id
            for entry in view.entries.values()
            if given.agent in (None, entry.agent) and all(word in entry.text for word in words)
        }
        later = sorted(one for one in matching if given.after is None or one > given.after)
        page = later[: given.limit]
        return {
            "release": view.release,
            "total": len(matching),
            "tools": [_row(await self._visible(view, client, one), view) for one in page],
            "next": page[-1] if len(later) > given.limit else None,
        }

    async def tool(
        self, client: Asking, id: str, given: Annotated[models.ReleaseParameters, Query()]
    ) -> Answer:
        """Return one tool with its schemas, its agent, and its dependencies among the tools one may
        see, with the names of those. `cannot_be_called` says why, "" where it can be.
        """
        view = await self._view(given.release, client)
        tool = await self._visible(view, client, id)
        agents = {agent.id: agent for agent in await view.board.list_agents()}
        graph = await view.board.graph()
        needs = _visible_edges(graph.edges_from(tool.id), view)
        needed_by = _visible_edges(graph.edges_to(tool.id), view)
        annotations = {
            name: value
            for name, value in tool.annotations.items()
            if client.operator or name in (*HINTS, *(READ if view.entries[id].is_read else ()))
        }
        return {
            "release": view.release,
            "tool": {
                **_row(tool, view),
                "catalog": tool.catalog,
                "input_schema": tool.input_schema,
                "output_schema": tool.output_schema,
                "annotations": annotations,
                "examples": tool.examples,
                "enrichment": tool.enrichment.to_dict() if tool.enrichment else {},
                "destructive": tool.is_destructive,
                "cannot_be_called": self._gateway.caller.can_call(tool, view.entries[id].kind),
            },
            "agent": _agent(agents[tool.agent]),
            "dependencies": needs,
            "dependents": needed_by,
            "names": {
                one: view.entries[one].name
                for edge in needs + needed_by
                for one in (edge.source, edge.target)
            },
        }

    async def call(
        self, request: Request, client: Asking, given: models.CallParameters
    ) -> Response:
        """Call a tool, and return its result as MCP has it: a failure has `isError`."""
        TOKEN.set(bearer_token(request.headers))
        view = await self._view(given.release, client)
        tool = await self._visible(view, client, view.id_of(given.tool) or given.tool, "tool")

        async def confirm(*_: Any) -> None:
            if not given.confirm:
                raise AskFirst(InputRequiredResult(request_state="confirm"))

        call = self._gateway.caller.call
        try:
            kind = view.entries[tool.id].kind
            result = await call(client, tool, given.arguments, kind=kind, confirm=confirm)
        except AskFirst:
            raise ApiError(
                409, "unconfirmed", f"{tool.id} may destroy something.", "confirm",
                'Repeat the call with "confirm": true if the user agrees.',
            ) from None  # fmt: skip
        return Response(
            result.model_dump_json(by_alias=True, exclude_none=True), media_type="application/json"
        )

    async def agents(
        self, client: Asking, given: Annotated[models.ReleaseParameters, Query()]
    ) -> Answer:
        """Return the agents that have tools which the client may see."""
        view = await self._view(given.release, client)
        tools = Counter(entry.agent for entry in view.entries.values())
        agents = await view.board.list_agents()
        rows = [{**_agent(agent), "tools": tools[agent.id]} for agent in agents if tools[agent.id]]
        return {"release": view.release, "agents": rows}

    async def list_releases(self, client: Asking) -> Answer:
        """Return the releases of the board, newest first; to others than operators the live one."""
        live, rows = await asyncio.to_thread(self._releases.listed)
        return {
            "channel": self._releases.channel,
            "live": live,
            "releases": [row for row in rows if client.operator or row["live"]],
        }

    async def save_golden(
        self, client: Asking, given: models.GoldenParameters, response: Response
    ) -> Answer:
        """Add a request with its right tools to the golden queries; `saved` is false if the file
        has it.
        """
        _check_operator(client, "Golden queries")
        file = self._gateway.golden
        if file is None:
            raise ApiError(
                403, "not_configured", "This gateway saves no golden queries.", "golden",
                'Name a file under [serve] of pegboard.toml: golden = "golden.jsonl".',
            )  # fmt: skip
        view = await self._view(given.release, client)
        tools = dict.fromkeys(given.tools)
        for number, identity in enumerate(tools):
            await self._visible(view, client, identity, f"tools.{number}")
        query = GoldenQuery(redact(given.query), tuple(tools), kind=given.kind or "")
        async with self._saving:
            stored = await asyncio.to_thread(_saved, file, query)
        if stored is not None and set(stored.tools) != set(query.tools):
            visible = ", ".join(identity for identity in stored.tools if identity in view.entries)
            raise ApiError(
                409, "not_saved", "The request is saved with other tools"
                f"{f': {visible}' if visible else ''}.", "golden",
                "Correct its line in the file that [serve] golden names.",
            )  # fmt: skip
        response.status_code = 201 if stored is None else 200
        return {"saved": stored is None, "id": query.id}

    async def servers(self, client: Asking) -> dict[str, dict[str, str]]:
        """Return by agent the state of its MCP server, `idle`, `up` or `failed`, why, and since
        when.
        """
        _check_operator(client, "The states of servers")
        return self._gateway.caller.upstreams.health()

    async def _finder(self, release: str | None, client: Client) -> Finder:
        """Return the finder of a release. Rules are made for the tools of the served one: in
        another, a tool may lack the tag or the agent that hides it.
        """
        live = self._releases.live
        if not client.operator and release is not None:
            served = (await live.views.of(client)).release
            if not served.startswith(release):
                raise operators_only("Releases that are not served")
            return live
        return await self._releases.finder(release)

    async def _view(self, release: str | None, client: Client) -> View:
        finder = await self._finder(release, client)
        return await finder.views.of(client)

    async def _visible(self, view: View, client: Client, identity: str, where: str = "id") -> Tool:
        """Return a tool by its id; a name without one that the client may see is logged."""
        tool = await view.board.tool(identity) if identity in view.entries else None
        if tool is None:
            self._gateway.observer.refused("unknown_tool", identity, client.name)
            raise ApiError(
                404, "not_found", f"There is no tool {identity!r:.200} that you may see.", where,
                "GET /v1/tools lists those there are; ids are percent-encoded in an address.",
            )  # fmt: skip
        return tool


def _check_operator(client: Client, what: str) -> None:
    if not client.operator:
        raise operators_only(what)


def _saved(file: Path, query: GoldenQuery) -> GoldenQuery | None:
    """Return the golden query that a file has for a request; None if it had none, and has now."""
    try:
        data = file.read_bytes() if file.exists() else b""
        for stored in read_queries(file) if data else ():
            if stored.query.split() == query.query.split() and not stored.history:
                return stored
        line = json.dumps(query.to_dict(), ensure_ascii=False) + "\n"
        with file.open("a", encoding="utf-8") as lines:
            lines.write(line if not data or data.endswith(b"\n") else "\n" + line)
    except (ConfigurationError, OSError) as error:
        log.error("A golden query was not saved: %s", error)
        raise ApiError(
            503, "not_saved", "The file of golden queries cannot be read or written.",
            "golden", "The gateway's log says why.",
        ) from error  # fmt: skip
    return None


def _row(tool: Tool, view: View) -> Answer:
    """Return what lists of tools have of a tool."""
    names = ("id", "name", "agent", "description", "tags", "flags")
    return {name: getattr(tool, name) for name in names} | {"call_name": view.call_name(tool.id)}


def _agent(agent: Agent) -> Answer:
    """Return what clients see of an agent."""
    names = ("id", "name", "catalog", "kind", "description")
    return {name: getattr(agent, name) for name in names}


def _visible_edges(edges: Sequence[Edge], view: View) -> list[Edge]:
    return [edge for edge in edges if {edge.source, edge.target} <= view.entries.keys()]
