"""The HTTP API's parameters and bodies, which FastAPI checks and describes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pegboard.serve.finder import MAX_QUERY

Query = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY, description="What is needed, in plain words.")
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ToolId = Annotated[str, Field(min_length=1, max_length=1_000)]


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
    arguments: dict[str, Any] = {}
    confirm: Annotated[
        bool, Field(description="Whether the user agrees to a call that may destroy something.")
    ] = False


class GoldenParameters(Parameters):
    """A request with the tools that are right for it."""

    query: Annotated[Query, StringConstraints(strip_whitespace=True, min_length=1)]
    tools: Annotated[
        tuple[ToolId, ...],
        Field(min_length=1, max_length=50, description="Ids of all right tools."),
    ]
    kind: Literal["single", "multi", "parallel", "sequential"] | None = None
