"""Transforms by an LLM: rewrite, decompose, expand and step back (Toolshed, section 3.4.2), and the
query of an agent.

Prompts after Toolshed's appendix H, `context-decompose` after Retrieval-Plan-Select (RPS,
algorithm 1), `step-back` after Zheng et al., 2023. Where the LLM does not answer, a decomposition
falls back on `clauses`, and the others leave the queries as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pegboard.llm.prompts import fenced
from pegboard.retrieval.context import Context
from pegboard.retrieval.llm.questions import (
    LlmPart,
    Question,
    show_history,
    show_request,
    show_tools,
    shown_tools,
    whole_request,
)
from pegboard.retrieval.llm.replies import (
    UnusableReply,
    read_field_text,
    read_texts,
    text_schema,
    texts_schema,
)
from pegboard.retrieval.parts import LlmCalls
from pegboard.retrieval.requests import Query, Role
from pegboard.retrieval.rules.clauses import Clauses, check_background
from pegboard.text.words import NO_LANGUAGE


@dataclass(frozen=True, slots=True)
class Rewrite(LlmPart):
    """An LLM writes the request as one plain statement, with the conversation before it in view.

    Stands before a decomposition; all later parts see the rewritten request.
    """

    part: ClassVar[str] = "rewrite"

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries, with the rewritten request in the place of the request."""
        request = whole_request(queries, context)
        values = {"request": show_request(request.text), "history": show_history(context)}
        read = partial(read_field_text, field="query")
        question = Question("rewrite", values, text_schema("query"), read)
        text = await self.consult_one(context, question)
        if text is None:
            return list(queries)
        rewritten = replace(request, text=text, role="rewrite")
        return [rewritten if query == request else query for query in queries]


@dataclass(frozen=True, slots=True)
class AgentQuery(LlmPart):
    """An LLM that sees no tools writes the query with which an agent would look for the tool: the
    operation in the words of a product's documentation, without values, one query for each
    operation that the request needs.

    A single query takes the place of the request; several are steps. Later parts still judge by the
    request itself. Queries that are steps already stay. Falls back on `clauses`.

    Attributes:
        limit: the most queries.
        background: the weight, 0 to 1, of the request beside each query, whose weight is 1; with 0,
            the request is not searched for.
    """

    part: ClassVar[str] = "agent-query"
    limit: int = 6
    background: float = 0.0

    def __post_init__(self) -> None:
        LlmPart.__post_init__(self)
        check_background(self.part, self.background)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries, in the order in which the operations would be done."""
        if _has_steps(queries, context):
            return list(queries)
        request = whole_request(queries, context)
        language = context.loaded.language(context.searches.index)
        values = {"language": "" if language == NO_LANGUAGE else language.title()}
        texts = await _texts(self, "queries", request, context, values)
        if texts is None:
            return await Clauses(self.limit).transform(queries, context)
        written: list[Query] = []
        for step, text in enumerate(texts, start=1 if len(texts) > 1 else 0):
            written.append(Query(text, step, "agent-query"))
            if self.background:
                written.append(replace(request, step=step, weight=self.background))
        return written


@dataclass(frozen=True, slots=True)
class Decompose(LlmPart):
    """An LLM that sees no tools writes the independent steps of the request, one query each.

    A request of one step stays as it is, unless there is a conversation before it: then the step,
    which is understandable without it, replaces the request. Queries that are steps already stay,
    too. Falls back on `clauses`.

    Attributes:
        limit: the most steps.
    """

    part: ClassVar[str] = "decompose"
    limit: int = 6

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the steps, in the order in which they would be done."""
        return await _steps(self, queries, context)


@dataclass(frozen=True, slots=True)
class ContextDecompose(LlmPart):
    """An LLM that sees the best tools for the whole request writes its steps, as `decompose` does.

    It learns from them how the catalog is cut: what is one call and what are two, and in which
    words tools are described. The union of what the steps find is the candidate set, recall first
    (RPS, section 3). Falls back on `clauses`, without a search beforehand.

    Attributes:
        m: the tools that the LLM sees; the paper's M, 10.
        limit: the most steps.
    """

    part: ClassVar[str] = "context-decompose"
    m: int = 10
    limit: int = 8

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the steps, in the order in which they would be done."""
        return await _steps(self, queries, context)


@dataclass(frozen=True, slots=True)
class Expand(LlmPart):
    """An LLM writes variations of each step, which are searched beside it and fused with it.

    All steps are requested concurrently. A step whose question fails is searched alone.

    Attributes:
        variations: how many for each step; the paper's 3.
    """

    part: ClassVar[str] = "expand"
    variations: int = 3

    def llm_calls(self) -> LlmCalls:
        """Return the calls: one for each step."""
        return LlmCalls(step=1)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries of every step, each followed by its variations, none of which is
        among the queries already.
        """

        def question(step_queries: Sequence[Query]) -> Question[list[str]]:
            present = {query.text.casefold() for query in step_queries}

            def read(reply: str) -> list[str]:
                texts = _read_some(reply, "queries", self.variations, "variations")
                return [text for text in texts if text.casefold() not in present]

            values = {
                "request": show_request(step_queries[0].text, "query"),
                "searches": _show_variations(step_queries),
                "count": str(self.variations),
            }
            return Question("expand", values, texts_schema("queries"), read)

        return await _beside(self, queries, context, question, "variation")


@dataclass(frozen=True, slots=True)
class StepBackPrompting(LlmPart):
    """An LLM writes a more general query for each step, which is searched beside it.

    Tools are described in general words: "converts an amount", not "200 pounds in euros". All steps
    are requested concurrently. A step whose question fails is searched alone.
    """

    part: ClassVar[str] = "step-back-prompting"

    def llm_calls(self) -> LlmCalls:
        """Return the calls: one for each step."""
        return LlmCalls(step=1)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries of every step, each followed by its general one."""

        def question(step_queries: Sequence[Query]) -> Question[list[str]]:
            values = {"request": show_request(step_queries[0].text, "query")}
            schema = text_schema("query")
            return Question(
                "step-back", values, schema, lambda reply: [read_field_text(reply, "query")]
            )

        return await _beside(self, queries, context, question, "step-back")


async def _beside(
    part: Expand | StepBackPrompting,
    queries: Sequence[Query],
    context: Context,
    question: Callable[[Sequence[Query]], Question[list[str]]],
    role: Role,
) -> list[Query]:
    """The queries of every step, in the order of the steps, each followed by what an LLM writes for
    the step; alone where the question fails.
    """
    by_step: dict[int, list[Query]] = {}
    for query in queries:
        by_step.setdefault(query.step, []).append(query)
    steps = sorted(by_step)
    replies = await part.consult(context, [question(by_step[step]) for step in steps])
    for step, texts in zip(steps, replies, strict=True):
        by_step[step] += [Query(text, step, role) for text in texts or ()]
    return [query for step in steps for query in by_step[step]]


async def _steps(
    part: Decompose | ContextDecompose, queries: Sequence[Query], context: Context
) -> list[Query]:
    """The steps that an LLM writes, as queries; those of `clauses` if it writes no usable ones."""
    if _has_steps(queries, context):
        return list(queries)
    request = whole_request(queries, context)
    values: dict[str, str] = {}
    if isinstance(part, ContextDecompose) and context.caller is not None:
        [ranking] = await context.search([request], part.m)
        labels = await shown_tools(context, ranking, part.m)
        values["tools"] = show_tools(labels, context.loaded.agents)
    steps = await _texts(part, "steps", request, context, values)
    if steps is None:
        return await Clauses(part.limit).transform(queries, context)
    if len(steps) == 1:
        context.trace.note = "one step"
        if not context.request.history:
            return list(queries)
        # "And there?" is one step, too, and the LLM has written out what it means.
        resolved = replace(request, text=steps[0], role="rewrite")
        return [resolved if query == request else query for query in queries]
    return [Query(text, step, "step") for step, text in enumerate(steps, start=1)]


def _has_steps(queries: Sequence[Query], context: Context) -> bool:
    """Whether the queries are steps already, which the trace then says."""
    has_steps = any(query.step for query in queries)
    if has_steps:
        context.trace.note = "the request is in steps already"
    return has_steps


async def _texts(
    part: AgentQuery | Decompose | ContextDecompose,
    field: str,
    request: Query,
    context: Context,
    values: Mapping[str, str],
) -> list[str] | None:
    """The texts that an LLM writes for the request, at least one; None if it writes none that can
    be used.

    Args:
        field: of the reply, with the texts.
        values: of the prompt, besides the request, the conversation and the most texts.
    """
    shown = {
        **values,
        "request": show_request(request.text),
        "history": show_history(context),
        "count": str(part.limit),
    }
    read = partial(_read_some, field=field, limit=part.limit, what=field)
    return await part.consult_one(context, Question(part.part, shown, texts_schema(field), read))


def _read_some(reply: str, field: str, limit: int, what: str) -> list[str]:
    if not (texts := read_texts(reply, field, limit)):
        raise UnusableReply(f"has no {what}")
    return texts


def _show_variations(queries: Sequence[Query]) -> str:
    """The variations that a step has already, as a prompt shows them; empty without one."""
    texts = [query.text for query in queries if query.role == "variation"]
    return fenced("searched", texts) if texts else ""
