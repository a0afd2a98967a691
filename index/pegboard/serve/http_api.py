"""The HTTP API under /v1: find tools, read tools, agents, dependencies and releases, and save
golden queries.

Every answer is about what the client may see, since it comes from the client's view of a release.
A tool that is hidden from it and one that does not exist get the same answer.
"""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from pegboard import __version__
from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError, did_you_mean
from pegboard.evaluation.golden import GoldenQuery
from pegboard.hits import Hit
from pegboard.records import Agent, Edge, Tool
from pegboard.redaction import redact
from pegboard.retrieval.found import Trace
from pegboard.retrieval.strategies import STRATEGIES
from pegboard.serve import http_models as models
from pegboard.serve.access import Client
from pegboard.serve.catalogue import Entry, View
from pegboard.serve.finder import Finder
from pegboard.serve.golden_file import OtherTools, add_golden_query
from pegboard.serve.http_errors import ApiError, error_of, invalid, operators_only, unexpected
from pegboard.serve.metrics import CONTENT_TYPE, Metrics
from pegboard.serve.observer import Found
from pegboard.serve.own_tools import HINTS
from pegboard.serve.releases import ServedReleases
from pegboard.serve.tool_texts import ToolTexts

MAX_EDGES = 500
"""Dependencies in one answer."""
MAX_BODY = 65_536
"""Bytes of a request's body."""
SHOWN = 5
"""Problems of one request that the error names."""

log = logging.getLogger("pegboard.serve")


def _client(request: Request) -> Client:
    return request.state.client


Asking = Annotated[Client, Depends(_client)]
"""The client that the application recognised."""


class ApiRoute(APIRoute):
    """A route with bounded bodies, whose errors say what is wrong, where, and the next step."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the handler of a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                _check_repeated(request)
                response = await handle(await _with_bounded_body(request))
            except ApiError as error:
                response = error.response()
            except RequestValidationError as error:
                response = _invalid(self.endpoint, error.errors()).response()
            except HTTPException as error:
                response = invalid(str(error.detail), "body", "Send one JSON object.").response()
            except PegboardError as error:
                response = error_of(error).response()
            except Exception:
                log.exception("%s %s failed.", request.method, request.url.path)
                response = unexpected().response()
            response.headers["Cache-Control"] = "no-store"
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return answer


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

    def router(self) -> APIRouter:
        """Return the routes of the API and of the metrics."""
        bearer = Depends(HTTPBearer(auto_error=False))
        router = APIRouter(route_class=ApiRoute, dependencies=[bearer])

        def add(method: str, path: str, handler: Callable[..., Any], answer: Any = None) -> None:
            router.add_api_route(
                path,
                handler,
                methods=[method],
                response_model=answer,
                operation_id=f"{handler.__name__}_{method}".lower(),
                include_in_schema=answer is not None,
                responses={"default": {"model": models.Error}},
            )

        add("GET", "/v1/status", self.status, models.Status)
        add("GET", "/v1/find", self.find_by_address, models.FindResult)
        add("POST", "/v1/find", self.find, models.FindResult)
        add("GET", "/v1/tools", self.tools, models.ToolPage)
        add("GET", "/v1/tools/{id:path}", self.tool, models.ToolAnswer)
        add("GET", "/v1/agents", self.agents, models.AgentList)
        add("GET", "/v1/releases", self.list_releases, models.ReleaseList)
        add("GET", "/v1/graph", self.graph, models.Graph)
        add("POST", "/v1/golden", self.save_golden, models.Saved)
        if self.metrics is not None:
            add("GET", "/metrics", self.show_metrics)
        return router

    async def status(self, client: Asking) -> Response:
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

    async def find_by_address(
        self, client: Asking, given: Annotated[models.FindParameters, Query()]
    ) -> Response:
        """Return the tools for a request."""
        return await self.find(client, given)

    async def find(self, client: Asking, given: models.FindParameters) -> Response:
        """Return the tools for a request."""
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

    async def tools(
        self, client: Asking, given: Annotated[models.ToolsParameters, Query()]
    ) -> Response:
        """Return a page of the tools that pass a filter, by id."""
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

    async def tool(
        self, client: Asking, id: str, given: Annotated[models.ReleaseParameters, Query()]
    ) -> Response:
        """Return one tool with its schemas, and its dependencies among the tools one may see."""
        view = await self._view(given.release, client)
        tool = await _existing_tool(view, id)
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

    async def agents(
        self, client: Asking, given: Annotated[models.ReleaseParameters, Query()]
    ) -> Response:
        """Return the agents that have tools which the client may see."""
        view = await self._view(given.release, client)
        tools = Counter(entry.agent for entry in view.entries.values())
        agents = [agent for agent in await view.board.list_agents() if tools[agent.id]]
        rows = [{**_agent_values(agent), "tools": tools[agent.id]} for agent in agents]
        return _json({"release": view.release, "agents": rows})

    async def list_releases(self, client: Asking) -> Response:
        """Return the releases of the board, newest first; to others than operators the live one."""
        listed = await self.releases.listed()
        if not client.operator:
            listed["releases"] = [row for row in listed["releases"] if row["live"]]
        return _json(listed)

    async def graph(
        self, client: Asking, given: Annotated[models.GraphParameters, Query()]
    ) -> Response:
        """Return the tools around one, by their dependencies in both directions."""
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

    async def save_golden(self, client: Asking, given: models.GoldenParameters) -> Response:
        """Add a request with its right tools to the golden queries."""
        if not client.operator:
            raise operators_only("Golden queries")
        if self.golden is None:
            raise ApiError(
                403, "not_configured", "This gateway saves no golden queries.", "golden",
                'Name a file under [serve] of pegboard.toml: golden = "golden.jsonl".',
            )  # fmt: skip
        view = await self._view(given.release, client)
        tools = dict.fromkeys(given.tools)
        for number, identity in enumerate(tools):
            await _existing_tool(view, identity, f"tools.{number}")
        query = GoldenQuery(redact(given.query), tuple(tools), kind=given.kind or "")
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

    async def show_metrics(self, client: Asking) -> Response:
        """Return counts and times for Prometheus, of all clients."""
        if not client.operator:
            raise operators_only("Metrics")
        assert self.metrics is not None
        return Response(self.metrics.text({}), media_type=CONTENT_TYPE)

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


def _check_repeated(request: Request) -> None:
    names = Counter(name for name, _ in request.query_params.multi_items())
    if repeated := [name for name, count in names.items() if count > 1]:
        raise invalid(f"{repeated[0]} is given twice.", repeated[0], "Give each parameter once.")


async def _with_bounded_body(request: Request) -> Request:
    """Return the request with its body read, of which no more than the limit is ever held."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise ApiError(
                    413, "too_large", f"The body has more than {MAX_BODY} bytes.", "body",
                    "Shorten it.",
                )  # fmt: skip
    except ClientDisconnect as error:
        raise invalid("The body ended early.", "body", "Send it again.") from error

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return Request(request.scope, receive)


def _invalid(endpoint: Callable[..., Any], problems: Sequence[Mapping[str, Any]]) -> ApiError:
    """Return the error that names what is wrong with the parameters of an operation."""
    annotations = [one.annotation for one in inspect.signature(endpoint).parameters.values()]
    types = [getattr(one, "__origin__", one) for one in annotations]
    names = [
        name
        for one in types
        if inspect.isclass(one) and issubclass(one, BaseModel)
        for name in one.model_fields
    ]
    places = [".".join(str(part) for part in one["loc"][1:]) for one in problems]
    texts = [_problem(place, one, names) for place, one in zip(places, problems, strict=True)]
    return invalid(
        "; ".join(texts[:SHOWN]) + ("; ..." if len(texts) > SHOWN else "."),
        places[0] or "body",
        "Correct it; /openapi.json describes every parameter.",
    )


def _problem(place: str, problem: Mapping[str, Any], names: Sequence[str]) -> str:
    if problem["type"] == "extra_forbidden":
        hint = did_you_mean(place, names).rstrip(".?") or f"; expected {', '.join(names)}"
        return f"{place[:60]}: there is no such parameter{hint}"
    message = str(problem["msg"])
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message


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


def _passes(entry: Entry, given: models.ToolsParameters) -> bool:
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
