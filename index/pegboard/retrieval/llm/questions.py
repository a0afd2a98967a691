"""How parts ask an LLM: what they show it, how they take its replies, and what they do without it.

The prompt files stand in `prompts/`; a part's option `prompts` names a folder with files that
replace them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pegboard.errors import ConfigurationError, QueryError
from pegboard.llm import ChatRequest
from pegboard.llm.prompts import Prompt, PromptFormat, fenced, load_prompts
from pegboard.records import Tool
from pegboard.redaction import redact_credentials
from pegboard.retrieval.llm.replies import UnusableReply, names_schema, read_names
from pegboard.retrieval.parts import Candidates, Context, Query, Ranking, ScoredTool
from pegboard.retrieval.results import NO_LLM

Value = TypeVar("Value")

PROMPTS = Path(__file__).parent / "prompts"
FORMAT = PromptFormat(
    values=("request", "history", "steps", "tools", "count"), required=("request", "steps")
)
"""The values of every prompt; a part leaves those empty that it does not have."""
REQUEST_CHARACTERS = 4_000
DESCRIPTION_CHARACTERS = 300
"""Of one tool: two or three sentences, so that twenty tools are about 2,000 tokens."""
NAME_CHARACTERS = 64
MESSAGES = 6
"""Messages of the conversation that are shown, the last ones: pronouns refer to recent ones."""
MESSAGE_CHARACTERS = 500
COPIED_WORDS = 4
"""A text of at least this many words that stands in the prompt counts as copied from it."""
_WITHHELD = "(withheld: the catalog's text is suspicious)"


@dataclass(frozen=True, slots=True)
class Question(Generic[Value]):
    """One question, and how its reply is read; `read` raises UnusableReply."""

    request: ChatRequest
    read: Callable[[str], Value]


@lru_cache(maxsize=64)
def prompt(name: str, folder: str | None = None) -> Prompt:
    """Return the prompt of that name: the file `NAME.md` of the folder, else the library's own.

    Raises:
        ConfigurationError: the folder does not exist, or a file has problems; lists all of them.
    """
    own = Path(folder).expanduser() if folder is not None else None
    if own is not None and not own.is_dir():
        raise ConfigurationError(
            f"The folder of prompts {own} does not exist. Expected a folder with {name}.md in it."
        )
    formats = {path.stem: FORMAT for path in sorted(PROMPTS.glob("*.md"))}
    return load_prompts(PROMPTS, formats, own, [name])[name]


async def consult_one(
    context: Context, request: ChatRequest, read: Callable[[str], Value]
) -> Value | None:
    """Return what the LLM replies to one request; None as in `consult`."""
    return (await consult(context, [Question(request, read)]))[0]


async def consult(context: Context, questions: Sequence[Question[Value]]) -> list[Value | None]:
    """Return what the LLM replies to each question, asked concurrently.

    None stands for a question that was not answered as it should be. The trace gets the reason,
    with the number of questions that failed if others were answered.
    """
    trace = context.trace
    if not context.has_llm:
        trace.fallback_reason = NO_LLM
        return [None for _ in questions]
    if not questions:
        return []
    before, trace.fallback_reason = trace.fallback_reason, None
    replies = await context.ask([question.request for question in questions])
    values: list[Value | None] = []
    reason = trace.fallback_reason
    for question, reply in zip(questions, replies, strict=True):
        value = None
        if reply is not None:
            try:
                value = _not_copied(question.read(reply), question.request)
            except UnusableReply as unusable:
                reason = reason or f"the reply {unusable}"
        values.append(value)
    missing = sum(value is None for value in values)
    if missing:
        reason = reason or "the LLM did not answer"
        before = reason if missing == len(values) else f"for {missing} of {len(values)}: {reason}"
    trace.fallback_reason = before
    return values


def choice(
    context: Context,
    file: Prompt,
    field: str,
    labels: Mapping[str, Tool],
    request: str,
    steps: str = "",
    problem: str = "",
) -> Question[list[str]]:
    """Return the question which of these tools to choose, whose reply is read as their ids.

    Args:
        request, steps: as the prompt shows them.
        problem: why a reply that names no tool is unusable; empty if it is an answer.
    """

    def read(reply: str) -> list[str]:
        names = read_names(reply, field, labels)
        if problem and not names:
            raise UnusableReply(problem)
        return [labels[name].id for name in names]

    schema, tools = names_schema(field, labels), show_tools(labels, context.agents)
    return Question(file.request(schema, request=request, steps=steps, tools=tools), read)


def at_least_one(part: str, **options: object) -> None:
    """Raise QueryError for every option of a part that is not an integer of at least 1."""
    if invalid := [
        f"{name} is {value!r}"
        for name, value in options.items()
        if type(value) is not int or value < 1
    ]:
        raise QueryError(
            f"The part '{part}' has invalid options: {', '.join(invalid)}. Expected an integer of "
            "at least 1."
        )


def whole_request(queries: Sequence[Query], context: Context) -> Query:
    """Return the query of the request as a whole: as it was last rewritten, else the request."""
    whole = [query for query in queries if query.step == 0 and query.role in ("request", "rewrite")]
    return whole[-1] if whole else Query(context.request.text)


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
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name[: NAME_CHARACTERS - 4]}_{number}", number + 1
        taken.add(unique.casefold())
        labels[unique] = tool
    return labels


async def shown_tools(context: Context, ranking: Ranking, depth: int) -> dict[str, Tool]:
    """Return the first tools of a ranking in its order, by their labels."""
    ids = [scored.tool for scored in ranking[:depth]]
    tools = await context.tools(ids)
    return labelled({tool: tools[tool] for tool in ids if tool in tools}, context.agents)


def own_steps(candidates: Candidates) -> dict[int, str]:
    """Return the texts of the steps, without the whole request if it is searched beside them."""
    texts = {
        step: candidates.texts[step]
        for step in sorted(candidates.steps)
        if step in candidates.texts
    }
    return {step: text for step, text in texts.items() if step} or texts


def own_text(steps: Mapping[int, str], context: Context) -> str:
    """Return the text of the only step, or the request over several."""
    return next(iter(steps.values())) if len(steps) == 1 else context.request.text


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


def show_steps(texts: Mapping[int, str], tools: Mapping[int, Sequence[str]] | None = None) -> str:
    """Return the steps as a prompt shows them, with their tools if given; empty for one step."""
    if len(texts) < 2:
        return ""
    steps = [
        {"step": text} | ({"tools": list(tools.get(step, ()))} if tools else {})
        for step, text in texts.items()
    ]
    return fenced("steps", steps)


def show_tools(labels: Mapping[str, Tool], agents: Mapping[str, Any]) -> str:
    """Return tools as a prompt shows them, under their labels."""
    tools = [
        {"name": label, "agent": _plain(_agent_name(tool, agents)), "description": _described(tool)}
        for label, tool in labels.items()
    ]
    return fenced("tools", tools)


def _not_copied(value: Value, request: ChatRequest) -> Value:
    """The value; raises UnusableReply if it repeats the prompt, as small models do."""
    texts: list[Any] = value if isinstance(value, list) else [value]
    instructions = " ".join(request.messages[0].content.split()).casefold()
    request_text = request.messages[-1].content.casefold()
    for text in (str(item).casefold() for item in texts):
        if len(text.split()) >= COPIED_WORDS and text in instructions and text not in request_text:
            raise UnusableReply("repeats an example of its prompt")
    return value


def _described(tool: Tool) -> str:
    """What a tool does and when to avoid it, cut. Enrichment was checked when it was published."""
    enrichment = tool.enrichment
    if enrichment is not None and enrichment.description:
        text = " ".join((enrichment.description, enrichment.avoid))
    elif set(tool.flags) - {"credential"}:
        text = _WITHHELD
    elif tool.flags:
        text = " ".join(redact_credentials(tool.description).split())
    else:
        text = tool.description
    return text if len(text) <= DESCRIPTION_CHARACTERS else f"{text[:DESCRIPTION_CHARACTERS]}..."


def _agent_name(tool: Tool, agents: Mapping[str, Any]) -> str:
    agent = agents.get(tool.agent)
    return str(agent.name) if agent is not None else tool.agent


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]+", "_", name)[:NAME_CHARACTERS] or "tool"
