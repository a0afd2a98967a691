"""Taking a request apart with the tools in view that a first search found: the planner of
Retrieval-Plan-Select (RPS, algorithm 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.llm.consulting import (
    at_least_one,
    show_history,
    show_request,
    show_tools,
    shown_tools,
    whole_request,
)
from pegboard.retrieval.llm.decomposing import steps_asked_of
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import texts_schema
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.retrieval.trace import NO_LLM


@dataclass(frozen=True, slots=True)
class ContextDecompose:
    """A transform: the best tools for the whole request are searched, and an LLM that sees them
    writes the steps.

    It learns from them how the catalog is cut: what is one call and what are two, and in which
    words tools are described. The union of what is found for the steps is the candidate set, recall
    first (RPS, section 3). Without an LLM, `clauses` does the work, and nothing is searched
    beforehand.

    Attributes:
        m: the planning context, the tools that the planner sees; the paper's M, 10.
        limit: the most steps.
        whole: whether the request as a whole is searched beside them, as step 0.
        prompts: a folder with a `context-decompose.md` of one's own.
    """

    part: ClassVar[str] = "context-decompose"
    m: int = 10
    limit: int = 8
    whole: bool = False
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, m=self.m, limit=self.limit)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The steps, in the order in which they would be done."""
        if any(query.step for query in queries):
            context.trace.note = "the request is in steps already"
            return list(queries)
        if not context.has_llm:
            context.trace.instead_because = NO_LLM
            return await Clauses(self.limit).transform(queries, context)
        whole = whole_request(queries, context)
        [found] = await context.search([whole], self.m)
        shown = await shown_tools(context, found, self.m)
        asked = prompt("context-decompose", self.prompts).request(
            texts_schema("steps"),
            request=show_request(whole.text),
            history=show_history(context),
            tools=show_tools(shown, context.agents),
            count=str(self.limit),
        )
        return await steps_asked_of(context, asked, queries, self.limit, self.whole)
