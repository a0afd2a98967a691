"""Selection per step, with further searches where no tool fits: the worker loop of
Retrieval-Plan-Select (RPS, sections 3.3, 4.6).

The paper's best configuration by recall: K grows by 5 in each loop, variations of the step are
searched, and after three loops the step's best candidates are taken: a tool that is missing makes
a task fail, one too many does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.context import Context
from pegboard.retrieval.found import NO_LLM
from pegboard.retrieval.fusion import ReciprocalRank, RoundRobin
from pegboard.retrieval.llm.questions import (
    LlmPart,
    Question,
    by_rank,
    choice,
    labelled,
    show_request,
)
from pegboard.retrieval.llm.transforms import Expand
from pegboard.retrieval.parts import Candidates, Query, Ranking, ScoredTool


@dataclass(frozen=True, slots=True)
class StepLoop(LlmPart):
    """An LLM selects the suitable tools among the first k of each step; a step without one is
    searched again.

    Each further round has more candidates, and asks for variations other than those that were
    searched already: an LLM that is asked the same again answers the same. The result is the union
    over the steps: the first choice of each, then the second of each, and so on; scores are
    1 / rank. A step for which nothing was chosen gets all the candidates of its last round. A step
    whose question fails gets those that it has at once. Without an LLM, the result is the first k
    of each step.

    Attributes:
        k: the candidates of a step in the first round; the paper's K, 5 to 10.
        more: by how much they grow in each round; the paper's +5.
        rounds: the most rounds; the paper's 3.
        variations: how many wordings of the step each round from the second on adds.
    """

    part: ClassVar[str] = "step-loop"
    k: int = 10
    more: int = 5
    rounds: int = 3
    variations: int = 3

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the union of what each step chose, or fell back to."""
        pools = {step: list(ranking[: self.k]) for step, ranking in candidates.steps.items()}
        texts = {step: candidates.texts.get(step, context.request.text) for step in pools}
        queries = {step: [Query(text, step, "step")] for step, text in texts.items()}
        chosen: dict[int, list[str]] = {}
        waiting = [step for step, ranking in pools.items() if ranking]
        if context.caller is None:
            context.trace.fallback_reason, waiting = NO_LLM, []
        notes: list[str] = []
        for number in range(1, self.rounds + 1):
            if not waiting:
                break
            if number > 1:
                queries = await self._varied([queries[step] for step in waiting], context)
                depth = self.k + self.more * (number - 1)
                pools |= await self._pools(candidates.steps, queries, depth, context)
            answers = await self._choices(waiting, pools, texts, context)
            chosen |= {step: names for step, names in zip(waiting, answers, strict=True) if names}
            # What failed will fail again, and every round costs a wait; only a step for which
            # nothing fits is looked into further.
            waiting = [step for step, names in zip(waiting, answers, strict=True) if names == []]
            notes += [
                f"{len(waiting)} of {len(pools)} steps without a suitable tool in round {number}"
            ] * bool(waiting)
        context.trace.note = "; ".join(notes)
        rankings = [
            by_rank(chosen[step]) if step in chosen else pools[step] for step in sorted(pools)
        ]
        return RoundRobin().fuse(rankings, [1.0] * len(rankings))

    async def _choices(
        self,
        steps: Sequence[int],
        pools: Mapping[int, Ranking],
        texts: Mapping[int, str],
        context: Context,
    ) -> list[list[str] | None]:
        """The ids of the suitable tools of each step, best first; None where the question
        failed.
        """
        tools = await context.tools([row.tool for step in steps for row in pools[step]])
        questions: dict[int, Question[list[str]]] = {}
        for step in steps:
            own = {row.tool: tools[row.tool] for row in pools[step] if row.tool in tools}
            if labels := labelled(own, context.loaded.agents):
                request = show_request(texts[step], "step")
                questions[step] = choice("select", "tools", labels, context, request=request)
        replies = await self.consult(context, list(questions.values()))
        answers = dict(zip(questions, replies, strict=True))
        return [answers.get(step) for step in steps]

    async def _varied(
        self, queries: Sequence[Sequence[Query]], context: Context
    ) -> dict[int, list[Query]]:
        """The queries of each step, with more variations."""
        expand = Expand(self.variations, reply_tokens=self.reply_tokens)
        varied: dict[int, list[Query]] = {}
        flat = await expand.transform([query for step in queries for query in step], context)
        for query in dict.fromkeys(flat):
            varied.setdefault(query.step, []).append(query)
        return varied

    async def _pools(
        self,
        first: Mapping[int, Ranking],
        queries: Mapping[int, Sequence[Query]],
        depth: int,
        context: Context,
    ) -> dict[int, list[ScoredTool]]:
        """The candidates of each step: its first ranking and those of its variations, fused."""
        more = [query for own in queries.values() for query in own[1:]]
        rankings = dict(zip(more, await context.search(more, depth), strict=True))
        return {
            step: ReciprocalRank().fuse(
                [first[step][:depth], *(rankings[query] for query in own[1:])],
                [query.weight for query in own],
            )[:depth]
            for step, own in queries.items()
        }
