"""Ordering tools by an LLM that sees them all at once: a listwise reranker (Toolshed, section 3.4.3
and appendix H).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pegboard.llm import ChatRequest
from pegboard.records import Tool
from pegboard.retrieval.llm.consulting import (
    Question,
    at_least_one,
    by_rank,
    consult,
    own_steps,
    show_request,
    show_steps,
    show_tools,
    shown_tools,
)
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import Unusable, names_schema, read_names
from pegboard.retrieval.parts import Candidates, Context, Scored

STEP_TOOLS = 5
"""The tools of a step whose names an LLM is told in their order; the paper shows five, too."""


@dataclass(frozen=True, slots=True)
class ListwiseRerank:
    """A refinement: an LLM orders the first tools of the ranking.

    Stands in both places of the paper. For one step it orders the tools of that step. Over several
    it is told the rule "the first of each step, then the second of each, none twice", and may
    correct what does not fit; the fusion `round-robin` has done the same without an LLM, so then
    the ranking stays as it is. Names that are missing in the reply keep their order behind the
    others; invented ones do not count. Scores are 1 / rank afterwards.

    Attributes:
        depth: the tools that the LLM sees; those behind stay where they are.
        prompts: a folder with a `rerank.md` or a `rerank-steps.md` of one's own.
    """

    part: ClassVar[str] = "listwise-rerank"
    depth: int = 20
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, depth=self.depth)

    async def refine(self, candidates: Candidates, context: Context) -> list[Scored]:
        """The ranking, with its first tools in the LLM's order."""
        ranking = candidates.ranking
        labels = await shown_tools(context, ranking, self.depth)
        if len(labels) < 2:
            return list(ranking)
        asked = self._asked(candidates, context, labels)
        [names] = await consult(context, [Question(asked, lambda reply: _read(reply, labels))])
        if names is None:
            return list(ranking)
        return by_rank([*(labels[name].id for name in names), *(one.tool for one in ranking)])

    def _asked(
        self, candidates: Candidates, context: Context, labels: Mapping[str, Tool]
    ) -> ChatRequest:
        schema, tools = names_schema("ranking", labels), show_tools(labels, context.agents)
        steps = own_steps(candidates)
        if len(steps) < 2:
            text = next(iter(steps.values()), context.request.text)
            return prompt("rerank", self.prompts).request(
                schema, request=show_request(text), tools=tools
            )
        names = {tool.id: label for label, tool in labels.items()}
        found = {
            step: [names[one.tool] for one in candidates.steps[step] if one.tool in names][
                :STEP_TOOLS
            ]
            for step in steps
        }
        return prompt("rerank-steps", self.prompts).request(
            schema,
            request=show_request(context.request.text),
            steps=show_steps(steps, found),
            tools=tools,
        )


def _read(reply: str, labels: Mapping[str, Tool]) -> list[str]:
    if not (names := read_names(reply, "ranking", labels)):
        raise Unusable("orders no tools")
    return names
