"""Looking for what is missing: an LLM checks what was found, and names what no tool in it can do
(Toolshed, section 3.4.3, self-RAG).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.fusion import RoundRobin
from pegboard.retrieval.llm.consulting import (
    Question,
    at_least_one,
    by_rank,
    consult,
    show_request,
    show_tools,
    shown_tools,
)
from pegboard.retrieval.llm.prompting import prompt
from pegboard.retrieval.llm.structured import read_texts, texts_schema
from pegboard.retrieval.parts import Candidates, Context, Query, Scored


@dataclass(frozen=True, slots=True)
class Reflect:
    """A refinement: an LLM says which capabilities are missing; they are searched, and the best
    tools for them come in.

    Those take the last places of the `k` that the caller wants, at most half of them, and what
    stood there moves behind; where fewer than
    k were found, they are appended. Without an LLM the ranking stays as it is: what a request needs
    and no tool found can do is not to be seen by rules. Scores are 1 / rank if something came in.

    Attributes:
        rounds: how often it is asked; it ends sooner when nothing is missing.
        missing: the most capabilities in a round.
        add: the tools that each of them brings.
        prompts: a folder with a `reflect.md` of one's own.
    """

    part: ClassVar[str] = "reflect"
    rounds: int = 1
    missing: int = 3
    add: int = 2
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(self.part, rounds=self.rounds, missing=self.missing, add=self.add)

    async def refine(self, candidates: Candidates, context: Context) -> list[Scored]:
        """The ranking with what came in."""
        ranking = list(candidates.ranking)
        searched: list[str] = []
        for _ in range(self.rounds):
            if not (wanted := await self._wanted(ranking, context)):
                break
            brought = await self._brought(wanted, ranking, context)
            searched += wanted
            if not brought:
                break
            ranking = _merged(ranking, brought, context.request.k)
        if searched:
            context.trace.queries = (*context.trace.queries, *searched)
            context.trace.note = f"missing: {'; '.join(searched)}"
        elif context.trace.instead_because is None:
            context.trace.note = "nothing is missing"
        return ranking

    async def _wanted(self, ranking: Sequence[Scored], context: Context) -> list[str]:
        labels = await shown_tools(context, ranking, context.request.k)
        asked = prompt("reflect", self.prompts).request(
            texts_schema("missing"),
            request=show_request(context.request.text),
            tools=show_tools(labels, context.agents),
            count=str(self.missing),
        )
        read = Question(asked, lambda reply: read_texts(reply, "missing", self.missing))
        [wanted] = await consult(context, [read])
        return wanted or []

    async def _brought(
        self, wanted: Sequence[str], ranking: Sequence[Scored], context: Context
    ) -> list[str]:
        """The tools for what is missing, the best of each first, as far as they do not stand among
        the first k already.
        """
        queries = [Query(text, step, "missing") for step, text in enumerate(wanted, start=1)]
        found = await context.search(queries, self.add)
        there = {one.tool for one in ranking[: context.request.k]}
        fused = RoundRobin().fuse([one[: self.add] for one in found], [1.0] * len(found))
        return [one.tool for one in fused if one.tool not in there]


def _merged(ranking: Sequence[Scored], brought: Sequence[str], k: int) -> list[Scored]:
    first = [one.tool for one in ranking[:k]]
    room = max(k - len(first), 0)
    coming = brought[: room + len(first) // 2] if len(brought) > room else brought
    kept = len(first) - max(len(coming) - room, 0)
    rest = (one.tool for one in ranking)
    return by_rank([*first[:kept], *coming, *rest])
