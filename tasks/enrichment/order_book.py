"""Every order of a run: the products of each tool, in the order in which they are made, and the
agents' descriptions.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.canonical import digest
from pegboard.records import Agent, Edge, Tool
from tasks.dependencies.edges import candidates_of
from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.neighbours import Neighbour
from tasks.enrichment.orders import Made, Order, Stationery
from tasks.enrichment.prompts import Prompts
from tasks.enrichment.replies import Subject
from tasks.enrichment.reply_names import OtherNames
from tasks.safety.text import fenced
from tasks.safety.tool import tool_data
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import EnrichSettings, Product

LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "en": "English", "es": "Spanish", "fi": "Finnish",
    "fr": "French", "he": "Hebrew", "hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
AGENT_TOOLS = 100
"""Tools that the prompt for an agent's description shows."""

Chain = tuple[Order, ...]
"""The orders of one tool or agent, each of which may use what came of those before it."""


@dataclass(frozen=True, slots=True)
class OrderBook:
    """All chains, tools first, agents last; `shared` are the keys of orders that several tools have
    in common.
    """

    chains: tuple[Chain, ...]
    shared: frozenset[str]

    def orders(self) -> Iterator[Order]:
        """Every order."""
        return (order for chain in self.chains for order in chain)

    def missing(self, ledger: LakeLedger) -> bool:
        """Whether there is anything to buy."""
        return any(order.answer(ledger) is None for order in self.orders())

    @staticmethod
    def write(
        configuration: Configuration,
        prompts: Prompts,
        tools: Sequence[Tool],
        agents: Sequence[Agent],
        neighbours: Mapping[str, Sequence[Neighbour]],
        *,
        refresh_neighbours: bool = False,
        retry_rejected: bool = False,
    ) -> "OrderBook":
        """Write the orders for these tools and agents.

        Args:
            neighbours: the nearest tools of each tool by id, best first.
            refresh_neighbours: buy a description anew whenever other neighbours would be shown,
                however far they are.
            retry_rejected: ask again where an earlier run's reply was rejected.
        """
        writer = _Writer(
            configuration, prompts, tools, neighbours, refresh_neighbours, retry_rejected
        )
        by_agent: dict[str, list[Tool]] = {}
        for tool in tools:
            by_agent.setdefault(tool.agent, []).append(tool)
        chains = [writer.tool_chain(tool) for tool in tools]
        chains += [
            writer.agent_chain(agent, by_agent[agent.id])
            for agent in agents
            if agent.id in by_agent
        ]
        keys = Counter(order.key for chain in chains for order in chain)
        return OrderBook(
            tuple(chain for chain in chains if chain),
            frozenset(key for key, count in keys.items() if count > 1),
        )


class _Writer:
    def __init__(
        self,
        configuration: Configuration,
        prompts: Prompts,
        tools: Sequence[Tool],
        neighbours: Mapping[str, Sequence[Neighbour]],
        refresh_neighbours: bool,
        retry_rejected: bool,
    ) -> None:
        assert configuration.enrich is not None
        self.settings: EnrichSettings = configuration.enrich
        self.overrides = configuration.overrides
        self.prompts = prompts
        self.tools = {tool.id: tool for tool in tools}
        self.neighbours = neighbours
        self.refresh, self.fresh = refresh_neighbours, retry_rejected
        asked = "dependencies" in self.settings.products
        self.candidates: Mapping[str, Sequence[Edge]] = candidates_of(tools) if asked else {}
        self.names = OtherNames(sorted({tool.name for tool in tools}))
        self.stationery: dict[Product, Stationery] = {
            product: Stationery(self.settings, prompts[product], prompts.think, prompts.repair)
            for product in self.settings.products
        }
        language = self.settings.language
        self.common = {
            "context": self.settings.context,
            "language": LANGUAGES.get(language, language)
            if language
            else "the language of the tool's own description",
        }

    def tool_chain(self, tool: Tool) -> Chain:
        decided = self.overrides.get(tool.id)
        skip: set[Product] = {"agents"}
        if decided is not None and decided.description is not None:
            skip.add("description")  # a person wrote it
        if not _arguments(tool):
            skip.add("arguments")
        if tool.id not in self.candidates:
            skip.add("dependencies")
        content = digest(tool.name, tool.description, tool.input_schema, tool.examples)
        return tuple(
            self._tool_order(product, tool, content)
            for product in self.settings.products
            if product not in skip
        )

    def agent_chain(self, agent: Agent, tools: Sequence[Tool]) -> Chain:
        decided = self.overrides.get(agent.id)
        if "agents" not in self.settings.products or (
            decided is not None and decided.description is not None
        ):
            return ()
        # The tools' names, not their descriptions: a better wording of one tool is no reason to
        # describe its agent anew.
        content = digest(agent.name, agent.description, sorted(tool.name for tool in tools))

        def values(_: Made) -> dict[str, Any]:
            shown = [
                {"name": one.name, "description": tool_data(one)["description"][:300]}
                for one in tools[:AGENT_TOOLS]
            ]
            described = {"name": agent.name, "description": agent.description[:4_000]}
            return {"agent": fenced("agent", described), "tools": fenced("tools", shown)}

        about = self._subject("agents", agent.name, agent.description, (), (), ())
        return (self._order("agents", agent.id, content, values, about),)

    def _tool_order(self, product: Product, tool: Tool, content: str) -> Order:
        if product == "dependencies":
            return self._dependencies_order(tool, content)
        near = [self.tools[one.id] for one in self._near(tool)] if product == "description" else []
        about = self._subject(
            product,
            tool.name,
            tool.description,
            tool.examples,
            _arguments(tool),
            [one.name for one in near],
        )

        def values(made: Made) -> dict[str, Any]:
            siblings = fenced("neighbours", [_neighbour(one) for one in near]) if near else ""
            return {"neighbours": siblings, **_tool_values(tool, product, made)}

        if product != "description":
            return self._order(product, tool.id, content, values, about)
        closest = [
            one for one in self._near(tool) if self.refresh or one.cosine >= self.settings.collision
        ]
        return self._order(
            product,
            tool.id,
            content,
            values,
            about,
            shown=tuple(_shown(one) for one in near),
            required=frozenset(_shown(self.tools[one.id]) for one in closest),
        )

    def _dependencies_order(self, tool: Tool, content: str) -> Order:
        edges = self.candidates[tool.id]
        targets = [self.tools[edge.target] for edge in edges]
        shown = [
            {
                "number": number,
                "argument": edge.parameter or "",
                "tool": {**_neighbour(target), "arguments": _arguments(target)},
                "proposed": edge.reason,
            }
            for number, (edge, target) in enumerate(zip(edges, targets, strict=True), 1)
        ]
        about = replace(
            self._subject(
                "dependencies",
                tool.name,
                tool.description,
                (),
                _arguments(tool),
                [target.name for target in targets],
            ),
            candidates=tuple((edge.target, edge.parameter or "") for edge in edges),
        )

        def values(_: Made) -> dict[str, Any]:
            return {
                "tool": fenced("tool", tool_data(tool)),
                "candidates": fenced("candidates", shown),
            }

        return self._order("dependencies", tool.id, digest(content, shown), values, about)

    def _order(
        self,
        product: Product,
        subject: str,
        content: str,
        values: Callable[[Made], Mapping[str, Any]],
        about: Subject,
        shown: tuple[str, ...] = (),
        required: frozenset[str] = frozenset(),
    ) -> Order:
        stationery, settings = self.stationery[product], self.settings
        count = {"questions": settings.questions, "topics": settings.topics}.get(product, 0)
        thinking = stationery.think.version if settings.think else None
        parameters = [settings.temperature, settings.max_reply_tokens, settings.structured, count]
        wording = [stationery.prompt.version, thinking, settings.context, settings.language]
        return Order(
            product=product,
            subject=subject,
            key=digest(product, content, settings.model, wording, parameters),
            stationery=stationery,
            values=lambda made: {"count": count, **self.common, **values(made)},
            about=about,
            shown=shown,
            required=required,
            fresh=self.fresh,
        )

    def _subject(
        self,
        product: Product,
        name: str,
        description: str,
        examples: Sequence[str],
        arguments: Collection[str],
        neighbours: Sequence[str],
    ) -> Subject:
        return Subject(
            product=product,
            name=name,
            description=description,
            examples=tuple(examples),
            arguments=tuple(arguments),
            neighbours=tuple(neighbours),
            other_names=self.names,
            instructions=self.prompts[product].instructions,
            language=self.settings.language,
            count={"questions": self.settings.questions, "topics": self.settings.topics}.get(
                product, 0
            ),
        )

    def _near(self, tool: Tool) -> Sequence[Neighbour]:
        return self.neighbours.get(tool.id, ())[: self.settings.neighbours]


def _tool_values(tool: Tool, product: Product, made: Made) -> dict[str, Any]:
    """What a prompt shows of the tool; a later product takes from the earlier ones the new
    description, and the questions.
    """
    if product not in ("questions", "topics"):
        return {"tool": fenced("tool", tool_data(tool))}
    description = made.get("description")
    shown = tool_data(tool, description=description["description"] if description else None)
    questions = made.get("questions") or list(tool.examples)
    return {"tool": fenced("tool", shown), "questions": fenced("questions", questions)}


def _arguments(tool: Tool) -> list[str]:
    properties = tool.input_schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _neighbour(tool: Tool) -> dict[str, str]:
    return {
        "name": tool.name,
        "agent": tool.agent.rpartition("/")[2],
        "description": tool_data(tool)["description"][:600],
    }


def _shown(tool: Tool) -> str:
    return f"{tool.id}@{digest(tool.name, tool.description)[:12]}"
