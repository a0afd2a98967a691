"""Requests of an enrichment: one for each product of each tool and agent.

A request knows nothing of time or network. From the replies in the ledger it says what to ask next,
and turns a reply into an entry of the ledger. So a run that was killed continues at the very reply
where it stopped. Products are asked for in their order, since later ones use earlier ones; agents
come last."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pegboard.canonical import canonical_json, digest
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.prompts import Prompt
from pegboard.records import Agent, Tool
from pegboard.text.redaction import redact_credentials
from tasks.enrichment.enrichment_sets import PreviousTexts
from tasks.enrichment.ledger import LakeLedger, Step, StoredReply
from tasks.enrichment.near_duplicates import near_duplicate, word_set
from tasks.enrichment.neighbours import Neighbour
from tasks.enrichment.products import schema_of
from tasks.enrichment.prompts import language_words
from tasks.enrichment.replies import CUT_OFF_REASONS, Subject, ToolNameMatcher, judge
from tasks.safety.prompt_tool import tool_data
from tasks.safety.untrusted import fence_untrusted
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import DEFAULT_REPLY_TOKENS, EnrichSettings, Product

Accepted = Mapping[Product, Any]
"""The values accepted for a tool so far, by product: later products are made from earlier ones."""
REPAIR_CHARACTERS = 6_000
"""Characters of an invalid reply that a repair shows to the model."""
AGENT_TOOLS = 100
"""Maximum tools that the prompt for an agent's description shows."""
DESCRIPTION_CHARACTERS = {"agent tool": 300, "neighbour": 600, "agent": 4_000}
"""Maximum characters of a description in a prompt, by the kind of its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRequest:
    """One product for one tool or agent.

    Attributes:
        subject: the id of the tool or agent.
        key: identifies the request in the ledger.
        content: the digest of what it is about, whatever the prompt and the model.
        values: the prompt's values, given what was accepted so far. Called when something is to be
            asked, which for most requests of most runs is never.
        about: what a reply is judged by.
        shown: the neighbours in the prompt, as `id@digest`.
        required: those of them that a reply must have been shown; where one is new, the LLM is
            asked again.
    """

    product: Product
    subject: str
    key: str
    content: str
    settings: EnrichSettings
    prompts: Mapping[str, Prompt]
    values: Callable[[Accepted], Mapping[str, Any]]
    about: Subject
    shown: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()

    @property
    def wording(self) -> str:
        """The prompt's version and the digest of its file, as the ledger records them."""
        return f"{self.prompt.version}:{self.prompt.digest[:16]}"

    @property
    def prompt(self) -> Prompt:
        """The prompt of its product."""
        return self.prompts[self.product]

    def final_reply(self, ledger: LakeLedger) -> StoredReply | None:
        """Return the last accepted reply, else the last that was finally rejected, if any.

        A rejected one that was cut off under a lower `max_reply_tokens` is not final any more.
        """
        finals = [
            reply
            for reply in ledger.entries(self.key)
            if reply.final
            and self.required <= set(reply.shown)
            and not (
                reply.reason in CUT_OFF_REASONS
                and reply.max_reply_tokens < self.settings.max_reply_tokens
            )
        ]
        accepted = [reply for reply in finals if reply.value is not None]
        return next(reversed(accepted or finals), None)

    def next_call(self, ledger: LakeLedger, accepted: Accepted) -> tuple[Step, ChatRequest]:
        """Return the next call and its step, given the replies in the ledger."""
        steps = {reply.step: reply for reply in self._unfinished(ledger)}
        schema = json.dumps(schema_of(self.product))
        shown = schema if self.settings.structured == "text" else ""
        messages = self.prompt.messages(**self.values(accepted), schema=shown)
        if "reply" not in steps:
            return "reply", self._chat_request(messages)
        repair = self.prompts["repair"]
        problem = repair.messages(problem=steps["reply"].detail, schema=schema)[-1]
        reply = Message("assistant", steps["reply"].raw[:REPAIR_CHARACTERS])
        return "repair", self._chat_request((*messages, reply, problem))

    def judge_reply(self, step: Step, reply: ChatReply, run: str) -> StoredReply:
        """Return the ledger's entry for a reply: judged, and final if no call is left."""
        stored = stored_reply(
            reply,
            key=self.key,
            step=step,
            product=self.product,
            subject=self.subject,
            prompt=self.wording,
            model=self.settings.model,
            shown=self.shown,
            content=self.content,
            max_reply_tokens=self.settings.max_reply_tokens,
            run=run,
        )
        verdict = judge(reply.text, reply.finish_reason, self.about)
        return replace(
            stored,
            # A model that spent its budget on reasoning would spend it again on a repair.
            final=verdict.value is not None or step == "repair" or verdict.reason == "spent",
            value=None if verdict.value is None else canonical_json(verdict.value),
            reason=verdict.reason,
            detail=verdict.detail,
            dropped=json.dumps([list(item) for item in verdict.dropped], ensure_ascii=False),
        )

    def _unfinished(self, ledger: LakeLedger) -> list[StoredReply]:
        """The replies since the last final one, if the prompt showed the same neighbours."""
        unfinished: list[StoredReply] = []
        for reply in ledger.entries(self.key):
            unfinished = [] if reply.final else [*unfinished, reply]
        return [reply for reply in unfinished if reply.shown == self.shown]

    def _chat_request(self, messages: Sequence[Message]) -> ChatRequest:
        return ChatRequest(
            messages=tuple(messages),
            max_tokens=self.settings.max_reply_tokens,
            temperature=self.settings.temperature,
            schema=schema_of(self.product) if self.settings.structured == "schema" else None,
            schema_name=self.product,
        )


Chain = tuple[ProductRequest, ...]
"""The requests of one tool or agent, each of which may use the values accepted before it."""


class AcceptedValues:
    """The accepted values of requests, and older ones until they exist.

    An older value is what an earlier prompt or model wrote about the same content. Where there is
    none, it is what the previous enrichment set has for the tool or agent, from the time before it
    changed.

    Attributes:
        kept: values that are an earlier prompt's or model's, by product.
        outdated: values about an earlier version of the tool or agent, by product.
    """

    def __init__(self, ledger: LakeLedger, previous: PreviousTexts) -> None:
        self.kept: Counter[Product] = Counter()
        self.outdated: Counter[Product] = Counter()
        self._ledger = ledger
        self._previous = previous
        self._earlier: dict[tuple[str, str], StoredReply] = {}
        for reply in sorted(ledger.all(), key=lambda reply: reply.at):
            if reply.value is not None and reply.content:
                self._earlier[reply.product, reply.content] = reply

    def of(self, chain: Chain) -> dict[Product, Any]:
        """Return the values of a chain by product."""
        values: dict[Product, Any] = {}
        for request in chain:
            reply = request.final_reply(self._ledger)
            if reply is None or reply.value is None:
                reply = self._earlier.get((request.product, request.content))
                self.kept[request.product] += reply is not None
            if reply is not None and reply.value is not None:
                values[request.product] = json.loads(reply.value)
            elif value := _still_valid(request, self._previous):
                values[request.product] = value
                self.outdated[request.product] += 1
        return values


def _still_valid(request: ProductRequest, previous: PreviousTexts) -> Any:
    """Return the previous value without notes on arguments that are gone, and without questions
    that are examples of the catalog now; None if there is none.
    """
    value = previous.value(request.product, request.subject)
    if request.product == "arguments" and value:
        return {name: value[name] for name in request.about.arguments if name in value}
    if request.product == "questions" and value:
        examples = [word_set(example) for example in request.about.examples]
        return [text for text in value if not near_duplicate(word_set(text), examples)]
    return value


def stored_reply(reply: ChatReply, *, model: str, **fields: Any) -> StoredReply:
    """Return a reply as the ledger stores it, without credentials.

    Args:
        model: the configured model; another one may have answered.
        fields: the other fields of `StoredReply`.
    """
    return StoredReply(
        model=model,
        answered_by=reply.model,
        raw=redact_credentials(reply.text),
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
        seconds=round(reply.seconds, 3),
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        **fields,
    )


def build_requests(
    configuration: Configuration,
    prompts: Mapping[str, Prompt],
    tools: Sequence[Tool],
    agents: Sequence[Agent],
    neighbours: Mapping[str, Sequence[Neighbour]],
) -> tuple[Chain, ...]:
    """Return the requests for these tools and agents: tools first, agents last.

    Args:
        neighbours: the nearest tools of each tool by id, best first.
    """
    builder = _Builder(configuration, prompts, tools, neighbours)
    tools_of: dict[str, list[Tool]] = {}
    for tool in tools:
        tools_of.setdefault(tool.agent, []).append(tool)
    chains = [builder.tool_chain(tool) for tool in tools]
    chains += [
        builder.agent_chain(agent, tools_of[agent.id]) for agent in agents if agent.id in tools_of
    ]
    return tuple(chain for chain in chains if chain)


class _Builder:
    def __init__(
        self,
        configuration: Configuration,
        prompts: Mapping[str, Prompt],
        tools: Sequence[Tool],
        neighbours: Mapping[str, Sequence[Neighbour]],
    ) -> None:
        assert configuration.enrich is not None
        self.settings: EnrichSettings = configuration.enrich
        self.overrides = configuration.overrides
        self.tools = {tool.id: tool for tool in tools}
        self.neighbours = neighbours
        self.tool_names = ToolNameMatcher(sorted({tool.name for tool in tools}))
        self.prompts = prompts
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
            if neighbour.cosine >= self.settings.collision
        ]
        return replace(
            request,
            shown=tuple(_version(neighbour) for neighbour in neighbours),
            required=frozenset(_version(neighbour) for neighbour in near_enough),
        )

    def _request(
        self,
        product: Product,
        subject: str,
        content: str,
        values: Callable[[Accepted], Mapping[str, Any]],
        about: Subject,
    ) -> ProductRequest:
        prompts = self.prompts
        settings = self.settings
        count = self.counts.get(product, 0)
        parameters: list[Any] = [
            settings.temperature,
            DEFAULT_REPLY_TOKENS,  # an accepted reply is good under any limit
            settings.structured,
            count,
        ]
        if settings.options:  # stored replies to requests without options have no place for them
            parameters.append(settings.options)
        # None stands where the version of a prompt that is gone was; stored keys have it.
        wording = [prompts[product].version, None, settings.context, settings.language]
        return ProductRequest(
            product=product,
            subject=subject,
            key=digest(product, content, settings.model, wording, parameters),
            content=digest(product, content),
            settings=settings,
            prompts=prompts,
            values=lambda accepted: {"count": count, **self.common_values, **values(accepted)},
            about=about,
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
