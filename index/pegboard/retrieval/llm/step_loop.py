"""Choosing tools step by step, and looking further where none fits: the worker loop of
Retrieval-Plan-Select (RPS, sections 3.3, 4.6).

The paper's best configuration by recall: K grows by 5 in each loop, variations of the step are
searched, and after three loops the step's
best candidates are taken: a tool that is missing makes a task fail, one too many does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pegboard.retrieval.fusion import ReciprocalRank, RoundRobin
from pegboard.retrieval.llm.questions import (
    Question,
    at_least_one,
    by_rank,
    choice,
    consult,
    labelled,
    prompt,
    show_request,
)
from pegboard.retrieval.llm.transforms import Expand
from pegboard.retrieval.parts import Candidates, Context, Query, Ranking, ScoredTool
from pegboard.retrieval.results import NO_LLM


@dataclass(frozen=True, slots=True)
class StepLoop:
    """A refinement: for each step an LLM chooses the suitable tools among its first k; where it
    chooses none, the step is searched anew.

    The result is the union over the steps: the first choice of each, then the second of each, and
    so on; scores are 1 / rank. A step whose question fails gets its first k at once. Without an
    LLM, the result is the first k of each step.

    Attributes:
        k: the candidates of a step in the first round; the paper's K, 5 to 10.
        more: by how much they grow in each round; the paper's +5.
        rounds: the most rounds; the paper's 3.
        variations: how many wordings of the step are searched from the second round on.
        rest: whether what was not chosen stays behind the union; otherwise it is left out, as in
            the paper.
        prompts: a folder with a `select.md` or an `expand.md` of one's own.
    """

    part: ClassVar[str] = "step-loop"
    k: int = 10
    more: int = 5
    rounds: int = 3
    variations: int = 3
    rest: bool = False
    prompts: str | None = None

    def __post_init__(self) -> None:
        at_least_one(
            self.part, k=self.k, more=self.more, rounds=self.rounds, variations=self.variations
        )

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The union of what each step chose, or fell back to."""
        by_step = {step: list(ranking[: self.k]) for step, ranking in candidates.steps.items()}
        chosen: dict[int, list[str]] = {}
        waiting = [step for step, ranking in by_step.items() if ranking]
        if not context.has_llm:
            context.trace.fallback_reason, waiting = NO_LLM, []
        notes: list[str] = []
        for number in range(1, self.rounds + 1):
            if not waiting:
                break
            if number > 1:
                by_step |= await self._further(
                    waiting, self.k + self.more * (number - 1), candidates.texts, context
                )
            answers = await self._choices(waiting, by_step, candidates.texts, context)
            chosen |= {step: names for step, names in zip(waiting, answers, strict=True) if names}
            # What failed will fail again, and every round costs a wait; only a step for which
            # nothing fits is looked into further.
            waiting = [step for step, names in zip(waiting, answers, strict=True) if names == []]
            notes += [
                f"{len(waiting)} of {len(by_step)} steps without a suitable tool in round {number}"
            ] * bool(waiting)
        context.trace.note = "; ".join(notes)
        return self._union(candidates, by_step, chosen)

    async def _choices(
        self,
        steps: Sequence[int],
        by_step: Mapping[int, Ranking],
        texts: Mapping[int, str],
        context: Context,
    ) -> list[list[str] | None]:
        """The ids of the suitable tools of each step, best first; None where the question
        failed.
        """
        tools = await context.tools([row.tool for step in steps for row in by_step[step]])
        file = prompt("select", self.prompts)
        questions: dict[int, Question[list[str]]] = {}
        for step in steps:
            labels = labelled(
                {row.tool: tools[row.tool] for row in by_step[step] if row.tool in tools},
                context.agents,
            )
            if not labels:
                continue
            request = show_request(texts.get(step, context.request.text), "step")
            questions[step] = choice(context, file, "tools", labels, request)
        answers = dict(
            zip(questions, await consult(context, list(questions.values())), strict=True)
        )
        return [answers.get(step) for step in steps]

    async def _further(
        self, steps: Sequence[int], depth: int, texts: Mapping[int, str], context: Context
    ) -> dict[int, list[ScoredTool]]:
        """More candidates for these steps, of several wordings."""
        queries = [Query(texts.get(step, context.request.text), step, "step") for step in steps]
        varied = await Expand(self.variations, prompts=self.prompts).transform(queries, context)
        rankings = await context.search(varied, depth)
        by_step: dict[int, list[ScoredTool]] = {}
        for step in steps:
            own = [
                (row, query)
                for row, query in zip(rankings, varied, strict=True)
                if query.step == step
            ]
            fused = ReciprocalRank().fuse(
                [row for row, _ in own], [query.weight for _, query in own]
            )
            by_step[step] = fused[:depth]
        return by_step

    def _union(
        self,
        candidates: Candidates,
        by_step: Mapping[int, Ranking],
        chosen: Mapping[int, Sequence[str]],
    ) -> list[ScoredTool]:
        rankings: list[Ranking] = [
            by_rank(chosen[step]) if step in chosen else candidates.steps[step][: self.k]
            for step in sorted(by_step)
        ]
        union = RoundRobin().fuse(rankings, [1.0] * len(rankings))
        return (
            by_rank([*(row.tool for row in union), *(row.tool for row in candidates.ranking)])
            if self.rest
            else union
        )
