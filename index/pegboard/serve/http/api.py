"""The HTTP API under /v1: find, read and call tools, read agents, dependencies and the states of
servers, and save golden queries. /healthz and /metrics belong to it, too.

Every answer comes from the client's view of a release, and has only what the client may see. The
answer for a hidden tool is the same as for one that does not exist.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from pegboard import __version__
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries
from pegboard.records import Agent, Edge, Tool
from pegboard.retrieval.strategies import STRATEGIES
from pegboard.serve.access.annotations import visible_annotations
from pegboard.serve.access.clients import HTTP_TOKEN, bearer_token
from pegboard.serve.access.views import View
from pegboard.serve.errors import RequestError, invalid
from pegboard.serve.finder import MAX_QUERY
from pegboard.serve.gateway import Gateway
from pegboard.serve.http.requests import ClientView, CurrentContext, Parameters
from pegboard.text.redaction import redact

Answer = dict[str, Any]

log = logging.getLogger("pegboard.serve")

Words = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY, description="What is needed, in plain words.")
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ToolId = Annotated[str, Field(min_length=1, max_length=1_000)]


class FindParameters(Parameters):
    """Which tools fit a request."""

    query: Words
    k: Annotated[int, Field(ge=1, le=100, description="The most tools that are returned.")] = 5
    strategy: Annotated[
        Name | None,
        Field(description="A built-in strategy (GET /v1/status); by default the release's."),
    ] = None
    index: Annotated[Name | None, Field(description="An index; by default the release's.")] = None
    explain: Annotated[
        bool,
        Field(description="Also return what each feature adds, and each part's queries and ranks."),
    ] = False


class ToolsParameters(Parameters):
    """Which tools are listed, by id."""

    agent: Annotated[str | None, Field(max_length=1_000, description="An agent's id.")] = None
    text: Annotated[
        str | None,
        Field(max_length=200, description="Words that the id or the description contains."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Tools on a page.")] = 50
    after: Annotated[
        str | None, Field(max_length=1_000, description="The `next` of the page before.")
    ] = None


class CallParameters(Parameters):
    """A call of a tool."""

    tool: Annotated[ToolId, Field(description="Its id, or the name by which it is called.")]
    arguments: dict[str, Any] = Field({})
    confirm: Annotated[
        bool, Field(description="Whether the user agrees to a call that may destroy something.")
    ] = False


class GoldenParameters(Parameters):
    """A request with the tools that are right for it."""

    query: Annotated[Words, StringConstraints(strip_whitespace=True, min_length=1)]
    tools: Annotated[
        tuple[ToolId, ...],
        Field(min_length=1, max_length=50, description="Ids of all right tools."),
    ]
    kind: Literal["single", "multi", "parallel", "sequential"] | None = None


health_router = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/v1", dependencies=[Depends(HTTPBearer(auto_error=False))])


@health_router.get("/healthz")
async def health(request: Request) -> Answer:
    """Return whether the board can be read (`ok` or `stale`), and the number of MCP servers by
    state.
    """
    gateway: Gateway = request.app.state.gateway
    status = gateway.board.status()
    return {
        "status": "ok" if status.error is None else "stale",
        "release": status.release,
        "channel": status.channel,
        "age_seconds": round(status.age_seconds, 1),
        "upstreams": Counter(server["state"] for server in gateway.caller.health().values()),
    }


@health_router.get("/metrics")
async def metrics(context: CurrentContext) -> Response:
    """Return the metrics of all clients for Prometheus."""
    context.check_operator("Metrics")
    text = context.gateway.metrics.as_text(context.gateway.caller.health())
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/status")
async def status(context: CurrentContext, view: ClientView) -> Answer:
    """Return what the gateway serves, and what the client may do."""
    gateway = context.gateway
    client = context.client
    release = await view.board.release()
    return {
        "version": __version__,
        "channel": gateway.board.status().channel,
        "release": view.release,
        "client": client.name,
        "operator": client.operator,
        "tools": len(view.entries),
        "indexes": sorted(release.manifest["indexes"]),
        "golden": gateway.golden_file is not None and client.operator,
        "strategies": {name: description for name, (description, _) in STRATEGIES.items()},
    }


@router.post("/find")
async def find(context: CurrentContext, parameters: FindParameters) -> Answer:
    """Return the tools for a request, best first. `probability` is that of at least one fitting
    tool; `reason` says why there are no hits, or why they may not fit. `why` has, for each ranking
    that found a tool, its rank and score there.
    """
    if parameters.strategy not in (None, *STRATEGIES):
        raise invalid(
            f"There is no strategy {parameters.strategy!r}.", "strategy",
            f"Expected one of {', '.join(STRATEGIES)}.",
        )  # fmt: skip
    options = parameters.model_dump(include={"strategy", "index", "explain"})
    search = await context.gateway.finder.find(
        context.client, parameters.query, parameters.k, **options
    )
    answer = search.result.to_dict()
    for hit, values in zip(search.result.hits, answer["hits"], strict=True):
        values["agent_name"] = hit.agent.name
        values["call_name"] = search.view.call_name(hit.tool.id)
    hit_ids = {hit.tool.id for hit in search.result.hits}
    for part in answer["trace"]["parts"]:
        ranks = part.get("ranks", {})
        part["ranks"] = {tool: rank for tool, rank in ranks.items() if tool in hit_ids}
    return {"reason": search.reason, **answer}


@router.get("/tools")
async def tools(view: ClientView, parameters: Annotated[ToolsParameters, Query()]) -> Answer:
    """Return a page of the tools that pass a filter, by id; `next` is null on the last one."""
    words = (parameters.text or "").casefold().split()
    matching = sorted(
        entry.id
        for entry in view.entries.values()
        if parameters.agent in (None, entry.agent) and all(word in entry.text for word in words)
    )
    after = parameters.after
    remaining = [identity for identity in matching if after is None or identity > after]
    page = remaining[: parameters.limit]
    return {
        "release": view.release,
        "total": len(matching),
        "tools": [_row(await _tool(view, identity), view) for identity in page],
        "next": page[-1] if len(remaining) > parameters.limit else None,
    }


@router.get("/tools/{id:path}")
async def tool(context: CurrentContext, view: ClientView, id: str) -> Answer:
    """Return one tool with its schemas, its agent, and its dependencies among the visible tools,
    with their names. `cannot_be_called` says why the gateway cannot call it; "" if it can.
    """
    tool = await _tool(view, id)
    agents = {agent.id: agent for agent in await view.board.list_agents()}
    graph = await view.board.graph()
    needs = _visible_edges(graph.edges_from(tool.id), view)
    needed_by = _visible_edges(graph.edges_to(tool.id), view)
    return {
        "release": view.release,
        "tool": {
            **_row(tool, view),
            "catalog": tool.catalog,
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
            "annotations": visible_annotations(context.client, view.entries[id], tool),
            "examples": tool.examples,
            "destructive": tool.is_destructive,
            "cannot_be_called": context.gateway.caller.call_problem(tool, view.entries[id].kind),
        },
        "agent": _agent(agents[tool.agent]),
        "dependencies": needs,
        "dependents": needed_by,
        "names": {
            identity: view.entries[identity].name
            for edge in needs + needed_by
            for identity in (edge.source, edge.target)
        },
    }


@router.post("/call")
async def call(
    request: Request, context: CurrentContext, view: ClientView, parameters: CallParameters
) -> Response:
    """Call a tool, and return its result in the format of MCP. A failure has `isError`."""
    HTTP_TOKEN.set(bearer_token(request.headers))
    tool = await view.tool_named(parameters.tool)
    if tool is None:
        raise _unknown_tool(parameters.tool, "tool")
    caller = context.gateway.caller
    if caller.needs_confirmation(tool) and not parameters.confirm:
        raise RequestError(
            409, "unconfirmed", f"{tool.id} may destroy something.", "confirm",
            'Repeat the call with "confirm": true if the user agrees.',
        )  # fmt: skip
    kind = view.entries[tool.id].kind
    result = await caller.call(
        context.client, tool, parameters.arguments, kind=kind, confirm=_agree
    )
    return Response(
        result.model_dump_json(by_alias=True, exclude_none=True), media_type="application/json"
    )


@router.get("/agents")
async def agents(view: ClientView) -> Answer:
    """Return the agents with tools that the client may see."""
    tools = Counter(entry.agent for entry in view.entries.values())
    agents = await view.board.list_agents()
    rows = [{**_agent(agent), "tools": tools[agent.id]} for agent in agents if tools[agent.id]]
    return {"release": view.release, "agents": rows}


@router.post("/golden")
async def save_golden(
    context: CurrentContext, view: ClientView, parameters: GoldenParameters, response: Response
) -> Answer:
    """Add a request with its right tools to the golden queries. `saved` is false if the file
    already has the request.
    """
    context.check_operator("Golden queries")
    file = context.gateway.golden_file
    if file is None:
        raise RequestError(
            403, "not_configured", "This gateway saves no golden queries.", "golden",
            'Name a file under [serve] of pegboard.toml: golden = "golden.jsonl".',
        )  # fmt: skip
    tools = dict.fromkeys(parameters.tools)
    for number, identity in enumerate(tools):
        await _tool(view, identity, f"tools.{number}")
    query = GoldenQuery(redact(parameters.query), tuple(tools), kind=parameters.kind or "")
    async with context.gateway.golden_lock:
        saved = await asyncio.to_thread(_save, file, query)
    response.status_code = 201 if saved else 200
    return {"saved": saved}


@router.get("/servers")
async def servers(context: CurrentContext) -> dict[str, dict[str, str]]:
    """Return the state of each MCP server by agent: `idle`, `up` or `failed`, the error, and the
    time since when.
    """
    context.check_operator("The states of servers")
    return context.gateway.caller.health()


async def _agree(*_: Any) -> None:
    """Agree to a call, since its request says that the user does."""


async def _tool(view: View, identity: str, where: str = "id") -> Tool:
    """Return a tool by its id. Raises RequestError if the client may see no such tool."""
    tool = await view.tool(identity)
    if tool is None:
        raise _unknown_tool(identity, where)
    return tool


def _unknown_tool(identity: str, where: str) -> RequestError:
    return RequestError(
        404, "unknown_tool", f"There is no tool {identity!r:.200} that you may see.", where,
        "GET /v1/tools lists those there are; ids are percent-encoded in an address.",
    )  # fmt: skip


def _save(file: Path, query: GoldenQuery) -> bool:
    """Add a golden query to a file unless the file has the request; return whether it was added."""
    try:
        data = file.read_bytes() if file.exists() else b""
        for stored in read_queries(file, agents=True) if data else ():
            if stored.query.split() == query.query.split() and not stored.history:
                return False
        line = json.dumps(query.to_dict(), ensure_ascii=False) + "\n"
        with file.open("a", encoding="utf-8") as lines:
            lines.write(line if not data or data.endswith(b"\n") else "\n" + line)
    except (ConfigurationError, OSError) as error:
        log.error("A golden query was not saved: %s", error)
        raise RequestError(
            503, "not_saved", "The file of golden queries cannot be read or written.",
            "golden", "The gateway's log says why.",
        ) from error  # fmt: skip
    return True


def _row(tool: Tool, view: View) -> Answer:
    """Return a tool as lists of tools show it."""
    names = ("id", "name", "agent", "description", "tags", "flags")
    return {name: getattr(tool, name) for name in names} | {"call_name": view.call_name(tool.id)}


def _agent(agent: Agent) -> Answer:
    """Return an agent as clients see it."""
    names = ("id", "name", "catalog", "kind", "description")
    return {name: getattr(agent, name) for name in names}


def _visible_edges(edges: Sequence[Edge], view: View) -> list[Edge]:
    return [edge for edge in edges if {edge.source, edge.target} <= view.entries.keys()]
