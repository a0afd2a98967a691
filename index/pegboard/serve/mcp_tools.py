"""Tools as the gateway's MCP server shows them: its own three, and those of the board."""

from collections.abc import Mapping
from typing import Any

from mcp_types import Tool as McpTool
from mcp_types import ToolAnnotations

from pegboard.records import Tool
from pegboard.serve.catalogue import RESERVED

SEARCH_TOOLS, CALL_TOOL, SEARCH_AGENTS = RESERVED
HINTS = {
    "title": "title",
    "readOnlyHint": "read_only_hint",
    "destructiveHint": "destructive_hint",
    "idempotentHint": "idempotent_hint",
    "openWorldHint": "open_world_hint",
}
"""What is shown of a tool's annotations. Others say how it is called, which is no one's matter."""


def own_tools(max_k: int) -> list[McpTool]:
    """Return the definitions of `search_tools`, `call_tool` and `search_agents`."""
    return [
        McpTool(
            name=SEARCH_TOOLS,
            description="Find tools by what they should do. Returns their names, descriptions and "
            "input schemas, best first. Call one with call_tool, or directly where it is listed.",
            input_schema={
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What a tool should do, in plain words, or its exact name.",
                    },
                    "k": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": max_k,
                        "description": "How many tools to return at most.",
                    },
                    "agent": {
                        "type": "string",
                        "description": "Only tools of this agent, named as search_agents returned "
                        "it.",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        ),
        McpTool(
            name=CALL_TOOL,
            description="Call a tool that search_tools found.",
            input_schema={
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "As search_tools returned it."},
                    "arguments": {
                        "type": "object",
                        "description": "As the tool's inputSchema has them.",
                    },
                },
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
        McpTool(
            name=SEARCH_AGENTS,
            description="Find agents (servers and APIs) for a request that needs several tools "
            "that belong together. Returns their names, descriptions and the names of the tools "
            "that fit best.",
            input_schema={
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What is to be done, in plain words.",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        ),
    ]


def mcp_tool(name: str, tool: Tool) -> McpTool:
    """Return a tool of the board as `tools/list` has it, under its call name."""
    hints: dict[str, Any] = {
        field: tool.annotations[key] for key, field in HINTS.items() if key in tool.annotations
    }
    if "destructive_hint" not in hints and str(tool.annotations.get("method")).upper() == "DELETE":
        hints["destructive_hint"] = True
    return McpTool(
        name=name,
        description=tool.description,
        input_schema=object_schema(tool.input_schema),
        annotations=ToolAnnotations.model_validate(hints) if _valid(hints) else None,
    )


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input schema as MCP demands it, of type object."""
    return {"type": "object", "properties": {}, **schema}


def _valid(hints: Mapping[str, Any]) -> bool:
    return bool(hints) and all(
        isinstance(value, str if field == "title" else bool) for field, value in hints.items()
    )
