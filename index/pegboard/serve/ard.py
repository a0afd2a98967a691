"""Agentic Resource Discovery (https://agenticresourcediscovery.org, v0.91): the board's agents as
entries that a registry or an orchestrator finds, all of them called through this gateway's MCP.

`/.well-known/ard.json` without credentials names the registry and the MCP endpoint alone; a client
gets the agents that it may see. There is no federation: only the board's own agents are found.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pegboard import __version__
from pegboard.records import Agent, Tool
from pegboard.serve.access import Client
from pegboard.serve.finder import MAX_QUERY
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_api import ApiRoute, Asking
from pegboard.serve.http_errors import ApiError
from pegboard.serve.http_models import Parameters
from pegboard.serve.views import View

CARD, REGISTRY = "application/mcp-server-card+json", "application/ai-registry+json"
MAX_QUERIES = 5
"""Requests that an entry has as examples."""
MAX_HITS = 100
"""Tools that one search looks at."""
Filter = Literal["identifier", "displayName", "type", "tags", "capabilities"]


class ArdQuery(Parameters):
    """What is needed, and what an entry has to have: one of the values of each filter."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
    filter: dict[Filter, list[str] | str] = Field(default_factory=dict[Filter, list[str] | str])


class SearchRequest(BaseModel):
    """A search. How to federate it, and pages after the first, are not supported."""

    query: ArdQuery
    pageSize: Annotated[int, Field(ge=1, le=100)] = 10  # noqa: N815


class ArdRoute(ApiRoute):
    """A route whose errors are ARD's."""

    def refusal(self, error: ApiError) -> Response:
        """Return an error as the response of this route."""
        code = "INVALID_ARGUMENT" if error.status == 400 else "INTERNAL_ERROR"
        return JSONResponse({"errorCode": code, "message": str(error)}, error.status)


class ArdRegistry:
    """The registry's handlers."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def router(self) -> APIRouter:
        """Return the routes of the manifest and of the registry."""
        router = APIRouter(route_class=ArdRoute, include_in_schema=False)
        router.add_api_route("/.well-known/ard.json", self.manifest, response_model=None)
        router.add_api_route("/search", self.search, methods=["POST"], response_model=None)
        return router

    async def manifest(self, request: Request) -> dict[str, Any]:
        """Return the registry, and the agents that the client may see."""
        client: Client | None = request.state.client
        base, publisher = self._address(request)
        registry = {
            "identifier": f"urn:air:{publisher}:registry:pegboard",
            "displayName": "Pegboard",
            "type": REGISTRY,
            "url": f"{base}/",
            "description": "Finds tools of MCP servers, APIs and libraries for a request.",
        }
        entries = [registry]
        if client is not None:
            view = await self._gateway.views.of(client)
            tools = await view.board.list_tools()
            for agent in await view.board.list_agents():
                own = [tool for tool in tools if tool.agent == agent.id]
                entries.append(self._entry(request, view, agent, own))
        return {"specVersion": "1.0", "host": {"displayName": "Pegboard"}, "entries": entries}

    async def search(
        self, request: Request, client: Asking, given: SearchRequest
    ) -> dict[str, Any]:
        """Return the agents whose tools fit a request, each with its fitting tools: the score is
        the probability of the best of them in percent.
        """
        view = await self._gateway.views.of(client)
        agents = await view.board.list_agents()
        entries = {agent.id: self._entry(request, view, agent) for agent in agents}
        filters = given.query.filter
        ids = [one for one, entry in entries.items() if _passes(entry, filters)]
        if not ids:
            return {"results": []}
        where = {"agent": ids} if filters else None
        found = await self._gateway.finder.find(client, given.query.text, MAX_HITS, where=where)
        results: dict[str, dict[str, Any]] = {}
        source = f"{self._address(request)[0]}/"
        for hit in found.hits:
            likely = hit.score if hit.probability is None else hit.probability
            score = round(100 * min(1.0, max(0.0, likely)))
            own = {"capabilities": [], "score": score, "source": source}
            result = results.setdefault(hit.agent.id, entries[hit.agent.id] | own)
            result["capabilities"].append(view.call_name(hit.tool.id))
        ranked = sorted(results.values(), key=lambda result: -result["score"])
        return {"results": ranked[: given.pageSize]}

    def _entry(
        self, request: Request, view: View, agent: Agent, own: Sequence[Tool] = ()
    ) -> dict[str, Any]:
        """Return the entry of an agent, with requests that its own tools, if given, answer."""
        tools = [entry for entry in view.entries.values() if entry.agent == agent.id]
        remote = {"type": "streamable-http", "url": f"{self._address(request)[0]}/mcp"}
        description = agent.description or f"{agent.name}, {len(tools)} tools"
        card = {"name": agent.name, "version": __version__, "description": description}
        entry: dict[str, Any] = {
            "identifier": self._identifier(request, agent),
            "displayName": agent.name,
            "type": CARD,
            "description": description,
            "tags": sorted({tag for tool in tools for tag in tool.tags}),
            "capabilities": [view.call_name(tool.id) for tool in tools],
            "version": view.release,
            "data": {**card, "remotes": [remote]},
        }
        queries = _queries(own)
        return entry | ({"representativeQueries": queries} if len(queries) > 1 else {})

    def _identifier(self, request: Request, agent: Agent) -> str:
        publisher = self._address(request)[1]
        return f"urn:air:{publisher}:{_segment(agent.catalog)}:{_segment(agent.name)}"

    def _address(self, request: Request) -> tuple[str, str]:
        """Return the gateway's address, and its host's name."""
        auth = self._gateway.auth
        base = str(request.base_url if auth is None or not auth.base_url else auth.base_url)
        host = urlsplit(base).hostname or "localhost"
        return base.rstrip("/"), host.replace(":", "-")


def _queries(tools: Sequence[Tool]) -> list[str]:
    """Return requests that tools answer: the first one of each before any second one."""
    places = range(MAX_QUERIES)
    examples = (tool.examples[n] for n in places for tool in tools if len(tool.examples) > n)
    return list(islice(examples, MAX_QUERIES))


def _passes(entry: Mapping[str, Any], filters: Mapping[Any, Sequence[str] | str]) -> bool:
    """Whether an entry has one of the values of each filter."""
    return all(_texts(given) & _texts(entry[name]) for name, given in filters.items())


def _texts(value: Sequence[str] | str) -> set[str]:
    return {value} if isinstance(value, str) else set(value)


def _segment(name: str) -> str:
    """Return a name as a segment of a URN."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda match: f"_{ord(match[0]):x}", name) or "_"
