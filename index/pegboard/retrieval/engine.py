"""Runs a strategy: transforms -> searches -> fusion and refinements of each step -> fusion over the
steps -> refinements.
"""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pegboard.retrieval.parts import Candidates, Fusion, Query, Ranking, Refinement, Scored
from pegboard.retrieval.searching import Seen
from pegboard.retrieval.strategy import Strategy
from pegboard.retrieval.trace import PartTrace
from pegboard.retrieval.working import PartContext, Work


@dataclass(slots=True)
class Answered:
    """What a strategy found for one request: the ranking, best first, and the steps with theirs."""

    ranking: list[Scored]
    steps: dict[int, Ranking] = field(default_factory=dict[int, "Ranking"])
    texts: dict[int, str] = field(default_factory=dict[int, str])


async def answer(strategy: Strategy, works: Sequence[Work]) -> list[Answered]:
    """What the strategy finds for each request, of one release; all their queries are one call of
    the encoder and one search.

    The requests share how they are searched and how they wait.
    """
    if not works:
        return []
    waits = works[0].waits
    queries = await waits.all([_transformed(strategy, work) for work in works])
    texts = list(dict.fromkeys(query.text for each in queries for query in each))
    began = time.perf_counter()
    seen = await waits.run(lambda: works[0].searches.search(texts, strategy.depth))
    found = dict(zip(texts, seen, strict=True))
    spent = (time.perf_counter() - began) * 1000
    finished: list[Any] = []
    for work, own in zip(works, queries, strict=True):
        note = f"one search for {len(works)} requests" if len(works) > 1 else ""
        searched = tuple(dict.fromkeys(query.text for query in own))
        work.trace.parts.append(
            PartTrace("search", "search", milliseconds=spent, note=note, queries=searched)
        )
        finished.append(_finished(strategy, work, own, [found[query.text] for query in own]))
    return await waits.all(finished)


async def _transformed(strategy: Strategy, work: Work) -> list[Query]:
    queries = [Query(work.request.text)]
    for part in strategy.transforms:
        with _traced(work, part.part, "transform") as trace:
            queries = await part.transform(queries, PartContext(work, trace)) or queries
            trace.queries = tuple(query.text for query in queries)
    # A query that stands there twice would count twice in every fusion.
    return list(
        {
            (query.step, query.text): query for query in reversed(queries) if query.text.strip()
        }.values()
    )[::-1]


async def _finished(
    strategy: Strategy, work: Work, queries: Sequence[Query], seen: Sequence[Sequence[Seen]]
) -> Answered:
    rankings: dict[int, list[Ranking]] = {}
    weights: dict[int, list[float]] = {}
    texts: dict[int, str] = {}
    for query, one in zip(queries, seen, strict=True):
        rankings.setdefault(query.step, []).append(
            work.note_search(one)[: max(strategy.depth, work.request.k)]
        )
        weights.setdefault(query.step, []).append(query.weight)
        texts.setdefault(query.step, query.text)
    numbers = sorted(rankings)
    steps: dict[int, Ranking] = {}
    for step in numbers:
        steps[step] = _fused(strategy.within, rankings[step], weights[step], work, step)
    for part in strategy.each:
        refined = await work.waits.all(
            [
                _refined(part, {step: steps[step]}, texts, steps[step], work, step)
                for step in numbers
            ]
        )
        steps = dict(zip(numbers, refined, strict=True))
    ranking = _fused(
        strategy.across,
        [steps[step] for step in numbers],
        [max(weights[step]) for step in numbers],
        work,
    )
    for part in strategy.refine:
        ranking = await _refined(part, steps, texts, ranking, work)
    return Answered(list(ranking)[: work.request.k], steps, texts)


def _fused(
    fusion: Fusion,
    rankings: Sequence[Ranking],
    weights: Sequence[float],
    work: Work,
    step: int | None = None,
) -> Ranking:
    if len(rankings) == 1:
        _explain(work, step, rankings[0])
        return rankings[0]
    if not rankings:
        return []
    with _traced(work, fusion.part, "fuse", step) as trace:
        ranking = fusion.fuse(rankings, weights)
        _ranks(work, trace, ranking)
        return ranking


async def _refined(
    part: Refinement,
    steps: dict[int, Ranking],
    texts: dict[int, str],
    before: Ranking,
    work: Work,
    step: int | None = None,
) -> Ranking:
    with _traced(work, part.part, "refine", step) as trace:
        own = {number: texts[number] for number in steps}
        ranking = await part.refine(Candidates(steps, before, own), PartContext(work, trace))
        _ranks(work, trace, ranking)
        return ranking


@contextmanager
def _traced(work: Work, part: str, stage: str, step: int | None = None) -> Generator[PartTrace]:
    trace = PartTrace(part, stage, step)
    work.trace.parts.append(trace)
    began = time.perf_counter()
    try:
        yield trace
    finally:
        trace.milliseconds = (time.perf_counter() - began) * 1000


def _ranks(work: Work, trace: PartTrace, ranking: Ranking) -> None:
    if work.explain:
        trace.ranks = {one.tool: rank for rank, one in enumerate(ranking, start=1)}


def _explain(work: Work, step: int | None, ranking: Ranking) -> None:
    """One search needs no fusion; what it found is noted under the name of the search."""
    if work.explain and step is not None:
        trace = PartTrace("search", "fuse", step)
        _ranks(work, trace, ranking)
        work.trace.parts.append(trace)
