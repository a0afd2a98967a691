"""Dependencies that an LLM proposes, for people to read and to take over as `[overrides]`.

Each request shows some tools of an agent whole, and all tools of the agent in short, from which it
chooses. What a reply says is held to the catalog: names that the agent does not have are left out,
and counted. A proposal counts for nothing until it stands in a pegboard.toml, where it is
declared; what it is worth is measured by `python -m benchmarks llm --only edges`.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pegboard.errors import BudgetExhausted, CompletionError
from pegboard.llm import ChatRequest, Completer
from pegboard.llm.client import Client
from pegboard.llm.prompts import Prompt, PromptFormat, read_prompt
from pegboard.llm.replies import json_objects
from pegboard.records import Edge, Tool
from pegboard.text.redaction import redact_credentials
from tasks.dependencies.infer import MAX_EDGES, dependency_type
from tasks.enrichment.models import client_for
from tasks.enrichment.products import inlined_schema
from tasks.enrichment.prompts import language_words
from tasks.safety.prompt_tool import tool_data
from tasks.safety.untrusted import fence_untrusted, flags_of_text, visible
from tasks.settings.enrichment import EnrichSettings

TOOLS_PER_REQUEST = 20
"""Largest number of tools whose dependencies one request asks for."""
CANDIDATE_CHARACTERS = 60_000
"""Largest number of characters that the short descriptions of an agent's tools have together: about
15,000 tokens. The more tools, the shorter each."""
SHORT_DESCRIPTION = 160
"""Largest number of characters of a description in the list of all tools."""
REPLY_TOKENS_PER_TOOL = 250
"""Reply tokens for each tool that is asked about: six dependencies with their reasons."""
BUILTIN_PROMPT = Path(__file__).parent / "prompts" / "dependencies.md"
PROMPT_FORMAT = PromptFormat(
    ("candidates", "tools", "count", "language", "schema"), required=("candidates", "tools")
)

Text = Annotated[str, AfterValidator(visible)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NeedReply(_Reply):
    """A tool that another one needs."""

    tool: Text = Field(description="the exact name of the needed tool")
    argument: Text = Field(description="the argument that it provides or checks; may be empty")
    direct: bool = Field(description="whether the tool cannot be called without it")
    reason: Text = Field(description="why it is needed, in one sentence")


class ToolNeedsReply(_Reply):
    """What one tool needs."""

    name: Text = Field(description="the exact name of the tool")
    needs: list[NeedReply] = Field(description="what it needs, the most important first")


class DependenciesReply(_Reply):
    """What some tools need."""

    tools: list[ToolNeedsReply] = Field(description="one entry for each tool")


@dataclass(slots=True)
class Proposals:
    """What an LLM proposed.

    Attributes:
        edges: in the order of the tools, those of a tool by importance. They count as declared.
        dropped: how many proposals or replies could not be used, by reason.
        unanswered: tools about which there is no reply that could be used.
        client: what was spent, and why the run ended early, if it did.
    """

    client: Client
    edges: list[Edge] = field(default_factory=list[Edge])
    dropped: Counter[str] = field(default_factory=Counter[str])
    unanswered: list[str] = field(default_factory=list[str])

    @property
    def reasons(self) -> str:
        """`dropped` as text: `3 the tool itself, 1 no valid reply`."""
        return ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())


def propose_dependencies(
    tools: Iterable[Tool], settings: EnrichSettings, completer: Completer
) -> Proposals:
    """Ask an LLM on which tools of the same agent each tool depends.

    Args:
        settings: model, context, language, temperature and budget; the rest is about enrichment.
    """
    prompt = read_prompt(BUILTIN_PROMPT, PROMPT_FORMAT)
    batches = list(_batches(tools))
    requests = [_request(batch, prompt, settings) for batch in batches]
    proposals = Proposals(client_for(settings, completer))
    texts = asyncio.run(_replies(proposals.client, requests))
    for batch, text in zip(batches, texts, strict=True):
        _use(batch, text, proposals)
    return proposals


@dataclass(frozen=True, slots=True)
class _Batch:
    """Tools that one request asks about.

    Attributes:
        siblings: all tools of their agent by name.
        listing: these in short, as the prompt shows them.
    """

    tools: tuple[Tool, ...]
    siblings: Mapping[str, Tool]
    listing: str


def _batches(tools: Iterable[Tool]) -> Iterator[_Batch]:
    by_agent = groupby(sorted(tools, key=attrgetter("agent", "id")), attrgetter("agent"))
    for _, agent_tools in by_agent:
        siblings = {tool.name: tool for tool in agent_tools}
        if len(siblings) < 2:
            continue
        own = tuple(siblings.values())
        listing = fence_untrusted("candidates", _short_list(siblings))
        for start in range(0, len(own), TOOLS_PER_REQUEST):
            yield _Batch(own[start : start + TOOLS_PER_REQUEST], siblings, listing)


def _request(batch: _Batch, prompt: Prompt, settings: EnrichSettings) -> ChatRequest:
    schema = inlined_schema(DependenciesReply)
    messages = prompt.messages(
        candidates=batch.listing,
        tools=fence_untrusted("tools", [_without_examples(tool) for tool in batch.tools]),
        count=MAX_EDGES,
        context=settings.context,
        language=language_words(settings.language, "the language of the descriptions"),
        schema=json.dumps(schema) if settings.structured == "text" else "",
    )
    return ChatRequest(
        messages=messages,
        max_tokens=max(settings.max_reply_tokens, REPLY_TOKENS_PER_TOOL * len(batch.tools)),
        temperature=settings.temperature,
        schema=schema if settings.structured == "schema" else None,
        schema_name="dependencies",
    )


def _short_list(siblings: Mapping[str, Tool]) -> dict[str, str]:
    """Return the tools of an agent by name with the beginnings of their descriptions."""
    length = min(SHORT_DESCRIPTION, CANDIDATE_CHARACTERS // len(siblings))
    return {
        name: " ".join(tool_data(tool)["description"].split())[:length]
        for name, tool in siblings.items()
    }


def _without_examples(tool: Tool) -> dict[str, Any]:
    return {name: value for name, value in tool_data(tool).items() if name != "examples"}


async def _replies(client: Client, requests: Sequence[ChatRequest]) -> list[str | None]:
    """Return the text of each reply; None where there is none."""
    texts: list[str | None] = [None] * len(requests)

    async def ask(at: int) -> None:
        try:
            texts[at] = (await client.ask(requests[at])).text
        except (BudgetExhausted, CompletionError):
            return

    async with client:
        await client.for_each(range(len(requests)), ask)
    return texts


def _use(batch: _Batch, text: str | None, proposals: Proposals) -> None:
    """Add the edges of a reply, and count what of it cannot be used."""
    reply = None if text is None else _parsed(text)
    if reply is None:
        proposals.dropped["no valid reply"] += int(text is not None)
        proposals.unanswered += [tool.id for tool in batch.tools]
        return
    needs = {entry.name: entry.needs for entry in reply.tools}
    names = {tool.name for tool in batch.tools}
    proposals.dropped["a tool that was not asked about"] += len(needs.keys() - names)
    for tool in batch.tools:
        if tool.name not in needs:
            proposals.unanswered.append(tool.id)
            continue
        edges: dict[tuple[str, str | None], Edge] = {}
        for need in needs[tool.name]:
            problem = _problem(tool, need, batch.siblings) or _surplus(edges)
            if problem:
                proposals.dropped[problem] += 1
                continue
            edge = _edge(tool, need, batch.siblings)
            edges.setdefault((edge.target, edge.parameter), edge)
        proposals.edges += edges.values()
    proposals.dropped = +proposals.dropped


def _parsed(text: str) -> DependenciesReply | None:
    try:
        return DependenciesReply.model_validate(next(json_objects(text), None))
    except ValidationError:
        return None


def _problem(tool: Tool, need: NeedReply, siblings: Mapping[str, Tool]) -> str:
    """Return why a proposal cannot be used; empty if it can."""
    arguments = tool.input_schema.get("properties")
    if need.tool not in siblings:
        return "a tool that the agent does not have"
    if need.tool == tool.name:
        return "the tool itself"
    if need.argument and need.argument not in (arguments if isinstance(arguments, Mapping) else ()):
        return "an argument that the tool does not have"
    if flags_of_text(need.reason) or redact_credentials(need.reason) != need.reason:
        return "instructions or a credential in the reason"
    return ""


def _surplus(edges: Mapping[tuple[str, str | None], Edge]) -> str:
    return "more than were asked for" if len(edges) >= MAX_EDGES else ""


def _edge(tool: Tool, need: NeedReply, siblings: Mapping[str, Tool]) -> Edge:
    parameter = need.argument or None
    edge_type = dependency_type(parameter, need.direct)
    reason = " ".join(need.reason.split())
    return Edge(tool.id, siblings[need.tool].id, edge_type, parameter, reason)


def overrides_toml(edges: Sequence[Edge]) -> str:
    """Return edges as the tables `[overrides]` of a pegboard.toml, in their order."""
    by_source: dict[str, list[Edge]] = {}
    for edge in edges:
        by_source.setdefault(edge.source, []).append(edge)
    return "\n".join(
        "\n".join(
            [
                f"[overrides.{_quoted(source)}]",
                "dependencies = [",
                *(f"  {_dependency(edge)}," for edge in own),
                "]\n",
            ]
        )
        for source, own in by_source.items()
    )


def _dependency(edge: Edge) -> str:
    fields = {
        "tool": edge.target,
        "parameter": edge.parameter,
        "type": edge.type,
        "reason": edge.reason,
    }
    values = (f"{name} = {_quoted(value)}" for name, value in fields.items() if value)
    return f"{{ {', '.join(values)} }}"


def _quoted(text: str) -> str:
    """Return a TOML string, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
