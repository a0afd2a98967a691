"""Agentic Resource Discovery (https://agenticresourcediscovery.org, v0.91): the board's agents as
entries for registries and orchestrators. All agents are called through this gateway's MCP endpoint.

Without credentials, `/.well-known/ard.json` has only the registry; a client also gets the agents
that it may see. There is no federation: only agents of the board are found.
"""

import re
from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pegboard import __version__
from pegboard.records import Agent, Tool
from pegboard.serve.access.views import View
from pegboard.serve.errors import RequestError
from pegboard.serve.finder import MAX_QUERY
from pegboard.serve.http.requests import CurrentContext, Parameters
from pegboard.serve.settings import as_list

MANIFEST = "/.well-known/ard.json"
"""Path of the list of all entries."""
SEARCH = "/search"
"""Path of the search for entries."""
CARD = "application/mcp-server-card+json"
"""Type of the entry of an agent."""
REGISTRY = "application/ai-registry+json"
"""Type of the entry of the gateway itself."""
MAX_QUERIES = 5
"""Most example requests of an entry."""
MAX_HITS = 100
"""Most tools that a search ranks."""
Filter = Literal["identifier", "displayName", "type", "tags", "capabilities"]
Values = Annotated[frozenset[str], BeforeValidator(as_list)]

router = APIRouter(include_in_schema=False)


class ArdQuery(Parameters):
    """A query, and filters: an entry has at least one of the values of each filter."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)]
    filter: dict[Filter, Values] = Field(default_factory=dict[Filter, Values])


class SearchRequest(BaseModel):
    """A search. Federation and pages after the first are not supported."""

    query: ArdQuery
    pageSize: Annotated[int, Field(ge=1, le=100)] = 10  # noqa: N815


def refusal(error: RequestError) -> Response:
    """Return an error in the format of ARD."""
    code = "INVALID_ARGUMENT" if error.status == 400 else "INTERNAL_ERROR"
    return JSONResponse({"errorCode": code, "message": str(error)}, error.status)


@router.get(MANIFEST)
async def manifest(request: Request, context: CurrentContext) -> dict[str, Any]:
    """Return the registry, and the agents that the client may see."""
    base = _address(request)
    entries: list[dict[str, Any]] = [
        {
            "identifier": _identifier(base, "registry", "pegboard"),
            "displayName": "Pegboard",
            "type": REGISTRY,
            "url": f"{base}/",
            "description": "Finds tools of MCP servers, APIs and libraries for a request.",
        }
    ]
    if request.state.client is not None:
        view = await context.gateway.access.view(context.client)
        tools = await view.board.list_tools()
        for agent in await view.board.list_agents():
            queries = _queries([tool for tool in tools if tool.agent == agent.id])
            examples = {"representativeQueries": queries} if len(queries) > 1 else {}
            entries.append(_entry(base, view, agent) | examples)
    return {"specVersion": "1.0", "host": {"displayName": "Pegboard"}, "entries": entries}


@router.post(SEARCH)
async def search(
    request: Request, context: CurrentContext, parameters: SearchRequest
) -> dict[str, Any]:
    """Return the agents whose tools fit a request, each with its fitting tools: the score is the
    probability of the best of them in percent.
    """
    base = _address(request)
    filters = parameters.query.filter
    view = await context.gateway.access.view(context.client)
    entries = {agent.id: _entry(base, view, agent) for agent in await view.board.list_agents()}
    for name, values in filters.items():
        entries = {
            agent: entry for agent, entry in entries.items() if values & {*as_list(entry[name])}
        }
    if not entries:
        return {"results": []}
    where = {"agent": list(entries)} if filters else None
    search_result = await context.gateway.finder.find(
        context.client, parameters.query.text, MAX_HITS, where=where
    )
    results: dict[str, dict[str, Any]] = {}
    for hit in search_result.result.hits:
        probability = hit.score if hit.probability is None else hit.probability
        score = round(100 * min(1.0, max(0.0, probability)))
        new_result = {"capabilities": [], "score": score, "source": f"{base}/"}
        result = results.setdefault(hit.agent.id, entries[hit.agent.id] | new_result)
        result["capabilities"].append(view.call_name(hit.tool.id))
    ranked = sorted(results.values(), key=lambda result: -result["score"])
    return {"results": ranked[: parameters.pageSize]}


def _entry(base: str, view: View, agent: Agent) -> dict[str, Any]:
    tools = [entry for entry in view.entries.values() if entry.agent == agent.id]
    description = agent.description or f"{agent.name}, {len(tools)} tools"
    return {
        "identifier": _identifier(base, agent.catalog, agent.name),
        "displayName": agent.name,
        "type": CARD,
        "description": description,
        "tags": sorted({tag for tool in tools for tag in tool.tags}),
        "capabilities": [view.call_name(tool.id) for tool in tools],
        "version": view.release,
        "data": {
            "name": agent.name,
            "version": __version__,
            "description": description,
            "remotes": [{"type": "streamable-http", "url": f"{base}/mcp"}],
        },
    }


def _queries(tools: Sequence[Tool]) -> list[str]:
    """Return example requests of tools: the first one of each tool before any second one."""
    by_position = zip_longest(*(tool.examples for tool in tools))
    examples = (example for row in by_position for example in row if example is not None)
    return list(islice(examples, MAX_QUERIES))


def _address(request: Request) -> str:
    """Return the gateway's address, without a slash at its end."""
    provider = request.app.state.gateway.access.identity_provider
    base = request.base_url if provider is None or not provider.base_url else provider.base_url
    return str(base).rstrip("/")


def _identifier(base: str, *names: str) -> str:
    """Return the URN of an entry, whose publisher is the gateway's host."""
    publisher = (urlsplit(base).hostname or "localhost").replace(":", "-")
    segments = [
        re.sub(r"[^A-Za-z0-9._-]", lambda match: f"_{ord(match[0]):x}", name) for name in names
    ]
    return ":".join(("urn:air", publisher, *(segment or "_" for segment in segments)))
