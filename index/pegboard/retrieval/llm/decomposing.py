"""Taking a request apart into the steps that need a tool each, by an LLM that knows no tools
(Toolshed, section 3.4.2 and appendix H).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.llm import ChatRequest
from pegboard.retrieval.llm.consulting import (
    Question,
    at_least_one,
    consult,
    show_history,
    show_request,
    whole_request,
)
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import Unusable, read_texts, texts_schema
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.rules.clauses import Clauses


@dataclass(frozen=True, slots=True)
class Decompose:
    """A transform: an LLM writes the independent steps of the request; each becomes a step with one
    query.

    A request of one step, and queries that are steps already, stay as they are. Without an LLM,
    `clauses` takes the request apart by its grammar.

    Attributes:
        limit: the most steps.
        whole: whether the request as a whole is searched beside them, as step 0; the paper searches
            the steps alone.
        prompts: a folder with a `decompose.md` of one's own.
    """

    part: ClassVar[str] = "decompose"
    limit: int = 6
    whole: bool = False
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, limit=self.limit)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The steps, in the order in which they would be done."""
        if any(query.step for query in queries):
            context.trace.note = "the request is in steps already"
            return list(queries)
        whole = whole_request(queries, context)
        asked = prompt("decompose", self.prompts).request(
            texts_schema("steps"),
            request=show_request(whole.text),
            history=show_history(context),
            count=str(self.limit),
        )
        return await steps_asked_of(context, asked, queries, self.limit, self.whole)


async def steps_asked_of(
    context: Context, asked: ChatRequest, queries: Sequence[Query], limit: int, whole: bool
) -> list[Query]:
    """The steps that an LLM writes, as queries; those that `clauses` finds if it writes none that
    can be used.
    """
    [steps] = await consult(context, [Question(asked, lambda reply: _read_steps(reply, limit))])
    if steps is None:
        return await Clauses(limit).transform(queries, context)
    if len(steps) == 1:
        context.trace.note = "one step"
        return list(queries)
    made = [Query(text, step, "step") for step, text in enumerate(steps, start=1)]
    return [whole_request(queries, context), *made] if whole else made


def _read_steps(reply: str, limit: int) -> list[str]:
    if not (steps := read_texts(reply, "steps", limit)):
        raise Unusable("has no steps")
    return steps
