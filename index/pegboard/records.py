"""What a catalog says, as records: agents, the tools they own, and what had to be rejected.

Identities are stable over re-indexing: an agent is `catalog/agent`, a tool is `catalog/agent/name`. A digest is taken
over the canonical form (see `canonical`), so it changes when and only when the meaning of a record does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import quote

from pegboard.canonical import digest

__all__ = ["KINDS", "Agent", "AgentKind", "Dependency", "DependencyType", "Rejected", "Tool", "agent_id", "tool_id"]

AgentKind = Literal["mcp-server", "api", "library", "agent"]
KINDS: tuple[AgentKind, ...] = get_args(AgentKind)

DependencyType = Literal[
    "tool-directly-depends-on",
    "tool-indirectly-depends-on",
    "parameter-directly-depends-on",
    "parameter-indirectly-depends-on",
]


def _segment(name: str) -> str:
    """A name as one segment of an id: `/`, `%`, `#` and characters that do not print are percent-encoded."""
    return "".join(quote(char, safe="") if char in "/%#" or not char.isprintable() else char for char in name.strip())


def agent_id(catalog: str, agent: str) -> str:
    """The identity of an agent, `catalog/agent`."""
    return f"{_segment(catalog)}/{_segment(agent)}"


def tool_id(agent: str, name: str) -> str:
    """The identity of a tool, `catalog/agent/name`, from its agent's id and its true name."""
    return f"{agent}/{_segment(name)}"


@dataclass(frozen=True, slots=True)
class Agent:
    """An owner of tools: an MCP server, an API, a library of functions, or an agent.

    `source` says where it was listed (a path, a URL or a command), never with credentials in it.
    """

    id: str
    catalog: str
    name: str
    description: str = ""
    kind: AgentKind = "library"
    source: str = ""

    @property
    def digest(self) -> str:
        """The sha256 of what the agent says of itself; `source` is not part of it."""
        return digest(self.id, self.name, self.description, self.kind)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A declared edge of the tool graph: the tool that is needed, how, and for which parameter (Graph RAG-Tool Fusion)."""

    tool: str
    type: DependencyType
    parameter: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as its catalog describes it. `name` is the true name that a caller must use; `agent` is an agent's id.

    `input_schema` and `output_schema` are JSON Schema objects. `examples` are requests that the tool answers.
    `dependencies` name other tools by their true name or id.
    """

    id: str
    catalog: str
    agent: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    examples: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 of everything the catalog says of the tool, in canonical form."""
        return digest(
            self.id,
            self.name,
            self.description,
            self.input_schema,
            self.output_schema,
            self.annotations,
            self.examples,
            [[d.tool, d.type, d.parameter, d.reason] for d in self.dependencies],
            sorted(set(self.tags)),
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was left out: where it stood, why, and the raw record (JSON text, cut to a readable length)."""

    catalog: str
    where: str
    why: str
    raw: str = ""
