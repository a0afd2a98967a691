"""The gateway's own tools, by which a model searches, reads and calls the board's tools; and the
list of tools that a session is sent, with the board's tools that are pinned, that the session
found, or that fit the request's context."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from mcp_types import Tool as McpTool
from mcp_types import ToolAnnotations
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import from_json

from pegboard.records import READ_KINDS, Tool
from pegboard.schemas.for_models import object_schema, output_schema_for_clients
from pegboard.schemas.toon import toon_definitions, typescript_signature
from pegboard.serve.access.annotations import READ_ANNOTATIONS, shown_hints
from pegboard.serve.access.clients import matches_pattern
from pegboard.serve.access.views import RESERVED, View
from pegboard.serve.finder import ClientResult
from pegboard.serve.gateway import Gateway
from pegboard.serve.mcp.sessions import Session
from pegboard.text.plain_text import sentences, shortened
from pegboard.tokens import estimate_tokens

SEARCH_TOOLS, CALL_TOOL, SEARCH_AGENTS, GET_TOOL = RESERVED
MAX_FITTING = 20
"""Most tools that are listed for a context."""
SHOWN_AGENTS = 20
"""Most agents that the description of `search_tools` names."""
_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


NAMES_OF_NAME = ("tool", "tool_name", "toolName")
"""What models call the argument `name` instead."""
NAMES_OF_ARGUMENTS = ("args", "parameters", "params")
"""What models call the argument `arguments` instead."""


def _parsed(value: Any) -> Any:
    """Return arguments that a model may have sent as a JSON text, as null, or as an empty text."""
    if isinstance(value, str):
        value = from_json(value) if value.strip() else None
    return value or {}


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _with_name(values: Any) -> Any:
    """Return the arguments of a tool with `name`, which a model may have called otherwise."""
    if not isinstance(values, dict) or "name" in values:
        return values
    renamed = cast("dict[str, Any]", dict(values))
    for name in NAMES_OF_NAME:
        if name in renamed:
            renamed["name"] = renamed.pop(name)
            break
    return renamed


def _with_arguments(values: Any) -> Any:
    """Return the arguments of `call_tool` with `arguments`, which a model may have called
    otherwise, or written beside `name`.
    """
    if not isinstance(values, dict) or values.get("arguments"):
        return values
    others = {name: value for name, value in values.items() if name not in ("name", "arguments")}
    if not others:
        return values
    (first, value), *more = others.items()
    if not more and first in NAMES_OF_ARGUMENTS and isinstance(value, dict | str):
        others = value
    return {"name": values["name"], "arguments": others} if "name" in values else values


class GatewayToolArguments(BaseModel):
    """The arguments of one of the gateway's own tools, from which its definition follows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchTools(GatewayToolArguments):
    """Find tools by what they should do, best first. Call one with call_tool, or directly where it
    is listed.
    """

    query: str = Field(description="What a tool should do, in plain words, or its exact name.")
    k: Annotated[
        Annotated[int, Field(ge=1)] | SkipJsonSchema[None], BeforeValidator(_none_if_empty)
    ] = Field(None, description="How many tools to return at most.")
    agent: str | SkipJsonSchema[None] = Field(
        None, description="Only tools of this agent, named as search_agents returned it."
    )


class CallTool(GatewayToolArguments):
    """Call a tool that search_tools found."""

    name: str = Field(description="As search_tools returned it.")
    arguments: Annotated[dict[str, Any], BeforeValidator(_parsed)] = Field(
        default_factory=dict[str, Any], description="As the tool's signature has them."
    )

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, values: Any) -> Any:
        return _with_arguments(_with_name(values))


class SearchAgents(GatewayToolArguments):
    """Find agents (servers and APIs) for a request that needs several tools that belong together.
    Returns their names, descriptions and the names of the tools that fit best.
    """

    query: str = Field(description="What is to be done, in plain words.")


class GetTool(GatewayToolArguments):
    """Return the whole definition of a tool: its description and its schemas."""

    name: str = Field(description="As search_tools returned it.")

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, values: Any) -> Any:
        return _with_name(values)


EXPECTED = {
    SEARCH_TOOLS: '{"query": "what a tool should do"}',
    SEARCH_AGENTS: '{"query": "what is to be done"}',
    GET_TOOL: '{"name": "as search_tools returned it"}',
    CALL_TOOL: '{"name": "as search_tools returned it", "arguments": {...}}, with everything that '
    "the tool takes inside arguments",
}
"""The arguments of each of the gateway's own tools, as errors show them."""


async def listed_tools(gateway: Gateway, session: Session, context: str = "") -> list[McpTool]:
    """Return the tools that a session is sent: the gateway's own, and some of the board's tools
    that its client may see.

    Args:
        context: what the request is about, in words; "" for no context.

    Raises as `Finder.find` does for a context.
    """
    fitting_ids = await _fitting_ids(gateway, session, context) if context.strip() else []
    view = await gateway.access.view(session.client, callable_only=True)
    ids = listed_ids(gateway, view, session)
    session.listed = tuple(ids)
    ids |= {
        view.call_name(identity): identity for identity in fitting_ids if identity in view.entries
    }
    tools = gateway_tools(view, gateway.settings.serve.max_k)
    for name, identity in ids.items():
        tool = await view.tool(identity)
        if tool is not None:
            tools.append(mcp_tool(name, tool))
    session.note_names(ids)
    sent_tokens = sum(estimate_tokens(tool.model_dump_json(exclude_none=True)) for tool in tools)
    gateway.metrics.record_list(session.client, session.id, len(tools), sent_tokens, view.tokens)
    return tools


def listed_ids(gateway: Gateway, view: View, session: Session) -> dict[str, str]:
    """Return the ids of the board's tools in a session's list by call name: first the pinned tools,
    then those that the session found in order of discovery, so that a list only grows at its end.
    """
    serve = gateway.settings.serve
    pinned = [
        identity
        for identity in (view.entries if serve.pinned else ())
        if any(matches_pattern(identity, pattern) for pattern in serve.pinned)
    ]
    discovered = session.found if serve.mode == "gateway" else {}
    visible = [identity for identity in discovered if identity in view.entries]
    return {
        view.call_name(identity): identity
        for identity in (*pinned, *visible)
        if not view.entries[identity].is_read
    }


async def _fitting_ids(gateway: Gateway, session: Session, context: str) -> list[str]:
    """Return the ids of the tools that fit a context: those with at least the release's threshold
    for a fitting tool (Armory); none if an LLM judged that none fits.
    """
    search = await gateway.finder.find(
        session.client, context, MAX_FITTING, session=session.id, callable_only=True
    )
    if search.result.nothing_fits and search.result.judged_by == "llm":
        return []
    threshold = (await search.view.board.thresholds()).get("nothing_fits", 0.0)
    return [
        hit.tool.id
        for hit in search.result.hits
        if (hit.probability is None or hit.probability >= threshold)
        and hit.agent.kind not in READ_KINDS
    ]


def gateway_tools(view: View, max_k: int) -> list[McpTool]:
    """Return the definitions of the gateway's own tools for a client's view."""
    search = _gateway_tool(SEARCH_TOOLS, SearchTools, _agents_note(view))
    search.input_schema["properties"]["k"]["maximum"] = max_k
    return [
        search,
        _gateway_tool(CALL_TOOL, CallTool),
        _gateway_tool(SEARCH_AGENTS, SearchAgents),
        _gateway_tool(GET_TOOL, GetTool),
    ]


def mcp_tool(name: str, tool: Tool) -> McpTool:
    """Return the definition of a tool of the board in `tools/list`, under its call name."""
    hints = shown_hints(tool)
    return McpTool(
        name=name,
        description=tool.description,
        input_schema=object_schema(tool.input_schema),
        annotations=ToolAnnotations.model_validate(hints) if hints else None,
    )


def definition_of(view: View, tool: Tool) -> dict[str, Any]:
    """Return what a client may see of a tool; for one that is not called, how it is read."""
    entry = view.entries[tool.id]
    values: dict[str, Any] = {
        "name": view.call_name(tool.id),
        "agent": tool.agent,
        "description": tool.description,
        "inputSchema": object_schema(tool.input_schema),
        "outputSchema": tool.output_schema and output_schema_for_clients(tool.output_schema),
        "annotations": shown_hints(tool),
    }
    if entry.is_read:
        del values["inputSchema"]
        values |= {"kind": entry.kind, "arguments": tool.input_schema.get("properties")}
        values |= {key: tool.annotations.get(key) for key in READ_ANNOTATIONS}
    return {key: value for key, value in values.items() if value}


def search_answer(search: ClientResult, listed: Sequence[str] = ()) -> dict[str, Any]:
    """Return the answer to a search as JSON values.

    Args:
        listed: names of tools that the session's `tools/list` has already.
    """
    view = search.view
    tools: list[dict[str, Any]] = []
    for hit in search.result.hits:
        name = view.call_name(hit.tool.id)
        row: dict[str, Any] = {"name": name, "agent": hit.tool.agent}
        row["description"] = first_sentence(hit.tool.description)
        if hit.agent.kind in READ_KINDS:
            row["kind"] = hit.agent.kind
        else:
            row["signature"] = typescript_signature(name, hit.tool.input_schema)
        if hints := shown_hints(hit.tool):
            row["annotations"] = hints
        if hit.probability is not None:
            row["probability"] = round(hit.probability, 2)
        if name in listed:
            row["listed"] = True
        tools.append(row)
    listed_names = ", ".join(str(tool["name"]) for tool in tools if tool.get("listed"))
    listed_note = listed_names and f"You already have {listed_names}."
    note = " ".join(filter(None, (search.reason, listed_note)))
    return {"tools": tools, **({"note": note} if note else {})}


def search_text(search: ClientResult, results: str, answer: Mapping[str, Any]) -> str:
    """Return the answer to a search as a text.

    Args:
        results: the format: `compact` for the JSON of the answer, `toon` or `typescript`.
        answer: the result of `search_answer`.
    """
    definitions = [
        (search.view.call_name(hit.tool.id), hit.tool.description, hit.tool.input_schema)
        for hit in search.result.hits
        if hit.agent.kind not in READ_KINDS
    ]
    read_lines = [
        f"{search.view.call_name(hit.tool.id)} ({hit.agent.kind}, read it with {GET_TOOL}): "
        f"{first_sentence(hit.tool.description)}"
        for hit in search.result.hits
        if hit.agent.kind in READ_KINDS
    ]
    if results == "toon":
        text = toon_definitions(definitions)
    elif results == "typescript":
        text = "\n".join(
            f"/** {' '.join(description.replace('*/', '* /').split())} */\n"
            f"declare function {typescript_signature(name, schema)}: unknown;"
            for name, description, schema in definitions
        )
    else:
        return compact_json(answer)
    return "\n\n".join(filter(None, (text, "\n".join(read_lines), answer.get("note"))))


def compact_json(values: Any) -> str:
    """Return values as JSON without spaces."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, cut to the length of a line."""
    return shortened(next(iter(sentences(text)), ""))


def _agents_note(view: View) -> str:
    """Return a note with the agents of a client's tools, so that a model knows when to search."""
    names = view.agents[:SHOWN_AGENTS]
    more = len(view.agents) - len(names)
    if not names:
        return ""
    has_read = any(entry.is_read for entry in view.entries.values())
    note = f" What has a kind is not called, but read with {GET_TOOL}." if has_read else ""
    return f"{note} They come from: {', '.join(names)}{f' and {more} more' if more else ''}."


def _gateway_tool(name: str, model: type[GatewayToolArguments], note: str = "") -> McpTool:
    schema = model.model_json_schema()
    for part in (schema, *schema["properties"].values()):
        part.pop("title", None)
        part.pop("default", None)
    description = " ".join(schema.pop("description").split()) + note
    hints = None if name == CALL_TOOL else _READ_ONLY
    return McpTool(name=name, description=description, input_schema=schema, annotations=hints)
