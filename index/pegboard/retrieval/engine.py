"""Runs a strategy: transforms -> searches -> `fuse_queries` and `refine_step` for each step ->
`fuse_steps` -> the tools just called, if any -> `refine`.
"""

import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pegboard.retrieval.called import lifted
from pegboard.retrieval.context import Context, QueryRankings
from pegboard.retrieval.found import PartTrace
from pegboard.retrieval.parts import Fusion, Refinement, Transform
from pegboard.retrieval.requests import Candidates, Query, Ranking
from pegboard.retrieval.strategy import Strategy


async def run_strategy(strategy: Strategy, states: Sequence[Context]) -> list[Candidates]:
    """Answer several requests in one release, with one encoder call and one search for all queries.

    Args:
        states: the contexts of the requests, which share their searches and their execution.

    Returns:
        For each request at most k tools, best first, and the ranking of every step.
    """
    if not states:
        return []
    execution = states[0].execution
    searches = states[0].searches
    queries_of_requests = await execution.gather(
        [partial(transformed, strategy.transforms, state) for state in states]
    )
    texts = list(dict.fromkeys(query.text for queries in queries_of_requests for query in queries))
    start = time.perf_counter()
    results = await execution.run(lambda: searches.search(texts, strategy.depth))
    by_text = dict(zip(texts, results, strict=True))
    milliseconds = (time.perf_counter() - start) * 1000
    note = f"one search for {len(states)} requests" if len(states) > 1 else ""
    pending: list[Callable[[], Awaitable[Candidates]]] = []
    for state, queries in zip(states, queries_of_requests, strict=True):
        searched = tuple(dict.fromkeys(query.text for query in queries))
        state.log.trace.parts.append(
            PartTrace(
                "search",
                "search",
                milliseconds=milliseconds,
                note=note,
                queries=searched,
                searches=len(searched),
            )
        )
        results_of_queries = [by_text[query.text] for query in queries]
        pending.append(partial(_rank, strategy, state, queries, results_of_queries))
    return await execution.gather(pending)


async def transformed(transforms: Sequence[Transform], state: Context) -> list[Query]:
    """Return the distinct queries that the transforms make of a request, in their steps."""
    queries = [Query(state.request.text)]
    for part in transforms:
        with _traced(state, part.part, "transform") as trace:
            queries = await part.transform(queries, replace(state, trace=trace)) or queries
            trace.queries = tuple(query.text for query in queries)
        # All later parts work with the rewritten request.
        for query in queries:
            if query.step == 0 and query.role == "rewrite" and query.text.strip():
                state.log.request = replace(state.request, text=query.text)
    # A duplicate query would count twice in every fusion.
    unique = {
        (query.step, query.text): query
        for query in reversed(queries)
        if state.searches.can_search(query.text)
    }
    return list(unique.values())[::-1]


async def _rank(
    strategy: Strategy, state: Context, queries: Sequence[Query], results: Sequence[QueryRankings]
) -> Candidates:
    rankings: dict[int, list[Ranking]] = {}
    weights: dict[int, list[float]] = {}
    texts: dict[int, str] = {}
    searches: dict[int, dict[str, Ranking]] = {}
    depth = max(strategy.depth, state.request.k)
    for query, result in zip(queries, results, strict=True):
        ranking = state.record(result)[:depth]
        rankings.setdefault(query.step, []).append(ranking)
        weights.setdefault(query.step, []).append(query.weight)
        texts.setdefault(query.step, query.text if query.step else state.request.text)
        searches.setdefault(query.step, {})[query.text] = ranking
    numbers = sorted(rankings)
    steps: dict[int, Ranking] = {
        step: _fuse(strategy.fuse_queries, rankings[step], weights[step], state, step)
        for step in numbers
    }
    for part in strategy.refine_step:
        calls = [
            partial(
                _refine,
                part,
                Candidates({step: steps[step]}, steps[step], texts, searches),
                state,
                step,
            )
            for step in numbers
        ]
        refined = await state.execution.gather(calls)
        steps = dict(zip(numbers, refined, strict=True))
    step_weights = [max(weights[step]) for step in numbers]
    fused = _fuse(strategy.fuse_steps, [steps[step] for step in numbers], step_weights, state)
    if state.called:
        with _traced(state, "called", "refine") as trace:
            fused = _recorded(state, trace, await lifted(fused, replace(state, trace=trace)))
    for part in strategy.refine:
        fused = await _refine(part, Candidates(steps, fused, texts, searches), state)
    return Candidates(steps, list(fused)[: state.request.k], texts, searches)


def _fuse(
    fusion: Fusion,
    rankings: Sequence[Ranking],
    weights: Sequence[float],
    state: Context,
    step: int | None = None,
) -> Ranking:
    if not rankings:
        return []
    if len(rankings) > 1:
        with _traced(state, fusion.part, "fuse", step) as trace:
            return _recorded(state, trace, fusion.fuse(rankings, weights))
    # A single ranking needs no fusion; its ranks are recorded under the name of the search.
    if state.explain and step is not None:
        trace = PartTrace("search", "fuse", step)
        state.log.trace.parts.append(trace)
        _recorded(state, trace, rankings[0])
    return rankings[0]


async def _refine(
    part: Refinement, candidates: Candidates, state: Context, step: int | None = None
) -> Ranking:
    with _traced(state, part.part, "refine", step) as trace:
        texts = {number: candidates.texts[number] for number in candidates.steps}
        visible = replace(candidates, texts=texts)
        return _recorded(state, trace, await part.refine(visible, replace(state, trace=trace)))


@contextmanager
def _traced(state: Context, part: str, stage: str, step: int | None = None) -> Generator[PartTrace]:
    trace = PartTrace(part, stage, step)
    state.log.trace.parts.append(trace)
    start = time.perf_counter()
    try:
        yield trace
    finally:
        trace.milliseconds = (time.perf_counter() - start) * 1000


def _recorded(state: Context, trace: PartTrace, ranking: Ranking) -> Ranking:
    if state.explain:
        trace.ranks = {scored.tool: rank for rank, scored in enumerate(ranking, start=1)}
    return ranking
