"""The hits of a search, and their conversion for API calls and prompts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pegboard.errors import QueryError
from pegboard.naming import CallNames
from pegboard.records import READ_KINDS, Agent, Tool
from pegboard.schemas.for_models import (
    cut_description,
    object_schema,
    original_arguments,
    output_schema_for_clients,
)
from pegboard.schemas.toon import toon_definitions

Descriptions = Literal["catalog", "written"]
"""The description that a model is shown: the catalog's, or an LLM's if there is one."""


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """A tool that a search found.

    Attributes:
        score: higher is better, comparable within one search.
        why: for each ranking that found the tool its rank (from 1), its score and the part that
            matched: `{"vector": {"rank": 2, "score": 0.61, "part": "document"}, "text": {...}}`.
            With `explain=True` that of `ranker` has `adds`: what each feature adds to the score.
        release: the id of the release that answered: the same for all hits of one search.
        probability: how likely the tool fits; None but in a hybrid search. Where a request has
            several steps, a hit may be less probable than one behind it, since the order gives
            each step its tools.
    """

    tool: Tool
    agent: Agent
    score: float
    why: Mapping[str, Mapping[str, Any]]
    release: str = field(default="", compare=False)
    probability: float | None = None

    @property
    def function(self) -> Callable[..., Any] | None:
        """The Python function of a tool that `Board.from_tools` was given as one; else None."""
        return getattr(self.tool, "function", None)

    def original_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a model's call under the names of the tool itself. They differ
        where model APIs refuse those, such as `filter[name]`, which a model is given as
        `filter_name`.
        """
        return original_arguments(self.tool.input_schema, arguments)

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the Python function of a tool with the arguments of a model's call, and return what
        it returns.

        Raises:
            QueryError: the tool is not a function that `Board.from_tools` was given.
        """
        if self.function is None:
            raise QueryError(
                f"{self.tool.id} has no Python function here. Functions are those that "
                f"Board.from_tools was given; send other calls, with `hit.original_arguments`, to "
                f"the tool's server, or run `pegboard serve`."
            )
        return self.function(**self.original_arguments(arguments))

    def __repr__(self) -> str:
        likely = "" if self.probability is None else f", probability {self.probability:.0%}"
        by = ", ".join(
            f"{scorer} rank {values['rank']}"
            for scorer, values in self.why.items()
            if "rank" in values
        )
        return f"<Hit {self.tool.id!r}, score {self.score:.4f}{likely}{f', {by}' if by else ''}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, with probability, flags and enrichment if any."""
        record: dict[str, Any] = {
            "id": self.tool.id,
            "name": self.tool.name,
            "agent": self.tool.agent,
            "score": self.score,
            "description": self.tool.description,
            "kind": self.agent.kind,
            "tags": list(self.tool.tags),
            "input_schema": self.tool.input_schema,
            "why": self.why,
        }
        if self.probability is not None:
            record["probability"] = self.probability
        if self.tool.flags:
            record["flags"] = list(self.tool.flags)
        if self.tool.enrichment:
            record["enrichment"] = self.tool.enrichment.to_dict()
        return record


def call_names(hits: Sequence[Hit]) -> dict[str, Hit]:
    """Return each hit by the unique name under which a model is given it, in their order.

    It is the true name where an API takes it; an invalid character becomes `_`, words of other
    scripts are transliterated, and tools with one name are called `agent__name`. Look the model's
    call up here to find the tool's true name and agent. Skills, prompts and resources are left out:
    nothing can call them.
    """
    callable_hits = {hit.tool.id: hit for hit in hits if hit.agent.kind not in READ_KINDS}
    names = CallNames(
        (identity, hit.tool.name, hit.agent.name) for identity, hit in callable_hits.items()
    ).names
    return {names[identity]: hit for identity, hit in callable_hits.items()}


def as_openai_tools(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog"
) -> list[dict[str, Any]]:
    """Return the hits as the `tools` of an OpenAI chat completion.

    Args:
        hits: named as by `call_names`, or by the names that they are given with.
        descriptions: `written` prefers what an LLM wrote about a tool, and when to use another.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": cut_description(description),
                "parameters": object_schema(tool.input_schema),
            },
        }
        for name, description, tool in _definitions(hits, descriptions)
    ]


def as_responses_tools(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog"
) -> list[dict[str, Any]]:
    """Return the hits as the `tools` of OpenAI's Responses API; arguments as `as_openai_tools`.

    They are not `strict`: that takes only schemas in which every property is required.
    """
    return [
        {"type": "function", **tool["function"], "strict": False}
        for tool in as_openai_tools(hits, descriptions)
    ]


def as_anthropic_tools(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog"
) -> list[dict[str, Any]]:
    """Return the hits as the `tools` of an Anthropic message; arguments as `as_openai_tools`."""
    return [
        {
            "name": name,
            "description": description,
            "input_schema": object_schema(tool.input_schema),
        }
        for name, description, tool in _definitions(hits, descriptions)
    ]


def as_mcp_tools(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog"
) -> list[dict[str, Any]]:
    """Return the hits as the `tools` of MCP's `tools/list`; arguments as `as_openai_tools`."""
    listed: list[dict[str, Any]] = []
    for name, description, tool in _definitions(hits, descriptions):
        definition: dict[str, Any] = {
            "name": name,
            "description": description,
            "inputSchema": object_schema(tool.input_schema),
        }
        if tool.output_schema:
            definition["outputSchema"] = output_schema_for_clients(tool.output_schema)
        if tool.annotations:
            definition["annotations"] = dict(tool.annotations)
        listed.append(definition)
    return listed


def as_gemini_tools(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog"
) -> list[dict[str, Any]]:
    """Return the hits as the `tools` of a Gemini request; arguments as `as_openai_tools`.

    The schemas are `parametersJsonSchema`; the older `parameters` takes no references.
    """
    declarations = [
        {
            "name": name,
            "description": description,
            "parametersJsonSchema": object_schema(tool.input_schema),
        }
        for name, description, tool in _definitions(hits, descriptions)
    ]
    return [{"functionDeclarations": declarations}] if declarations else []


def as_toon(hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions = "catalog") -> str:
    """Return the hits' definitions as TOON, a compact text for a prompt; arguments as
    `as_openai_tools`.

    Model APIs take no TOON as `tools`: use it where a model reads definitions and writes a call as
    text or through a tool such as `call_tool`. Bounds, patterns and defaults are left out.

    Example:
        >>> print(as_toon(board.search("convert 30 dollars to yen", k=1)))
        tools[1]:
          - name: convert_currency
            description: ...
            arguments[2]{name,type}:
              amount?,number
              to?,string
    """
    return toon_definitions(
        [
            (name, description, tool.input_schema)
            for name, description, tool in _definitions(hits, descriptions)
        ]
    )


def _definitions(
    hits: Sequence[Hit] | Mapping[str, Hit], descriptions: Descriptions
) -> Iterator[tuple[str, str, Tool]]:
    """The name under which each hit is given, its description, and the tool."""
    if descriptions not in get_args(Descriptions):
        raise QueryError(
            f"Unknown descriptions '{descriptions}'. Expected one of: catalog, written."
        )
    for name, hit in (hits if isinstance(hits, Mapping) else call_names(hits)).items():
        description = hit.tool.description
        written = hit.tool.enrichment
        if descriptions == "written" and written is not None:
            texts = (written.description or description, written.avoid)
            description = " ".join(filter(None, texts))
        yield name, description, hit.tool
