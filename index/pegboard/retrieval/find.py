"""`Board.find` in one release: from requests and a strategy to hits."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import QueryError
from pegboard.hits import Hit
from pegboard.llm import Message
from pegboard.ranker.model import NOTHING_FITS, Ranker
from pegboard.retrieval.called import check_called
from pegboard.retrieval.context import Context, QueryRankings, RequestLog, Searches
from pegboard.retrieval.engine import run_strategy
from pegboard.retrieval.execution import Execution, drive, run_to_end
from pegboard.retrieval.found import FindResult, Judge, StepResult, Trace
from pegboard.retrieval.requests import Candidates, Request
from pegboard.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.search.arguments import check_arguments
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.retrieval.llm.caller import LlmCaller


@dataclass(frozen=True, slots=True)
class FindArguments:
    """The arguments of `Board.find_many`, and the `vector` of `Board.search`; see there."""

    requests: Sequence[str]
    k: int = 5
    strategy: "Strategy | str | Mapping[str, Any] | None" = None
    index: str | None = None
    where: Mapping[str, str | Sequence[str]] | None = None
    history: Sequence[Message | Mapping[str, str]] = ()
    explain: bool = False
    vector: "Sequence[float] | NDArray[np.floating] | None" = None
    called: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_arguments(k=self.k, index=self.index, texts=self.requests, history=self.history)
        check_called(self.called)


def find(
    loaded: LoadedRelease,
    arguments: FindArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None",
) -> list[FindResult]:
    """Return the result of each request, blocking this thread.

    Strategies with an LLM or with custom parts run in an event loop, concurrently where possible.
    """
    strategy = strategy_of(arguments.strategy, loaded)
    concurrent = caller is not None or not strategy.is_of_the_library()
    run = run_to_end if concurrent else drive
    return run(_find(loaded, arguments, strategy, vectors, caller, Execution(concurrent)))


async def find_async(
    loaded: LoadedRelease,
    arguments: FindArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None",
) -> list[FindResult]:
    """Return the result of each request without blocking the event loop.

    Strategies without an LLM and without custom parts run in one worker thread.
    """
    strategy = strategy_of(arguments.strategy, loaded)
    if caller is None and strategy.is_of_the_library():
        return await asyncio.to_thread(find, loaded, arguments, vectors, None)
    return await _find(loaded, arguments, strategy, vectors, caller, Execution(True))


def strategy_of(
    strategy: "Strategy | str | Mapping[str, Any] | None", loaded: LoadedRelease
) -> Strategy:
    """Return a strategy given as itself, by name or as JSON values; the release's for None.

    Raises:
        QueryError: the name is unknown, or the JSON values have problems; lists all of them.
    """
    if strategy is None:
        published: str | Mapping[str, Any] | None = loaded.release.manifest.get("strategy")
        strategy = published or DEFAULT_STRATEGY
    if isinstance(strategy, str):
        return named_strategy(strategy)
    if not isinstance(strategy, Strategy | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QueryError(
            f"Invalid strategy: {strategy!r:.80}. Expected a Strategy, its JSON values, or a name: "
            f"{', '.join(STRATEGIES)}."
        )
    return strategy if isinstance(strategy, Strategy) else Strategy.from_dict(strategy)


async def _find(
    loaded: LoadedRelease,
    arguments: FindArguments,
    strategy: Strategy,
    vectors: QueryVectors,
    caller: "LlmCaller | None",
    execution: Execution,
) -> list[FindResult]:
    index = loaded.index_name(arguments.index or strategy.index)
    where = loaded.filter(arguments.where)
    searches = Searches(
        loaded,
        vectors,
        index,
        where,
        arguments.k,
        strategy.mode,
        strategy.alpha,
        arguments.vector,
    )
    history = tuple(_message(message) for message in arguments.history)
    states = [
        Context(
            searches,
            execution,
            RequestLog(Request(text, arguments.k, history), Trace(strategy.name)),
            caller,
            arguments.explain,
            tuple(arguments.called),
        )
        for text in arguments.requests
    ]
    answerable = [state for state in states if searches.can_search(state.request.text)]
    ranked = await run_strategy(strategy, answerable)
    candidates_of = {
        id(state): candidates for state, candidates in zip(answerable, ranked, strict=True)
    }
    return [
        await execution.run(lambda state=state: _result(state, candidates_of.get(id(state))))
        for state in states
    ]


def _result(state: Context, candidates: Candidates | None) -> FindResult:
    loaded = state.loaded
    release = loaded.release.id
    if candidates is None:  # a blank request
        return FindResult((), state.log.trace, release=release)
    ids = [scored.tool for scored in candidates.ranking]
    tools = loaded.tools(ids)
    why = _why(state, ids)
    probabilities = state.probabilities
    hits = tuple(
        Hit(
            tools[scored.tool],
            loaded.agents[tools[scored.tool].agent],
            scored.score,
            why[scored.tool],
            release,
            None if probabilities is None else probabilities.get(scored.tool),
        )
        for scored in candidates.ranking
        if scored.tool in tools
    )
    steps = tuple(
        StepResult(candidates.texts[step], tuple(row.tool for row in ranking[: state.request.k]))
        for step, ranking in candidates.steps.items()
        if len(candidates.steps) > 1
    )
    probability: float | None = None
    if probabilities is not None:
        probability = max((hit.probability or 0.0 for hit in hits), default=0.0)
    nothing_fits, judge = _verdict(state, probability)
    return FindResult(hits, state.log.trace, steps, probability, release, nothing_fits, judge)


def _verdict(state: Context, probability: float | None) -> tuple[bool, Judge | None]:
    """Return whether nothing fits, and who says so: an LLM that looked, else the threshold."""
    fits = state.log.verdict
    if fits is not None:
        return not fits, "llm"
    threshold = (state.thresholds or {}).get(NOTHING_FITS)
    if probability is None or threshold is None:
        return False, None
    return probability < threshold, "ranker"


def _why(state: Context, ids: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return `Hit.why` of each tool: its best rank by each scorer, with the query; the tool that
    depends on it; the evidence of called tools.
    """
    log = state.log
    why: dict[str, dict[str, dict[str, Any]]] = {tool: {} for tool in ids}
    has_several_queries = len({result.query for result in log.results}) > 1
    for result in log.results:
        for scorer, ranking in result.rankings.items():
            for rank, row in enumerate(ranking, start=1):
                reasons = why.get(row.tool)
                if reasons is None or (scorer in reasons and reasons[scorer]["rank"] <= rank):
                    continue
                reasons[scorer] = {"rank": rank, "score": row.score, "part": row.part}
                if has_several_queries:
                    reasons[scorer]["query"] = result.query
        if state.explain and result.measures is not None:
            _add_contributions(why, result, state.loaded.ranker(state.searches.index))
    for tool in why.keys() & log.added.keys():
        why[tool]["dependency"] = dict(log.added[tool])
    for tool in why.keys() & log.evidence.keys():
        why[tool]["called"] = {"evidence": round(log.evidence[tool], 3)}
    return why


def _add_contributions(
    why: Mapping[str, dict[str, dict[str, Any]]], result: QueryRankings, ranker: Ranker
) -> None:
    """Add the contribution of each feature to the score of each tool whose best query this is."""
    assert result.measures is not None
    for tool, contributions in ranker.contributions(result.query, result.measures).items():
        reason = why.get(tool, {}).get("ranker")
        if reason is not None and reason.get("query", result.query) == result.query:
            reason["adds"] = contributions


def _message(message: Message | Mapping[str, str]) -> Message:
    if isinstance(message, Message):
        return message
    values: Any = message if isinstance(message, Mapping) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    role = values.get("role")
    content = values.get("content")
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        raise QueryError(
            f"Invalid message in the history: {message!r:.80}. Expected "
            '{"role": "user" or "assistant", "content": a text}, as chat APIs take them.'
        )
    return Message(role, content)
