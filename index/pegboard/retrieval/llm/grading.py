"""Leaving out tools that do not fit: a grader over what was found (Toolshed, section 3.4.3, after
corrective RAG).
"""

from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.llm.consulting import (
    Question,
    at_least_one,
    consult,
    own_steps,
    show_request,
    show_steps,
    show_tools,
    shown_tools,
)
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import names_schema, read_names
from pegboard.retrieval.parts import Candidates, Context, Scored


@dataclass(frozen=True, slots=True)
class Grade:
    """A refinement: an LLM says which tools are relevant, and the others are dropped; the order
    stays.

    What it did not see is dropped, too: it would otherwise take the places of better tools. Without
    an LLM, a tool stays that is likely enough to fit, where the searched index is calibrated;
    elsewhere the ranking stays as it is.

    Attributes:
        depth: the tools that are graded; as many as the caller wants if that is more.
        keep: the tools that stay in any case, from the first: an empty answer helps nobody.
        least: without an LLM, the calibrated probability below which a tool is dropped. Low, since
            one that is missing costs more than one too many.
        prompts: a folder with a `grade.md` of one's own.
    """

    part: ClassVar[str] = "grade"
    depth: int = 20
    keep: int = 1
    least: float = 0.05
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, depth=self.depth, keep=self.keep)

    async def refine(self, candidates: Candidates, context: Context) -> list[Scored]:
        """What is left of the ranking, in its order and with its scores."""
        ranking, steps = candidates.ranking, own_steps(candidates)
        labels = await shown_tools(context, ranking, max(self.depth, context.request.k))
        if not labels:
            return list(ranking)
        text = next(iter(steps.values())) if len(steps) == 1 else context.request.text
        asked = prompt("grade", self.prompts).request(
            names_schema("relevant", labels),
            request=show_request(text),
            steps=show_steps(steps),
            tools=show_tools(labels, context.agents),
        )
        [names] = await consult(
            context, [Question(asked, lambda reply: read_names(reply, "relevant", labels))]
        )
        if names is None:
            return self._by_probability(candidates, context)
        relevant = {labels[name].id for name in names}
        context.trace.note = f"{len(relevant)} of {len(labels)} tools are relevant"
        return [
            one for place, one in enumerate(ranking) if place < self.keep or one.tool in relevant
        ]

    def _by_probability(self, candidates: Candidates, context: Context) -> list[Scored]:
        likely = context.probabilities
        if likely is None:
            context.trace.note = "nothing is dropped: the index is not calibrated"
            return list(candidates.ranking)
        # A tool that a part added without a search has no probability, and was added for a reason.
        kept = [
            one
            for place, one in enumerate(candidates.ranking)
            if place < self.keep or likely.get(one.tool, 1.0) >= self.least
        ]
        context.trace.note = (
            f"{len(kept)} of {len(candidates.ranking)} tools have a probability "
            f"of {self.least:g} or more"
        )
        return kept
