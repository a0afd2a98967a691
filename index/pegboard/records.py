"""Records of a catalog: agents, the tools they own, and what was rejected or listed otherwise.

Identities are stable over re-indexing: an agent is `catalog/agent`, a tool is `catalog/agent/name`.
A digest is taken over the canonical form (see `canonical`), so it changes when and only when the
meaning of a record does."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from pegboard.canonical import canonical_json, digest, digest_of_json

AgentKind = Literal["mcp-server", "api", "library", "agent", "skill", "prompt", "resource"]
"""The kind of an agent and of the rows that it owns: the first three own tools, an `agent` owns the
skills of its card, and the others own rows of their kind.
"""
TOOL_KINDS: tuple[AgentKind, ...] = ("mcp-server", "api", "library")
READ_KINDS: tuple[AgentKind, ...] = ("skill", "prompt", "resource")
"""Kinds whose rows are read and never called."""

DependencyType = Literal[
    "tool-directly-depends-on",
    "tool-indirectly-depends-on",
    "parameter-directly-depends-on",
    "parameter-indirectly-depends-on",
]
EdgeOrigin = Literal["declared", "inferred"]


def _segment(name: str) -> str:
    """A name as one segment of an id: `/`, `%`, `#` and characters that do not print are
    percent-encoded.
    """
    return "".join(
        quote(char, safe="") if char in "/%#" or not char.isprintable() else char
        for char in name.strip()
    )


def agent_id(catalog: str, agent: str) -> str:
    """The identity of an agent, `catalog/agent`."""
    return f"{_segment(catalog)}/{_segment(agent)}"


def tool_id(agent: str, name: str) -> str:
    """The identity of a tool, `catalog/agent/name`, from its agent's id and its true name."""
    return f"{agent}/{_segment(name)}"


@dataclass(frozen=True, slots=True)
class Enrichment:
    """What an LLM wrote about a tool, as far as it passed every check; empty where nothing was
    asked for or nothing passed.

    Attributes:
        description: what the tool does and when to use it; stands for the catalog's description in
            documents.
        avoid: when not to use it, and which sibling instead. Shown to models that pick, never
            embedded: a sentence about what a tool is not for draws its vector towards just that.
        arguments: a note for each argument, by its true name.
        questions: requests that the tool answers and that the filter kept.
        topics: a few words each.
    """

    description: str = ""
    avoid: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What there is, as JSON values; what is empty is left out."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Enrichment":
        """The enrichment of such JSON values."""
        return cls(
            description=values.get("description", ""),
            avoid=values.get("avoid", ""),
            arguments=values.get("arguments", {}),
            questions=tuple(values.get("questions", ())),
            topics=tuple(values.get("topics", ())),
        )


@dataclass(frozen=True, slots=True)
class Agent:
    """An owner of tools: an MCP server, an API, a library of functions, or an agent; or a
    collection of skills, of a server's prompts, or of its resources.

    `source` says where it was listed (a path, a URL or a command), never with credentials in it.
    `enrichment` is what a release has beside what the agent says of itself, at most a description.
    """

    id: str
    catalog: str
    name: str
    description: str = ""
    kind: AgentKind = "library"
    source: str = ""
    enrichment: Enrichment | None = None

    @property
    def digest(self) -> str:
        """The sha256 of what the agent says of itself; `source` and `enrichment` are not part of
        it.
        """
        return digest(self.id, self.name, self.description, self.kind)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A declared edge of the tool graph: the tool that is needed, how, and for which parameter
    (Graph RAG-Tool Fusion).
    """

    tool: str
    type: DependencyType
    parameter: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency between two tools of a release: `source` depends on `target`. Both are ids.

    Attributes:
        parameter: the parameter of `source` that `target` provides; None for a dependency of the
            tool as a whole.
        reason: why, for people and for models.
        origin: `declared` by the catalog; `inferred` from names, schemas and descriptions.
        confidence: 0 to 1, as far as it is known how often edges with such evidence are right; 1
            for declared ones.
        evidence: what speaks for an inferred edge.
    """

    source: str
    target: str
    type: DependencyType
    parameter: str | None = None
    reason: str = ""
    origin: EdgeOrigin = "declared"
    confidence: float = 1.0
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as its catalog describes it. `name` is the true name that a caller must use; `agent`
    is an agent's id.

    `input_schema` and `output_schema` are JSON Schema objects. `examples` are requests that the
    tool answers.
    `dependencies` name other tools by their true name or id. A release adds to what the catalog
    says: `enrichment`, what an LLM wrote about the tool, and `flags`, codes of what is suspicious
    in the catalog's text."""

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
    enrichment: Enrichment | None = None
    flags: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 of everything the catalog says of the tool, in canonical form."""
        return digest_of_json(self.catalog_json().values())

    def catalog_json(self, written: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return everything the catalog says of the tool, each field as canonical JSON, in the
        order in which `digest` covers them.

        Args:
            written: fields whose canonical JSON is known already.
        """
        fields = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
            "examples": self.examples,
            "dependencies": [[d.tool, d.type, d.parameter, d.reason] for d in self.dependencies],
            "tags": sorted(set(self.tags)),
        }
        known = written or {}
        return {name: known.get(name) or canonical_json(value) for name, value in fields.items()}

    @property
    def is_destructive(self) -> bool:
        """Whether a call may destroy something, as far as the catalog says."""
        if str(self.annotations.get("method")).upper() == "DELETE":
            return True
        return (
            self.annotations.get("destructiveHint") is True
            and self.annotations.get("readOnlyHint") is not True
        )


RejectionKind = Literal["record", "text", "schema", "size", "duplicate", "quarantine"]
REJECTIONS: dict[RejectionKind, str] = {
    "record": "not a record of its format",
    "text": "no usable name, description or text",
    "schema": "a schema that cannot be repaired",
    "size": "too large or nested too deeply",
    "duplicate": "the id of another tool",
    "quarantine": "suspicious text",
}
"""Why records are left out of a release."""

NoticeKind = Literal["repaired", "renamed", "cut", "skipped", "partial"]
NOTICES: dict[NoticeKind, str] = {
    "repaired": "listed after a repair",
    "renamed": "listed under another name",
    "cut": "listed without a part",
    "skipped": "left out on purpose",
    "partial": "there is more than was listed",
}
"""What a listing reports besides rejected records."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was left out: where it stood, and why."""

    catalog: str
    where: str
    why: str
    kind: RejectionKind = "record"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a listing did to a record, or did not list, without rejecting it.

    Attributes:
        count: the number of records that it stands for; `where` is the place of all.
    """

    catalog: str
    where: str
    why: str
    kind: NoticeKind
    count: int = 1
