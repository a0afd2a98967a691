"""Transforms by an LLM: rewrite, decompose, expand and step back (Toolshed, section 3.4.2).

Prompts after Toolshed's appendix H, `context-decompose` after Retrieval-Plan-Select (RPS,
algorithm 1), `step-back` after Zheng et al., 2023. Where the LLM does not answer, a transform of
`rules` takes over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pegboard.llm import ChatRequest
from pegboard.retrieval.llm.questions import (
    Question,
    at_least_one,
    consult,
    consult_one,
    prompt,
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
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.results import NO_LLM
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.retrieval.rules.rewording import Condense, StepBack, Variations


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An LLM writes the request as one plain statement, with the conversation before it in view.

    Stands before a decomposition. Falls back on `condense`.

    Attributes:
        keep: whether the request as it was given is searched too, in the same step. Useful where
            an LLM may drop something; not where the request says little without the conversation.
        prompts: a folder with a `rewrite.md` that replaces the library's.
    """

    part: ClassVar[str] = "rewrite"
    keep: bool = False
    prompts: str | None = None

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries, with the rewritten request in the place of the request."""
        whole = whole_request(queries, context)
        request = prompt("rewrite", self.prompts).request(
            text_schema("query"), request=show_request(whole.text), history=show_history(context)
        )
        text = await consult_one(context, request, partial(read_field_text, field="query"))
        if text is None:
            return await Condense().transform(queries, context)
        rewritten = replace(whole, text=text, role="rewrite")
        instead = [whole, rewritten] if self.keep else [rewritten]
        return [new for query in queries for new in (instead if query == whole else [query])]


@dataclass(frozen=True, slots=True)
class Decompose:
    """An LLM that sees no tools writes the independent steps of the request, one query each.

    A request of one step, and queries that are steps already, stay as they are. Falls back on
    `clauses`.

    Attributes:
        limit: the most steps.
        whole: whether the whole request is searched beside them, as step 0; the paper searches the
            steps alone.
        prompts: a folder with a `decompose.md` that replaces the library's.
    """

    part: ClassVar[str] = "decompose"
    limit: int = 6
    whole: bool = False
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, limit=self.limit)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the steps, in the order in which they would be done."""
        if _in_steps_already(queries, context):
            return list(queries)
        request = prompt("decompose", self.prompts).request(
            texts_schema("steps"),
            request=show_request(whole_request(queries, context).text),
            history=show_history(context),
            count=str(self.limit),
        )
        return await _ask_for_steps(context, request, queries, self.limit, self.whole)


@dataclass(frozen=True, slots=True)
class ContextDecompose:
    """An LLM that sees the best tools for the whole request writes its steps.

    It learns from them how the catalog is cut: what is one call and what are two, and in which
    words tools are described. The union of what the steps find is the candidate set, recall first
    (RPS, section 3). Falls back on `clauses`, without a search beforehand.

    Attributes:
        m: the tools that the LLM sees; the paper's M, 10.
        limit: the most steps.
        whole: whether the whole request is searched beside them, as step 0.
        prompts: a folder with a `context-decompose.md` that replaces the library's.
    """

    part: ClassVar[str] = "context-decompose"
    m: int = 10
    limit: int = 8
    whole: bool = False
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, m=self.m, limit=self.limit)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the steps, in the order in which they would be done."""
        if _in_steps_already(queries, context):
            return list(queries)
        if not context.has_llm:
            context.trace.fallback_reason = NO_LLM
            return await Clauses(self.limit).transform(queries, context)
        whole = whole_request(queries, context)
        [ranking] = await context.search([whole], self.m)
        labels = await shown_tools(context, ranking, self.m)
        request = prompt("context-decompose", self.prompts).request(
            texts_schema("steps"),
            request=show_request(whole.text),
            history=show_history(context),
            tools=show_tools(labels, context.agents),
            count=str(self.limit),
        )
        return await _ask_for_steps(context, request, queries, self.limit, self.whole)


@dataclass(frozen=True, slots=True)
class Expand:
    """An LLM writes variations of each step, which are searched beside it and fused with it.

    All steps are asked for concurrently. A step whose question fails falls back on `variations`.

    Attributes:
        variations: how many for each step; the paper's 3.
        weight: the weight of a variation's ranking beside that of the step as it was given.
        prompts: a folder with an `expand.md` that replaces the library's.
    """

    part: ClassVar[str] = "expand"
    variations: int = 3
    weight: float = 1.0
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, variations=self.variations)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries of every step, each followed by its variations."""
        steps = _by_step(queries)
        file, schema = prompt("expand", self.prompts), texts_schema("queries")
        read = partial(_read_some, field="queries", limit=self.variations, what="variations")
        questions = [
            Question(
                file.request(
                    schema,
                    request=show_request(own[0].text, "query"),
                    count=str(self.variations),
                ),
                read,
            )
            for own in steps
        ]
        expanded: list[Query] = []
        for own, texts in zip(steps, await consult(context, questions), strict=True):
            if texts is None:
                expanded += await Variations(self.variations).transform(own, context)
            else:
                expanded += own
                step, weight = own[0].step, self.weight
                expanded += [Query(text, step, "variation", weight) for text in texts]
        return expanded


@dataclass(frozen=True, slots=True)
class StepBackPrompting:
    """An LLM writes a more general query for each step, which is searched beside it.

    Tools are described in general words: "converts an amount", not "200 pounds in euros". All steps
    are asked for concurrently. A step whose question fails falls back on `step-back`.

    Attributes:
        weight: the weight of the general query's ranking beside that of the step.
        prompts: a folder with a `step-back.md` that replaces the library's.
    """

    part: ClassVar[str] = "step-back-prompting"
    weight: float = 1.0
    prompts: str | None = None

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Return the queries of every step, each followed by its general one."""
        steps = _by_step(queries)
        file, schema = prompt("step-back", self.prompts), text_schema("query")
        questions = [
            Question(
                file.request(schema, request=show_request(own[0].text, "query")),
                partial(read_field_text, field="query"),
            )
            for own in steps
        ]
        expanded: list[Query] = []
        for own, text in zip(steps, await consult(context, questions), strict=True):
            if text is None:
                expanded += await StepBack().transform(own, context)
            else:
                expanded += [*own, Query(text, own[0].step, "step-back", self.weight)]
        return expanded


def _in_steps_already(queries: Sequence[Query], context: Context) -> bool:
    if any(query.step for query in queries):
        context.trace.note = "the request is in steps already"
        return True
    return False


async def _ask_for_steps(
    context: Context, request: ChatRequest, queries: Sequence[Query], limit: int, whole: bool
) -> list[Query]:
    """The steps that an LLM writes, as queries; those of `clauses` if it writes no usable ones."""
    read = partial(_read_some, field="steps", limit=limit, what="steps")
    steps = await consult_one(context, request, read)
    if steps is None:
        return await Clauses(limit).transform(queries, context)
    if len(steps) == 1:
        context.trace.note = "one step"
        return list(queries)
    decomposed = [Query(text, step, "step") for step, text in enumerate(steps, start=1)]
    return [whole_request(queries, context), *decomposed] if whole else decomposed


def _read_some(reply: str, field: str, limit: int, what: str) -> list[str]:
    if not (texts := read_texts(reply, field, limit)):
        raise UnusableReply(f"has no {what}")
    return texts


def _by_step(queries: Sequence[Query]) -> list[list[Query]]:
    """The queries of each step, in the order of the steps; the others vary a step's first one."""
    steps: dict[int, list[Query]] = {}
    for query in queries:
        steps.setdefault(query.step, []).append(query)
    return [steps[step] for step in sorted(steps)]
