"""The OpenAPI description of the HTTP API, made from the models of its parameters."""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard import __version__
from pegboard.serve.http_requests import (
    FindParameters,
    GoldenParameters,
    GraphParameters,
    Parameters,
    ReleaseParameters,
    ToolsParameters,
)

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
COUNT = {"type": "integer", "minimum": 0}
NUMBER = {"type": "number"}
FLAG = {"type": "boolean"}
OBJECT = {"type": "object"}


def describe() -> dict[str, Any]:
    """Return the description, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pegboard gateway",
            "version": __version__,
            "description": "Finds the right few tools for a request. Every answer is about the "
            "tools that the client may see.",
        },
        "servers": [{"url": "."}],
        "security": [{}, {"bearer": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": {
                "Error": {"description": "An error.", "content": _content("Error")},
            },
        },
    }


def _paths() -> dict[str, Any]:
    identity = {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The tool's id, percent-encoded; `/` may stay.",
        "schema": TEXT,
    }
    tool = _operation("getTool", "One tool, its schemas and dependencies", "ToolAnswer")
    tool["parameters"] = [identity, *_parameters(ReleaseParameters)]
    return {
        "/v1/status": {"get": _operation("getStatus", "What the gateway serves", "Status")},
        "/v1/find": {
            "get": _operation("find", "The tools for a request", "FindResult", FindParameters),
            "post": _operation(
                "findByBody", "The tools for a request", "FindResult", body=FindParameters
            ),
        },
        "/v1/tools": {
            "get": _operation("listTools", "Tools by a filter", "ToolPage", ToolsParameters)
        },
        "/v1/tools/{id}": {"get": tool},
        "/v1/agents": {
            "get": _operation("listAgents", "Agents", "AgentList", ReleaseParameters)
        },
        "/v1/releases": {"get": _operation("listReleases", "Releases", "ReleaseList")},
        "/v1/graph": {
            "get": _operation("getGraph", "The tools around one", "Graph", GraphParameters)
        },
        "/v1/golden": {
            "post": _operation(
                "saveGolden", "Save a golden query", "Saved", body=GoldenParameters, created=True
            )
        },
    }  # fmt: skip


def _operation(
    identity: str,
    summary: str,
    answer: str,
    parameters: type[Parameters] | None = None,
    *,
    body: type[Parameters] | None = None,
    created: bool = False,
) -> dict[str, Any]:
    ok = {"description": summary, "content": _content(answer)}
    operation: dict[str, Any] = {
        "operationId": identity,
        "summary": summary,
        "responses": {"200": ok, "default": {"$ref": "#/components/responses/Error"}},
    }
    if created:
        operation["responses"]["201"] = {"description": "Saved.", "content": _content(answer)}
    if parameters is not None:
        operation["parameters"] = _parameters(parameters)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(body.__name__)}
    return operation


def _parameters(model: type[Parameters]) -> list[dict[str, Any]]:
    schema = model.model_json_schema()
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _without_null(values),
        }
        for name, values in schema["properties"].items()
    ]


def _without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter in an address is left out rather than null."""
    schema = {name: value for name, value in values.items() if name not in ("anyOf", "default")}
    for choice in values.get("anyOf", ()):
        if choice.get("type") != "null":
            schema |= choice
    return schema | ({"default": values["default"]} if values.get("default") is not None else {})


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(schema)}}


def _reference(schema: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _list_of(schema: str) -> dict[str, Any]:
    return {"type": "array", "items": _reference(schema)}


def _object(
    properties: Mapping[str, Any], optional: Iterable[str] = (), description: str = ""
) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in set(optional)],
    }
    return schema | ({"description": description} if description else {})


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _schemas() -> dict[str, Any]:
    models: tuple[type[Parameters], ...] = (FindParameters, GoldenParameters)
    schemas = {model.__name__: model.model_json_schema() for model in models}
    return {**schemas, **_answers(), **_records()}


def _answers() -> dict[str, Any]:
    return {
        "Status": _object(
            {"version": TEXT, "channel": _nullable(TEXT), "release": TEXT, "client": TEXT,
             "operator": FLAG, "tools": COUNT, "golden": FLAG,
             "strategies": {"type": "object", "additionalProperties": TEXT}},
            description="`operator` is whether the client may see other releases, `golden` whether "
            "it may save golden queries.",
        ),
        "FindResult": _object(
            {
                "release": TEXT, "probability": _nullable(NUMBER), "nothing_fits": FLAG,
                "reason": TEXT,
                "steps": {"type": "array", "items": _object({"text": TEXT, "tools": TEXTS})},
                "hits": _list_of("Hit"), "trace": OBJECT,
            },
            description="Hits are best first. `probability` is that of at least one fitting tool; "
            "`reason` says why there are no hits, or why they may not fit.",
        ),
        "ToolPage": _object(
            {"release": TEXT, "total": COUNT, "tools": _list_of("ToolRow"),
             "next": _nullable(TEXT)}
        ),
        "ToolAnswer": _object(
            {"release": TEXT, "tool": _reference("Tool"), "agent": _reference("Agent"),
             "dependencies": _list_of("Edge"), "dependents": _list_of("Edge")}
        ),
        "AgentList": _object({"release": TEXT, "agents": _list_of("Agent")}),
        "ReleaseList": _object(
            {"channel": _nullable(TEXT), "live": TEXT, "releases": _list_of("Release")}
        ),
        "Graph": _object(
            {
                "release": TEXT, "tool": TEXT, "complete": FLAG, "edges": _list_of("Edge"),
                "nodes": {"type": "array", "items": _object(
                    {"id": TEXT, "name": TEXT, "agent": TEXT, "distance": COUNT}
                )},
            }
        ),
        "Saved": _object(
            {"saved": FLAG, "id": TEXT},
            description="`saved` is false if the file had the same query.",
        ),
        "Error": _object(
            {"error": _object({"code": TEXT, "what": TEXT, "where": TEXT, "next_step": TEXT})}
        ),
    }  # fmt: skip


def _records() -> dict[str, Any]:
    row = {"id": TEXT, "name": TEXT, "call_name": TEXT, "agent": TEXT, "description": TEXT,
           "tags": TEXTS, "flags": TEXTS}  # fmt: skip
    return {
        "Hit": _object(
            {**row, "agent_name": TEXT, "kind": TEXT, "score": NUMBER, "probability": NUMBER,
             "input_schema": OBJECT, "why": OBJECT, "enrichment": OBJECT},
            ("probability", "flags", "enrichment"),
            "`why` has, for each ranking that found the tool, its rank and score there. Of several "
            "steps, a hit may be less probable than one behind it: the order gives each its tools.",
        ),
        "ToolRow": _object(row),
        "Tool": _object(
            {**row, "catalog": TEXT, "input_schema": OBJECT, "output_schema": _nullable(OBJECT),
             "annotations": OBJECT, "examples": TEXTS, "enrichment": OBJECT},
            ("enrichment",),
        ),
        "Agent": _object(
            {"id": TEXT, "name": TEXT, "catalog": TEXT, "kind": TEXT, "description": TEXT,
             "tools": COUNT},
            ("tools",),
        ),
        "Edge": _object(
            {"source": TEXT, "target": TEXT, "type": TEXT, "parameter": _nullable(TEXT),
             "reason": TEXT, "origin": TEXT, "confidence": NUMBER, "evidence": TEXT},
            description="`source` depends on `target`.",
        ),
        "Release": _object(
            {"release": TEXT, "created_at": TEXT, "indexes": TEXTS, "default_index": TEXT,
             "strategy": _nullable(TEXT), "gate": TEXT, "channels": TEXTS, "live": FLAG,
             "in_history": FLAG}
        ),
    }  # fmt: skip
