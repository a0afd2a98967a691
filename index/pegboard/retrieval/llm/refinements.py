"""Refinements by an LLM: order, grade, choose and complete what was found.

The reranker, the grader and the search for what is missing are Toolshed's (section 3.4.3 and
appendix H), the selection per step and the choice out of the union are Retrieval-Plan-Select's
(RPS, sections 3.3, 4.6). Without an LLM the ranking stays as
it is, unless a class says otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from pegboard.ranking import ScoredTool
from pegboard.retrieval.context import Context
from pegboard.retrieval.found import NO_LLM
from pegboard.retrieval.fusion import ReciprocalRank, RoundRobin
from pegboard.retrieval.llm.questions import (
    LlmPart,
    Question,
    by_rank,
    choice,
    labelled,
    own_steps,
    show_history,
    show_request,
    show_searches,
    show_steps,
    show_subject,
    show_tools,
    shown_tools,
)
from pegboard.retrieval.llm.replies import read_texts, texts_schema
from pegboard.retrieval.llm.transforms import Expand
from pegboard.retrieval.parts import LlmCalls
from pegboard.retrieval.requests import Candidates, Query, Ranking


@dataclass(frozen=True, slots=True)
class ListwiseRerank(LlmPart):
    """An LLM orders the first tools of the ranking.

    For one step it orders the tools of that step, and is shown what each query of the step found
    (Toolshed, fig. 23). Over several it is given the rule "the first of each step, then the second
    of each, none twice" (fig. 24), and may correct what does not fit; the fusion `round-robin` does
    the same without an LLM. Names that are missing in the reply keep their order behind the others.
    Scores are 1 / rank afterwards.

    Attributes:
        depth: the tools that the LLM sees; those behind stay where they are.
    """

    part: ClassVar[str] = "listwise-rerank"
    depth: int = 20

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the ranking, with its first tools in the LLM's order."""
        ranking = candidates.ranking
        labels = await shown_tools(context, ranking, self.depth)
        if len(labels) < 2:
            return list(ranking)
        several = len(own_steps(candidates)) > 1
        tools = await self.consult_one(
            context,
            choice(
                "rerank-steps" if several else "rerank",
                "ranking",
                labels,
                context,
                "orders no tools",
                request=show_subject(candidates, context),
                steps=show_steps(candidates, labels),
                searches="" if several else show_searches(candidates, labels),
            ),
        )
        if tools is None:
            return list(ranking)
        return by_rank([*tools, *(row.tool for row in ranking)])


@dataclass(frozen=True, slots=True)
class Look(LlmPart):
    """An LLM looks at the first tools and names those that serve the request, best first, or none.

    Its verdict whether anything fits replaces that of the threshold. Tools that it does not name
    keep their order behind the others, so that recall among what it saw cannot fall; if it names
    none, the ranking stays as it is, as the nearest tools. Scores are 1 / rank afterwards.

    Attributes:
        depth: the tools that the LLM sees; those behind stay where they are.
    """

    part: ClassVar[str] = "look"
    depth: int = 15

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the ranking, with the tools that serve the request first."""
        ranking = list(candidates.ranking)
        labels = await shown_tools(context, ranking, self.depth)
        if not labels:
            return ranking
        request = show_subject(candidates, context)
        history = show_history(context)
        question = choice("look", "tools", labels, context, request=request, history=history)
        tools = await self.consult_one(context, question)
        context.log.verdicts.append(None if tools is None else bool(tools))
        if tools is None:
            return ranking
        context.trace.note = f"{len(tools)} of {len(labels)} tools serve the request"
        return by_rank([*tools, *(row.tool for row in ranking)]) if tools else ranking


@dataclass(frozen=True, slots=True)
class Grade(LlmPart):
    """An LLM says which tools are relevant, and the others are dropped; the order stays.

    What it did not see is dropped, too: it would otherwise take the places of better tools. Without
    an LLM, a tool stays whose probability reaches `least`; where the search gives none, the ranking
    stays as it is.

    Attributes:
        depth: the tools that are graded; k if that is more.
        keep: the first tools that stay in any case. With 0 the result may be empty, which tells
            the caller that no tool fits.
        least: the probability of the fallback. Low, since a missing tool costs more than one too
            many.
    """

    part: ClassVar[str] = "grade"
    may_be_zero: ClassVar[tuple[str, ...]] = ("keep",)
    depth: int = 20
    keep: int = 1
    least: float = 0.05

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return what is left of the ranking, in its order and with its scores."""
        ranking = candidates.ranking
        labels = await shown_tools(context, ranking, max(self.depth, context.request.k))
        if not labels:
            return list(ranking)
        request = show_subject(candidates, context)
        steps = show_steps(candidates)
        question = choice("grade", "relevant", labels, context, request=request, steps=steps)
        relevant = await self.consult_one(context, question)
        if relevant is None:
            return self._by_probability(candidates, context)
        context.trace.note = f"{len(relevant)} of {len(labels)} tools are relevant"
        return [
            row for place, row in enumerate(ranking) if place < self.keep or row.tool in relevant
        ]

    def _by_probability(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        probabilities = context.probabilities
        if probabilities is None:
            context.trace.note = "nothing is dropped: only a hybrid search gives probabilities"
            return list(candidates.ranking)
        # A tool that a part added without a search has no probability, and was added for a reason.
        remaining = [
            row
            for place, row in enumerate(candidates.ranking)
            if place < self.keep or probabilities.get(row.tool, 1.0) >= self.least
        ]
        context.trace.note = (
            f"{len(remaining)} of {len(candidates.ranking)} tools have a probability "
            f"of {self.least:g} or more"
        )
        return remaining


@dataclass(frozen=True, slots=True)
class PostSelection(LlmPart):
    """An LLM chooses the tools that the request needs; only they are left, in their order.

    It trades recall for precision: in the paper recall falls from .557 to .424 while F1 rises from
    .325 to .396. If nothing is chosen, the ranking stays as it is.

    Attributes:
        depth: the tools that the LLM sees; those behind are left out.
    """

    part: ClassVar[str] = "post-selection"
    depth: int = 30

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the chosen tools, in the order of the ranking and with its scores."""
        ranking = candidates.ranking
        labels = await shown_tools(context, ranking, self.depth)
        if not labels:
            return list(ranking)
        request = show_subject(candidates, context)
        steps = show_steps(candidates)
        question = choice(
            *("post-select", "tools", labels, context, "chooses no tool"),
            request=request,
            steps=steps,
        )
        chosen = await self.consult_one(context, question)
        if chosen is None:
            return list(ranking)
        context.trace.note = f"{len(chosen)} of {len(labels)} tools are chosen"
        return [row for row in ranking if row.tool in chosen]


@dataclass(frozen=True, slots=True)
class Reflect(LlmPart):
    """An LLM names missing capabilities; they are searched, and the best tools for them come in.

    They take the last places of the `k` that the caller wants, at most half of them, and what stood
    there moves behind; where fewer than k were found, they are appended. Scores are 1 / rank if
    something came in. No rule can do this without an LLM.

    Attributes:
        missing: the most capabilities.
        add: the tools that each of them brings.
    """

    part: ClassVar[str] = "reflect"
    missing: int = 3
    add: int = 2

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the ranking with what came in."""
        ranking = list(candidates.ranking)
        missing = await self._missing(candidates, ranking, context)
        if missing:
            if tools := await self._search(missing, ranking, context):
                ranking = _merged(ranking, tools, context.request.k)
            context.trace.queries = (*context.trace.queries, *missing)
            context.trace.note = f"missing: {'; '.join(missing)}"
        elif context.trace.fallback_reason is None:
            context.trace.note = "nothing is missing"
        return ranking

    async def _missing(
        self, candidates: Candidates, ranking: Sequence[ScoredTool], context: Context
    ) -> list[str]:
        labels = await shown_tools(context, ranking, context.request.k)
        values = {
            "request": show_subject(candidates, context),
            "steps": show_steps(candidates),
            "tools": show_tools(labels, context.loaded.agents),
            "count": str(self.missing),
        }
        read = partial(read_texts, field="missing", limit=self.missing)
        question = Question("reflect", values, texts_schema("missing"), read)
        return await self.consult_one(context, question) or []

    async def _search(
        self, missing: Sequence[str], ranking: Sequence[ScoredTool], context: Context
    ) -> list[str]:
        """The tools for what is missing, the best of each first, without the first k so far."""
        queries = [Query(text, step, "missing") for step, text in enumerate(missing, start=1)]
        rankings = [
            query_ranking[: self.add] for query_ranking in await context.search(queries, self.add)
        ]
        present = {row.tool for row in ranking[: context.request.k]}
        fused = RoundRobin().fuse(rankings, [1.0] * len(rankings))
        return [row.tool for row in fused if row.tool not in present]


@dataclass(frozen=True, slots=True)
class StepLoop(LlmPart):
    """An LLM selects the suitable tools among the first k of each step; a step without one is
    searched again: the worker loop of RPS in its best configuration by recall. A tool that is
    missing makes a task fail, one too many does not.

    Each further round has more candidates, and asks for variations other than those that were
    searched already: an LLM that is asked the same again answers the same. The result is the union
    over the steps: the first choice of each, then the second of each, and so on; scores are
    1 / rank. A step for which nothing was chosen gets all the candidates of its last round. A step
    whose question fails gets those that it has at once. Without an LLM, the result is the first k
    of each step.

    Attributes:
        k: the candidates of a step in the first round; the paper's K, 5 to 10.
        more: by how much they grow in each round; the paper's +5. 0 for no growth.
        rounds: the most rounds; the paper's 3. Without growth and variations a further round would
            ask the same again, so there is only one.
        variations: how many wordings of the step each round from the second on adds; the paper's
            multi-query. 0 for none.
        all_if_none: whether a step for which nothing was chosen gets its candidates; the paper's
            fallback.
    """

    part: ClassVar[str] = "step-loop"
    may_be_zero: ClassVar[tuple[str, ...]] = ("more", "variations")
    k: int = 10
    more: int = 5
    rounds: int = 3
    variations: int = 3
    all_if_none: bool = True

    @property
    def most_rounds(self) -> int:
        """The most rounds that may bring something new."""
        return self.rounds if self.more or self.variations else 1

    def llm_calls(self) -> LlmCalls:
        """Return the calls: one for each step in each round, and another for its variations from
        the second round on.
        """
        calls_per_round = 2 if self.variations else 1
        return LlmCalls(step=1, further=(self.most_rounds - 1) * calls_per_round)

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """Return the union of what each step chose, or fell back to."""
        pools = {step: list(ranking[: self.k]) for step, ranking in candidates.steps.items()}
        texts = {step: candidates.texts.get(step, context.request.text) for step in pools}
        queries = {step: [Query(text, step, "step")] for step, text in texts.items()}
        chosen: dict[int, list[str]] = {}
        waiting = [step for step, ranking in pools.items() if ranking]
        if context.caller is None:
            context.trace.fallback_reason = NO_LLM
            waiting = []
        notes: list[str] = []
        for number in range(1, self.most_rounds + 1):
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
        if not self.all_if_none:
            pools |= {step: [] for step in waiting}
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
            step_tools = {row.tool: tools[row.tool] for row in pools[step] if row.tool in tools}
            if labels := labelled(step_tools, context.loaded.agents):
                request = show_request(texts[step], "step")
                questions[step] = choice("select", "tools", labels, context, request=request)
        replies = await self.consult(context, list(questions.values()))
        answers = dict(zip(questions, replies, strict=True))
        return [answers.get(step) for step in steps]

    async def _varied(
        self, queries: Sequence[Sequence[Query]], context: Context
    ) -> dict[int, list[Query]]:
        """The queries of each step, with more variations if there are to be any."""
        if not self.variations:
            return {step_queries[0].step: list(step_queries) for step_queries in queries}
        expand = Expand(self.variations, reply_tokens=self.reply_tokens)
        varied: dict[int, list[Query]] = {}
        flat = await expand.transform([query for step in queries for query in step], context)
        for query in dict.fromkeys(flat):
            varied.setdefault(query.step, []).append(query)
        return varied

    async def _pools(
        self,
        first_rankings: Mapping[int, Ranking],
        queries: Mapping[int, Sequence[Query]],
        depth: int,
        context: Context,
    ) -> dict[int, list[ScoredTool]]:
        """The candidates of each step: its first ranking and those of its variations, fused."""
        variations = [query for step_queries in queries.values() for query in step_queries[1:]]
        rankings = dict(zip(variations, await context.search(variations, depth), strict=True))
        return {
            step: ReciprocalRank().fuse(
                [first_rankings[step][:depth], *(rankings[query] for query in step_queries[1:])],
                [query.weight for query in step_queries],
            )[:depth]
            for step, step_queries in queries.items()
        }


def _merged(ranking: Sequence[ScoredTool], tools: Sequence[str], k: int) -> list[ScoredTool]:
    front = [row.tool for row in ranking[:k]]
    room = max(k - len(front), 0)
    coming = tools[: room + len(front) // 2] if len(tools) > room else tools
    staying = len(front) - max(len(coming) - room, 0)
    return by_rank([*front[:staying], *coming, *(row.tool for row in ranking)])
