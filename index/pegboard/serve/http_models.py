"""The HTTP API's parameters, bodies and answers. FastAPI checks and describes them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pegboard.records import Edge
from pegboard.retrieval.found import StepResult
from pegboard.serve.finder import MAX_QUERY

Query = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY, description="What is needed, in plain words.")
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ToolId = Annotated[str, Field(min_length=1, max_length=1_000)]
Release = Annotated[
    str | None,
    Field(
        pattern="^[0-9a-f]{1,64}$",
        description="A release to ask instead of the live one: its id or the beginning of it.",
    ),
]
Object = dict[str, Any]


class Parameters(BaseModel):
    """The parameters of an operation. Unknown ones are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FindParameters(Parameters):
    """Which tools fit a request."""

    query: Query
    k: Annotated[int, Field(ge=1, le=100, description="The most tools that are returned.")] = 5
    strategy: Annotated[
        Name | None,
        Field(
            description="A built-in strategy by name (GET /v1/status); by default the release's."
        ),
    ] = None
    index: Annotated[
        Name | None, Field(description="An index of the release; its default one by default.")
    ] = None
    release: Release = None
    explain: Annotated[
        bool,
        Field(description="Also return what each feature adds, and each part's queries and ranks."),
    ] = False


class ReleaseParameters(Parameters):
    """Which release is asked."""

    release: Release = None


class ToolsParameters(ReleaseParameters):
    """Which tools are listed, by id."""

    agent: Annotated[str | None, Field(max_length=1_000, description="An agent's id.")] = None
    catalog: Annotated[Name | None, Field(description="A catalog's name.")] = None
    tag: Annotated[Name | None, Field(description="A tag that the tools have.")] = None
    text: Annotated[
        str | None,
        Field(max_length=200, description="Words that the id or the description contains."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Tools on a page.")] = 50
    after: Annotated[
        str | None, Field(max_length=1_000, description="The `next` of the page before.")
    ] = None


class CallParameters(ReleaseParameters):
    """A call of a tool."""

    tool: Annotated[ToolId, Field(description="Its id, or the name by which it is called.")]
    arguments: Object = {}
    confirm: Annotated[
        bool, Field(description="Whether the user agrees to a call that may destroy something.")
    ] = False


class GoldenParameters(ReleaseParameters):
    """A request with the tools that are right for it."""

    query: Annotated[Query, StringConstraints(strip_whitespace=True, min_length=1)]
    tools: Annotated[
        tuple[ToolId, ...],
        Field(min_length=1, max_length=50, description="Ids of all right tools."),
    ]
    kind: Literal["single", "multi", "parallel", "sequential"] | None = None


class Health(BaseModel):
    """`status` is `stale` while the board cannot be read. `upstreams` counts MCP servers by
    state."""

    status: Literal["ok", "stale"]
    release: str
    channel: str | None
    age_seconds: float
    upstreams: dict[str, int]


class Status(BaseModel):
    """What the gateway serves. `operator`: whether the client may see other releases and the
    traffic; `golden`: whether it may save golden queries."""

    version: str
    channel: str | None
    release: str
    client: str
    operator: bool
    tools: int
    golden: bool
    strategies: dict[str, str]


class ToolRow(BaseModel):
    """A tool in a list."""

    id: str
    name: str
    call_name: str
    agent: str
    description: str
    tags: list[str]
    flags: list[str] = []


class Hit(ToolRow):
    """`why` has, for each ranking that found the tool, its rank and score there. Of several steps,
    a hit may be less probable than one behind it: the order gives each its tools."""

    agent_name: str
    kind: str
    score: float
    probability: float = 0.0
    input_schema: Object
    why: Object
    enrichment: Object = {}


class FindResult(BaseModel):
    """Hits are best first. `probability` is that of at least one fitting tool; `reason` says why
    there are no hits, or why they may not fit."""

    release: str
    probability: float | None
    nothing_fits: bool
    reason: str
    steps: tuple[StepResult, ...]
    hits: list[Hit]
    trace: Object


class ToolPage(BaseModel):
    """Tools by id; `next` is None on the last page."""

    release: str
    total: int
    tools: list[ToolRow]
    next: str | None


class Agent(BaseModel):
    """An owner of tools."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    catalog: str
    kind: str
    description: str
    tools: int = 0


class WholeTool(ToolRow):
    """A tool with its schemas. `cannot_be_called` says why, "" where it can be."""

    catalog: str
    input_schema: Object
    output_schema: Object | None
    annotations: Object
    examples: list[str]
    enrichment: Object = {}
    destructive: bool = False
    cannot_be_called: str = ""


class ToolAnswer(BaseModel):
    """A tool, its agent, its dependencies in both directions, and the names of their tools."""

    release: str
    tool: WholeTool
    agent: Agent
    dependencies: list[Edge]
    dependents: list[Edge]
    names: dict[str, str]


class AgentList(BaseModel):
    """The agents with tools."""

    release: str
    agents: list[Agent]


class ReleaseRow(BaseModel):
    """A release in a list."""

    release: str
    created_at: str
    indexes: list[str]
    gate: str
    channels: list[str]
    live: bool


class ReleaseList(BaseModel):
    """The newest releases, newest first."""

    channel: str | None
    live: str
    releases: list[ReleaseRow]


class Traffic(BaseModel):
    """Numbers of finds and calls by outcome, and of refusals by reason, in each of the last 60
    minutes, the current one last; and the state of each MCP server: `idle`, `up` or `failed`, with
    the error, and since when."""

    minutes: list[dict[str, dict[str, int]]]
    servers: dict[str, dict[str, str]]


class Saved(BaseModel):
    """`saved` is false if the file had the same query."""

    saved: bool
    id: str


class Problem(BaseModel):
    """What is wrong, where, and the next step."""

    code: str
    what: str
    where: str
    next_step: str


class Error(BaseModel):
    """An answer that is an error."""

    error: Problem
