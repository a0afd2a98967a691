"""What the parts that ask an LLM have in common: what they show it, how they take its replies, and
what they do without it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pegboard.errors import QueryError
from pegboard.llm import ChatRequest
from pegboard.llm.prompts import fenced
from pegboard.records import Tool
from pegboard.redaction import redact_credentials
from pegboard.retrieval.llm.structured import Unusable
from pegboard.retrieval.parts import Candidates, Context, Query, Ranking, Scored
from pegboard.retrieval.trace import NO_LLM

Value = TypeVar("Value")

REQUEST_CHARACTERS = 4_000
DESCRIPTION_CHARACTERS = 300
"""Of one tool: two or three sentences, so that twenty tools are about 2,000 tokens."""
NAME_CHARACTERS = 64
MESSAGES = 6
"""Of the conversation, counted from its end: what a pronoun refers to was said lately."""
MESSAGE_CHARACTERS = 500
COPIED_WORDS = 4
"""Words in a row from which on a text counts as copied from the prompt."""
_WITHHELD = "(withheld: the catalog's text is suspicious)"


@dataclass(frozen=True, slots=True)
class Question(Generic[Value]):
    """One question, and how its reply is read; `read` raises Unusable."""

    request: ChatRequest
    read: Callable[[str], Value]


async def consult(context: Context, questions: Sequence[Question[Value]]) -> list[Value | None]:
    """What the LLM says to each question, all asked at once; None where it did not answer, or not
    as it should.

    Why not is written into the trace, with the number of questions that it concerns if others were
    answered."""
    if not context.has_llm:
        context.trace.instead_because = NO_LLM
        return [None for _ in questions]
    if not questions:
        return []
    before, context.trace.instead_because = context.trace.instead_because, None
    replies = await context.ask([question.request for question in questions])
    values: list[Value | None] = []
    reason = context.trace.instead_because
    for question, reply in zip(questions, replies, strict=True):
        value = None
        if reply is not None:
            try:
                value = _no_copy(question.read(reply), question.request)
            except Unusable as unusable:
                reason = reason or f"the reply {unusable}"
        values.append(value)
    missing = sum(value is None for value in values)
    if missing:
        reason = reason or "the LLM did not answer"
        before = reason if missing == len(values) else f"for {missing} of {len(values)}: {reason}"
    context.trace.instead_because = before
    return values


def at_least_one(part: str, **options: object) -> None:
    """Raises QueryError naming every option of a part that is not a whole number of at least 1."""
    if wrong := [
        f"{name} = {value!r}"
        for name, value in options.items()
        if type(value) is not int or value < 1
    ]:
        raise QueryError(
            f"The part '{part}': {', '.join(wrong)}. Give a whole number of at least 1."
        )


def whole_request(queries: Sequence[Query], context: Context) -> Query:
    """The query that stands for the request as a whole: as it was rewritten last, else as it was
    asked.
    """
    whole = [query for query in queries if query.step == 0 and query.role in ("request", "rewrite")]
    return whole[-1] if whole else Query(context.request.text)


def by_rank(tools: Sequence[str]) -> list[Scored]:
    """A ranking of tools whose order alone is known: an LLM gives no scores that mean anything."""
    return [Scored(tool, 1 / rank) for rank, tool in enumerate(dict.fromkeys(tools), start=1)]


def labelled(tools: Mapping[str, Tool], agents: Mapping[str, Any]) -> dict[str, Tool]:
    """Tools by the name under which an LLM is shown them: the true name, made plain, and told apart
    where two are the same.
    """
    labels: dict[str, Tool] = {}
    taken: set[str] = set()  # without regard to case, as replies are read
    for tool in tools.values():
        name = _plain(tool.name)
        if name.casefold() in taken:
            name = _plain(f"{_agent_name(tool, agents)}__{tool.name}")
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name[: NAME_CHARACTERS - 4]}_{number}", number + 1
        taken.add(unique.casefold())
        labels[unique] = tool
    return labels


async def shown_tools(context: Context, ranking: Ranking, depth: int) -> dict[str, Tool]:
    """The first tools of a ranking in its order, under their labels."""
    first = [one.tool for one in ranking[:depth]]
    tools = await context.tools(first)
    return labelled({tool: tools[tool] for tool in first if tool in tools}, context.agents)


def own_steps(candidates: Candidates) -> dict[int, str]:
    """The texts of the steps, without the request as a whole where that is searched beside them."""
    texts = {
        step: candidates.texts[step]
        for step in sorted(candidates.steps)
        if step in candidates.texts
    }
    return {step: text for step, text in texts.items() if step} or texts


def show_request(text: str, label: str = "request") -> str:
    """The request, or a step of it, for a prompt."""
    return fenced(label, text[:REQUEST_CHARACTERS])


def show_history(context: Context) -> str:
    """The end of the conversation before the request, for a prompt; nothing if there was none."""
    said = [
        {"role": message.role, "content": message.content[:MESSAGE_CHARACTERS]}
        for message in context.request.history[-MESSAGES:]
    ]
    return fenced("conversation", said) if said else ""


def show_steps(texts: Mapping[int, str], tools: Mapping[int, Sequence[str]] | None = None) -> str:
    """The steps of a request for a prompt, each with the names of its tools if they are given;
    nothing if there is one step.
    """
    if len(texts) < 2:
        return ""
    shown = [
        {"step": text} | ({"tools": list(tools.get(step, ()))} if tools else {})
        for step, text in texts.items()
    ]
    return fenced("steps", shown)


def show_tools(labels: Mapping[str, Tool], agents: Mapping[str, Any]) -> str:
    """Tools for a prompt, under their labels."""
    shown = [
        {"name": label, "agent": _plain(_agent_name(tool, agents)), "description": _described(tool)}
        for label, tool in labels.items()
    ]
    return fenced("tools", shown)


def _no_copy(value: Value, request: ChatRequest) -> Value:
    """The value; raises Unusable if it repeats an example of the prompt, as small models do, which
    would then be searched for.
    """
    texts: list[Any] = value if isinstance(value, list) else [value]
    instructions = " ".join(request.messages[0].content.split()).casefold()
    asked = request.messages[-1].content.casefold()
    for text in (str(one).casefold() for one in texts):
        if len(text.split()) >= COPIED_WORDS and text in instructions and text not in asked:
            raise Unusable("repeats an example of its prompt")
    return value


def _described(tool: Tool) -> str:
    """What a tool does and when not to take it, cut; what an LLM wrote was checked when the release
    was made.
    """
    written = tool.enrichment
    if written is not None and written.description:
        text = " ".join((written.description, written.avoid))
    elif not set(tool.flags) - {"credential"}:
        text = (
            " ".join(redact_credentials(tool.description).split())
            if tool.flags
            else tool.description
        )
    else:
        text = _WITHHELD
    return text if len(text) <= DESCRIPTION_CHARACTERS else f"{text[:DESCRIPTION_CHARACTERS]}..."


def _agent_name(tool: Tool, agents: Mapping[str, Any]) -> str:
    agent = agents.get(tool.agent)
    return str(agent.name) if agent is not None else tool.agent


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]+", "_", name)[:NAME_CHARACTERS] or "tool"
