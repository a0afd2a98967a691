"""Several wordings of each step, so that a tool is found that says the same in other words
(Toolshed, section 3.4.2 and appendix H).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.llm.consulting import Question, at_least_one, consult, show_request
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import Unusable, read_texts, texts_schema
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.rules.variations import Variations


@dataclass(frozen=True, slots=True)
class Expand:
    """A transform: an LLM writes variations of each step, which are searched beside it and fused
    with it.

    All steps are asked for at once. Where an LLM does not answer, `variations` varies the words of
    that step by rules.

    Attributes:
        variations: how many for each step; the paper's 3.
        weight: what the ranking of a variation counts beside that of the step as it was asked.
        prompts: a folder with an `expand.md` of one's own.
    """

    part: ClassVar[str] = "expand"
    variations: int = 3
    weight: float = 1.0
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, variations=self.variations)

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The queries of every step, each followed by its variations."""
        steps = by_step(queries)
        file = prompt("expand", self.prompts)
        asked = [
            file.request(
                texts_schema("queries"),
                request=show_request(own[0].text, "query"),
                count=str(self.variations),
            )
            for own in steps
        ]
        varied = await consult(context, [Question(one, self._read) for one in asked])
        made: list[Query] = []
        for own, texts in zip(steps, varied, strict=True):
            if texts is None:
                made += await Variations(self.variations).transform(own, context)
            else:
                made += [
                    *own,
                    *(Query(text, own[0].step, "variation", self.weight) for text in texts),
                ]
        return made

    def _read(self, reply: str) -> list[str]:
        if not (texts := read_texts(reply, "queries", self.variations)):
            raise Unusable("has no variations")
        return texts


def by_step(queries: Sequence[Query]) -> list[list[Query]]:
    """The queries of each step, in the order of the steps; the first of a step is what the others
    vary.
    """
    steps: dict[int, list[Query]] = {}
    for query in queries:
        steps.setdefault(query.step, []).append(query)
    return [steps[step] for step in sorted(steps)]
