"""The final choice of tools out of the union of what the steps brought (post-selection of RPS,
section 4.6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pegboard.records import Tool
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
from pegboard.retrieval.llm.structured import Unusable, names_schema, read_names
from pegboard.retrieval.parts import Candidates, Context, Scored


@dataclass(frozen=True, slots=True)
class PostSelection:
    """A refinement: an LLM chooses the tools that the request needs; only they are left, in the
    order of the ranking.

    It buys precision with recall: in the paper recall falls from .557 to .424 while F1 rises from
    .325 to .396. If nothing is chosen, or there is no LLM, the ranking stays as it is.

    Attributes:
        depth: the tools that the LLM sees; those behind are left out.
        prompts: a folder with a `post-select.md` of one's own.
    """

    part: ClassVar[str] = "post-selection"
    depth: int = 30
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, depth=self.depth)

    async def refine(self, candidates: Candidates, context: Context) -> list[Scored]:
        """The chosen tools, in the order of the ranking and with its scores."""
        ranking = candidates.ranking
        labels = await shown_tools(context, ranking, self.depth)
        if not labels:
            return list(ranking)
        asked = prompt("post-select", self.prompts).request(
            names_schema("tools", labels),
            request=show_request(context.request.text),
            steps=show_steps(own_steps(candidates)),
            tools=show_tools(labels, context.agents),
        )
        [names] = await consult(context, [Question(asked, lambda reply: _read(reply, labels))])
        if names is None:
            return list(ranking)
        chosen = {labels[name].id for name in names}
        context.trace.note = f"{len(chosen)} of {len(labels)} tools are chosen"
        return [one for one in ranking if one.tool in chosen]


def _read(reply: str, labels: Mapping[str, Tool]) -> list[str]:
    if not (names := read_names(reply, "tools", labels)):
        raise Unusable("chooses no tool")
    return names
