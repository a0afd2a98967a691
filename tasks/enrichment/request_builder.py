"""Builds the requests of a run: products in the order in which they are made, then agents."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.canonical import digest
from pegboard.records import Agent, Edge, Tool
from tasks.dependencies.infer import candidates_of
from tasks.enrichment.neighbours import Neighbour
from tasks.enrichment.prompts import Prompts, language_words
from tasks.enrichment.requests import Accepted, Chain, ProductPrompts, ProductRequest, RequestSet
from tasks.enrichment.text_checks import ToolNameMatcher
from tasks.enrichment.verdict import Subject
from tasks.safety.prompt_tool import tool_data
from tasks.safety.untrusted import fence_untrusted
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import EnrichSettings, Product

AGENT_TOOLS = 100
"""Tools that the prompt for an agent's description shows."""
DESCRIPTION_CHARACTERS = {"agent tool": 300, "neighbour": 600, "agent": 4_000}
"""Characters of a description that a prompt shows, by whose it is."""


@dataclass(frozen=True, slots=True)
class EnrichOptions:
    """Options for requests beyond the missing ones.

    Attributes:
        refresh_neighbours: describe a tool anew whenever other neighbours would be shown, however
            far they are.
        retry_rejected: ask again where an earlier run's reply was rejected.
    """

    refresh_neighbours: bool = False
    retry_rejected: bool = False


def build_requests(
    configuration: Configuration,
    prompts: Prompts,
    tools: Sequence[Tool],
    agents: Sequence[Agent],
    neighbours: Mapping[str, Sequence[Neighbour]],
    options: EnrichOptions = EnrichOptions(),
) -> RequestSet:
    """Return the requests for these tools and agents.

    Args:
        neighbours: the nearest tools of each tool by id, best first.
    """
    builder = _Builder(configuration, prompts, tools, neighbours, options)
    tools_of: dict[str, list[Tool]] = {}
    for tool in tools:
        tools_of.setdefault(tool.agent, []).append(tool)
    chains = [builder.tool_chain(tool) for tool in tools]
    chains += [
        builder.agent_chain(agent, tools_of[agent.id]) for agent in agents if agent.id in tools_of
    ]
    keys = Counter(request.key for chain in chains for request in chain)
    return RequestSet(
        tuple(chain for chain in chains if chain),
        frozenset(key for key, count in keys.items() if count > 1),
    )


class _Builder:
    def __init__(
        self,
        configuration: Configuration,
        prompts: Prompts,
        tools: Sequence[Tool],
        neighbours: Mapping[str, Sequence[Neighbour]],
        options: EnrichOptions,
    ) -> None:
        assert configuration.enrich is not None
        self.settings: EnrichSettings = configuration.enrich
        self.overrides = configuration.overrides
        self.tools = {tool.id: tool for tool in tools}
        self.neighbours, self.options = neighbours, options
        dependencies = "dependencies" in self.settings.products
        self.candidates: Mapping[str, Sequence[Edge]] = candidates_of(tools) if dependencies else {}
        self.tool_names = ToolNameMatcher(sorted({tool.name for tool in tools}))
        self.prompts: dict[Product, ProductPrompts] = {
            product: ProductPrompts(self.settings, prompts[product], prompts.think, prompts.repair)
            for product in self.settings.products
        }
        self.counts = {"questions": self.settings.questions, "topics": self.settings.topics}
        default = "the language of the tool's own description"
        self.common_values = {
            "context": self.settings.context,
            "language": language_words(self.settings.language, default),
        }

    def tool_chain(self, tool: Tool) -> Chain:
        override = self.overrides.get(tool.id)
        skipped: set[Product] = {"agents"}
        if override is not None and override.description is not None:
            skipped.add("description")  # a person wrote it
        if not _arguments(tool):
            skipped.add("arguments")
        if tool.id not in self.candidates:
            skipped.add("dependencies")
        content = digest(tool.name, tool.description, tool.input_schema, tool.examples)
        return tuple(
            self._tool_request(product, tool, content)
            for product in self.settings.products
            if product not in skipped
        )

    def agent_chain(self, agent: Agent, tools: Sequence[Tool]) -> Chain:
        override = self.overrides.get(agent.id)
        written = override is not None and override.description is not None
        if "agents" not in self.settings.products or written:
            return ()
        # The tools' names, not their descriptions: a better wording of one tool is no reason to
        # describe its agent anew.
        content = digest(agent.name, agent.description, sorted(tool.name for tool in tools))

        def values(_: Accepted) -> dict[str, Any]:
            shown = [
                {"name": tool.name, "description": _shortened(tool, "agent tool")}
                for tool in tools[:AGENT_TOOLS]
            ]
            description = agent.description[: DESCRIPTION_CHARACTERS["agent"]]
            described = {"name": agent.name, "description": description}
            return {
                "agent": fence_untrusted("agent", described),
                "tools": fence_untrusted("tools", shown),
            }

        about = self._subject("agents", agent.name, agent.description)
        return (self._request("agents", agent.id, content, values, about),)

    def _tool_request(self, product: Product, tool: Tool, content: str) -> ProductRequest:
        if product == "dependencies":
            return self._dependencies_request(tool, content)
        nearest = self._nearest(tool) if product == "description" else ()
        neighbours = [self.tools[neighbour.id] for neighbour in nearest]
        about = self._subject(
            product,
            tool.name,
            tool.description,
            examples=tuple(tool.examples),
            arguments=tuple(_arguments(tool)),
            neighbours=tuple(neighbour.name for neighbour in neighbours),
        )

        def values(accepted: Accepted) -> dict[str, Any]:
            shown = [_neighbour_data(neighbour) for neighbour in neighbours]
            siblings = fence_untrusted("neighbours", shown) if shown else ""
            return {"neighbours": siblings, **_tool_values(tool, product, accepted)}

        request = self._request(product, tool.id, content, values, about)
        if product != "description":
            return request
        near_enough = [
            self.tools[neighbour.id]
            for neighbour in nearest
            if self.options.refresh_neighbours or neighbour.cosine >= self.settings.collision
        ]
        return replace(
            request,
            shown=tuple(_version(neighbour) for neighbour in neighbours),
            required=frozenset(_version(neighbour) for neighbour in near_enough),
        )

    def _dependencies_request(self, tool: Tool, content: str) -> ProductRequest:
        edges = self.candidates[tool.id]
        targets = [self.tools[edge.target] for edge in edges]
        shown = [
            {
                "number": number,
                "argument": edge.parameter or "",
                "tool": {**_neighbour_data(target), "arguments": _arguments(target)},
                "proposed": edge.reason,
            }
            for number, (edge, target) in enumerate(zip(edges, targets, strict=True), 1)
        ]
        about = self._subject(
            "dependencies",
            tool.name,
            tool.description,
            arguments=tuple(_arguments(tool)),
            neighbours=tuple(target.name for target in targets),
            candidates=tuple((edge.target, edge.parameter or "") for edge in edges),
        )

        def values(_: Accepted) -> dict[str, Any]:
            candidates = fence_untrusted("candidates", shown)
            return {"tool": fence_untrusted("tool", tool_data(tool)), "candidates": candidates}

        return self._request("dependencies", tool.id, digest(content, shown), values, about)

    def _request(
        self,
        product: Product,
        subject: str,
        content: str,
        values: Callable[[Accepted], Mapping[str, Any]],
        about: Subject,
    ) -> ProductRequest:
        prompts, settings = self.prompts[product], self.settings
        count = self.counts.get(product, 0)
        thinking = prompts.think.version if settings.think else None
        parameters = [settings.temperature, settings.max_reply_tokens, settings.structured, count]
        wording = [prompts.prompt.version, thinking, settings.context, settings.language]
        return ProductRequest(
            product=product,
            subject=subject,
            key=digest(product, content, settings.model, wording, parameters),
            content=digest(product, content),
            prompts=prompts,
            values=lambda accepted: {"count": count, **self.common_values, **values(accepted)},
            about=about,
            retry_rejected=self.options.retry_rejected,
        )

    def _subject(self, product: Product, name: str, description: str, **fields: Any) -> Subject:
        return Subject(
            product=product,
            name=name,
            description=description,
            tool_names=self.tool_names,
            language=self.settings.language,
            count=self.counts.get(product, 0),
            **fields,
        )

    def _nearest(self, tool: Tool) -> Sequence[Neighbour]:
        return self.neighbours.get(tool.id, ())[: self.settings.neighbours]


def _tool_values(tool: Tool, product: Product, accepted: Accepted) -> dict[str, Any]:
    """What a prompt shows of the tool; later products use the new description and questions."""
    if product not in ("questions", "topics"):
        return {"tool": fence_untrusted("tool", tool_data(tool))}
    description = accepted.get("description")
    shown = tool_data(tool, description=description["description"] if description else None)
    questions = accepted.get("questions") or list(tool.examples)
    return {
        "tool": fence_untrusted("tool", shown),
        "questions": fence_untrusted("questions", questions),
    }


def _arguments(tool: Tool) -> list[str]:
    properties = tool.input_schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _neighbour_data(tool: Tool) -> dict[str, str]:
    return {
        "name": tool.name,
        "agent": tool.agent.rpartition("/")[2],
        "description": _shortened(tool, "neighbour"),
    }


def _shortened(tool: Tool, place: str) -> str:
    return tool_data(tool)["description"][: DESCRIPTION_CHARACTERS[place]]


def _version(tool: Tool) -> str:
    return f"{tool.id}@{digest(tool.name, tool.description)[:12]}"
