"""What LLM parts share: prompts, the text of tools and steps in them, replies and fallbacks.

The library's prompt files stand in `prompts/`; those that a release publishes replace them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from pegboard.llm import ChatRequest
from pegboard.llm.prompts import REPLY_TOKENS, Prompt, PromptFormat, fenced, read_prompt
from pegboard.ranking import ScoredTool
from pegboard.records import Tool
from pegboard.retrieval.context import Context
from pegboard.retrieval.found import NO_LLM
from pegboard.retrieval.llm.replies import (
    UnusableReply,
    names_schema,
    read_names,
    with_thoughts,
)
from pegboard.retrieval.parts import LlmCalls, Part
from pegboard.retrieval.requests import Candidates, Query, Ranking
from pegboard.text.redaction import redact_credentials
from pegboard.text.words import singular_words

Value = TypeVar("Value")

PROMPTS = Path(__file__).parent / "prompts"
_FORMAT = PromptFormat(
    values=("request", "history", "steps", "searches", "tools", "count", "language", "thoughts"),
    required=("request", "steps"),
)
FORMATS: dict[str, PromptFormat] = dict.fromkeys(
    (
        *("rewrite", "agent-query", "decompose", "context-decompose", "expand", "step-back"),
        *("rerank", "rerank-steps", "look", "select", "post-select", "grade", "reflect"),
    ),
    _FORMAT,
)
"""The format of every prompt; a part leaves those values empty that it does not have."""
REQUEST_CHARACTERS = 4_000
DESCRIPTION_CHARACTERS = 300
"""Maximum characters of a tool's description in a prompt: two or three sentences. Twenty tools of
LiveMCPBench take about 1,200 tokens.
"""
AVOID_CHARACTERS = 1_500
"""Maximum characters of what a tool is not for: all of it, since a build accepts no longer text."""
ARGUMENTS = 16
"""Maximum arguments of a tool in a prompt, required ones first."""
NAME_CHARACTERS = 64
MESSAGES = 6
"""Number of last messages of the conversation in a prompt: pronouns refer to recent ones."""
MESSAGE_CHARACTERS = 500
COPIED_WORDS = 4
"""A text of at least this many words that stands in the prompt counts as copied from it."""
STEP_TOOLS = 5
"""Number of first tools of a step or search in a prompt, as in the paper."""
THOUGHTS = (
    'The object begins with "thoughts": one text of at most three sentences on what the request '
    "needs and what speaks for and against your answer. The rest follows as described."
)
"""What a prompt says of the thoughts before an answer, if they are asked for."""
FEW_SHOTS = "Requests of users, each with the tools that serve it:"
"""What a prompt says of the release's requests with their tools."""
_WITHHELD = "(withheld: the catalog's text is suspicious)"


@dataclass(frozen=True, slots=True)
class Question(Generic[Value]):
    """One question, and how its reply is read.

    Attributes:
        prompt: the name of its prompt.
        values: of the prompt.
        schema: the JSON Schema of the reply.
        read: returns the value of a reply, or raises UnusableReply.
    """

    prompt: str
    values: Mapping[str, Any]
    schema: Mapping[str, Any]
    read: Callable[[str], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmPart(Part):
    """A part that asks an LLM, and what all of them have in common.

    Attributes:
        reply_tokens: the most tokens of a reply.
        thoughts: whether the LLM writes its thoughts before its answer, as the agents of RPS do
            (appendix B). They count as tokens of the reply, and nothing reads them.
    """

    reply_tokens: int = REPLY_TOKENS
    thoughts: bool = False

    def llm_calls(self) -> LlmCalls:
        """Return the calls: one for each request, unless a class says otherwise."""
        return LlmCalls(request=1)

    async def consult_one(self, context: Context, question: Question[Value]) -> Value | None:
        """Return what the LLM replies to one question; None as in `consult`."""
        return (await self.consult(context, [question]))[0]

    async def consult(
        self, context: Context, questions: Sequence[Question[Value]]
    ) -> list[Value | None]:
        """Return what the LLM replies to each question, asked concurrently.

        None stands for a question that was not answered as it should be. The trace gets the reason,
        with the number of questions that failed if others were answered.

        Raises:
            ConfigurationError: a published prompt has problems; lists all of them.
        """
        trace = context.trace
        if context.caller is None:
            trace.fallback_reason = NO_LLM
            return [None for _ in questions]
        if not questions:
            return []
        earlier_reason = trace.fallback_reason
        trace.fallback_reason = None
        requests = [self._request(question, context) for question in questions]
        replies = await context.ask(requests)
        values: list[Value | None] = []
        reason = trace.fallback_reason
        for question, request, reply in zip(questions, requests, replies, strict=True):
            value = None
            if reply is not None:
                try:
                    value = _not_copied(question.read(reply), request)
                except UnusableReply as unusable:
                    reason = reason or f"the reply {unusable}"
            values.append(value)
        missing = sum(value is None for value in values)
        if missing:
            reason = reason or "the LLM did not answer"
            earlier_reason = (
                reason if missing == len(values) else f"for {missing} of {len(values)}: {reason}"
            )
        trace.fallback_reason = earlier_reason
        return values

    def _request(self, question: Question[Any], context: Context) -> ChatRequest:
        manifest = context.loaded.release.manifest
        published = manifest.get("prompts", {})
        prompt = _prompt(question.prompt, published.get(question.prompt))
        schema = question.schema
        values: dict[str, Any] = {
            **question.values,
            "context": manifest.get("context") or "",
            "examples": show_few_shots(manifest.get("few_shots") or (), context.log.original),
        }
        if self.thoughts:
            schema = with_thoughts(schema)
            values["thoughts"] = THOUGHTS
        return prompt.request(schema, max_tokens=self.reply_tokens, **values)


def check_prompts(published: Mapping[str, str]) -> None:
    """Raise ConfigurationError for a prompt of a release that cannot be used."""
    for name in published.keys() & FORMATS.keys():
        _prompt(name, published[name])


@lru_cache(maxsize=64)
def _prompt(name: str, published: str | None) -> Prompt:
    """Return a prompt: the release's text, else the library's own."""
    if published is not None:
        return read_prompt(Path(f"{name}.md of the release"), FORMATS[name], published)
    return read_prompt(PROMPTS / f"{name}.md", FORMATS[name])


def choice(
    prompt: str,
    field: str,
    labels: Mapping[str, Tool],
    context: Context,
    problem: str = "",
    **values: str,
) -> Question[list[str]]:
    """Return the question which of these tools to choose, whose reply is read as their ids.

    Args:
        prompt: its name.
        field: of the reply, with the names of tools.
        problem: why a reply that names no tool is unusable; empty if it is an answer.
        values: of the prompt, besides the tools.
    """

    def read(reply: str) -> list[str]:
        names = read_names(reply, field, labels)
        if problem and not names:
            raise UnusableReply(problem)
        return [labels[name].id for name in names]

    values["tools"] = show_tools(labels, context.loaded.agents)
    return Question(prompt, values, names_schema(field, labels), read)


def whole_request(queries: Sequence[Query], context: Context) -> Query:
    """Return the query of the request as a whole: as it was last rewritten, else the request."""
    versions = [
        query for query in queries if query.step == 0 and query.role in ("request", "rewrite")
    ]
    return versions[-1] if versions else Query(context.request.text)


def by_rank(tools: Sequence[str]) -> list[ScoredTool]:
    """Return a ranking of tools of which only the order is known: an LLM gives no useful scores."""
    unique = dict.fromkeys(tools)
    return [ScoredTool(tool, 1 / rank) for rank, tool in enumerate(unique, start=1)]


def labelled(tools: Mapping[str, Tool], agents: Mapping[str, Any]) -> dict[str, Tool]:
    """Return tools by the label an LLM is shown: the true name, made plain and unique."""
    labels: dict[str, Tool] = {}
    taken: set[str] = set()  # without regard to case, as replies are read
    for tool in tools.values():
        name = _plain(tool.name)
        if name.casefold() in taken:
            name = _plain(f"{_agent_name(tool, agents)}__{tool.name}")
        unique = name
        number = 2
        while unique.casefold() in taken:
            unique = f"{name[: NAME_CHARACTERS - 4]}_{number}"
            number += 1
        taken.add(unique.casefold())
        labels[unique] = tool
    return labels


async def shown_tools(context: Context, ranking: Ranking, depth: int) -> dict[str, Tool]:
    """Return the first tools of a ranking in its order, by their labels."""
    ids = [scored.tool for scored in ranking[:depth]]
    tools = await context.tools(ids)
    return labelled({tool: tools[tool] for tool in ids if tool in tools}, context.loaded.agents)


def own_steps(candidates: Candidates) -> dict[int, str]:
    """Return the texts of the steps, without the whole request if it is searched beside them."""
    texts = {
        step: candidates.texts[step]
        for step in sorted(candidates.steps)
        if step in candidates.texts
    }
    return {step: text for step, text in texts.items() if step} or texts


def show_subject(candidates: Candidates, context: Context) -> str:
    """Return what the candidates were found for, as a prompt shows it: the text of the only step,
    or the request, as it was last rewritten, over several.
    """
    steps = own_steps(candidates)
    return show_request(next(iter(steps.values())) if len(steps) == 1 else context.request.text)


def show_request(text: str, label: str = "request") -> str:
    """Return the request, or a step of it, as a prompt shows it."""
    return fenced(label, text[:REQUEST_CHARACTERS])


def show_history(context: Context) -> str:
    """Return the end of the conversation as a prompt shows it; empty without one."""
    messages = [
        {"role": message.role, "content": message.content[:MESSAGE_CHARACTERS]}
        for message in context.request.history[-MESSAGES:]
    ]
    return fenced("conversation", messages) if messages else ""


def show_few_shots(few_shots: Sequence[Mapping[str, Any]], request: str) -> str:
    """Return the release's requests with their tools as a prompt shows them; empty without any.

    A request is never shown its own tools, so that an evaluation may ask what examples say.
    """
    words = singular_words(request)
    shown = [
        {"request": shot["query"], "tools": [_plain(name) for name in shot["tools"]]}
        for shot in few_shots
        if singular_words(shot["query"]) != words
    ]
    return f"{FEW_SHOTS}\n\n{fenced('examples', shown)}" if shown else ""


def show_steps(candidates: Candidates, labels: Mapping[str, Tool] | None = None) -> str:
    """Return the steps as a prompt shows them; empty for one step.

    Args:
        labels: also show the names of the first tools of each step, as far as they are among these.
    """
    texts = own_steps(candidates)
    if len(texts) < 2:
        return ""
    if labels is None:
        return fenced("steps", [{"step": text} for text in texts.values()])
    return fenced(
        "steps",
        [
            {"step": text, "tools": _first_names(candidates.steps[step], labels)}
            for step, text in texts.items()
        ],
    )


def show_searches(candidates: Candidates, labels: Mapping[str, Tool]) -> str:
    """Return the queries of a step, each with the first tools that it found, as a prompt shows
    them (Toolshed, fig. 23); empty for a single query.
    """
    searches = {
        query: _first_names(ranking, labels)
        for step in candidates.steps
        for query, ranking in candidates.searches.get(step, {}).items()
    }
    if len(searches) < 2:
        return ""
    return fenced(
        "searches", [{"query": query, "tools": names} for query, names in searches.items()]
    )


def show_tools(labels: Mapping[str, Tool], agents: Mapping[str, Any]) -> str:
    """Return tools as a prompt shows them, under their labels."""
    return fenced(
        "tools", [_shown(label, tool, _agent_name(tool, agents)) for label, tool in labels.items()]
    )


def _shown(label: str, tool: Tool, agent: str) -> dict[str, str]:
    """What a tool does, which arguments it takes and when to avoid it.

    Enrichment was checked when it was published; of a suspicious tool nothing else is shown.
    """
    written = tool.enrichment
    suspicious = bool(set(tool.flags) - {"credential"})
    avoid = ""
    if written is not None and written.description:
        description = written.description
        avoid = written.avoid
    elif suspicious:
        description = _WITHHELD
    else:
        description = redact_credentials(tool.description) if tool.flags else tool.description
    fields = {
        "name": label,
        "agent": _plain(agent),
        "description": _cut(description, DESCRIPTION_CHARACTERS),
        "arguments": "" if suspicious else _arguments(tool.input_schema),
        "avoid": _cut(avoid, AVOID_CHARACTERS),
    }
    return {name: value for name, value in fields.items() if value or name == "description"}


def _arguments(schema: Mapping[str, Any]) -> str:
    """The compact signature of a tool: `place: string, days?: integer`."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    required = schema.get("required")
    required = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
    names = sorted(cast("Mapping[str, Any]", properties), key=lambda name: name not in required)
    arguments = [
        f"{_plain(name)}{'' if name in required else '?'}{_type(properties[name])}"
        for name in names[:ARGUMENTS]
    ]
    return ", ".join([*arguments, *(["..."] if len(names) > ARGUMENTS else [])])


def _type(schema: Any) -> str:
    kind: Any = cast("Mapping[str, Any]", schema).get("type") if isinstance(schema, Mapping) else ""
    kinds: list[Any] = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    names = [name for name in kinds if isinstance(name, str) and name.isalpha() and name != "null"]
    return f": {names[0]}" if names else ""


def _cut(text: str, characters: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters]}..."


def _first_names(ranking: Ranking, labels: Mapping[str, Tool]) -> list[str]:
    """The labels of the first tools of a ranking, as far as they are shown."""
    names = {tool.id: label for label, tool in labels.items()}
    return [names[row.tool] for row in ranking if row.tool in names][:STEP_TOOLS]


def _not_copied(value: Value, request: ChatRequest) -> Value:
    """The value; raises UnusableReply if it repeats the prompt, as small models do."""
    texts: list[Any] = value if isinstance(value, list) else [value]
    instructions = " ".join(request.messages[0].content.split()).casefold()
    request_text = request.messages[-1].content.casefold()
    for text in (str(item).casefold() for item in texts):
        if len(text.split()) >= COPIED_WORDS and text in instructions and text not in request_text:
            raise UnusableReply("repeats an example of its prompt")
    return value


def _agent_name(tool: Tool, agents: Mapping[str, Any]) -> str:
    agent = agents.get(tool.agent)
    return str(agent.name) if agent is not None else tool.agent


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]+", "_", name)[:NAME_CHARACTERS] or "tool"
