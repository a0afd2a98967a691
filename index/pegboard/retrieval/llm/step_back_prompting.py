"""The general task of which a request is a case (step-back prompting: Zheng et al., 2023; Toolshed,
section 3.4.2).

Tools are described in general words: "converts an amount", not "200 pounds in euros".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.llm.consulting import Question, consult, show_request
from pegboard.retrieval.llm.expanding import by_step
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import read_text, text_schema
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.rules.variations import StepBack


@dataclass(frozen=True, slots=True)
class StepBackPrompting:
    """A transform: an LLM writes a more general query for each step, which is searched beside it.

    All steps are asked for at once. Where an LLM does not answer, `step-back` takes the particulars
    out by rules.

    Attributes:
        weight: what the ranking of the general query counts beside that of the step as it was
            asked.
        prompts: a folder with a `step-back.md` of one's own.
    """

    part: ClassVar[str] = "step-back-prompting"
    weight: float = 1.0
    prompts: str | None = None

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The queries of every step, each followed by its general one."""
        steps = by_step(queries)
        file = prompt("step-back", self.prompts)
        asked = [
            file.request(text_schema("query"), request=show_request(own[0].text, "query"))
            for own in steps
        ]
        general = await consult(
            context, [Question(one, lambda reply: read_text(reply, "query")) for one in asked]
        )
        made: list[Query] = []
        for own, text in zip(steps, general, strict=True):
            if text is None:
                made += await StepBack().transform(own, context)
            else:
                made += [*own, Query(text, own[0].step, "step-back", self.weight)]
        return made
