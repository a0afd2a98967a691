"""What `Board.find` does in one release: requests, a strategy, and the hits that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import QueryError
from pegboard.hits import Hit
from pegboard.llm import Message
from pegboard.retrieval.engine import Answered, answer
from pegboard.retrieval.found import Found, FoundStep
from pegboard.retrieval.parts import Request
from pegboard.retrieval.searching import Searches
from pegboard.retrieval.strategies import DEFAULT_PLAN, STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.retrieval.trace import Trace
from pegboard.retrieval.waits import Blocking, Waits, Yielding, drive, run_to_end
from pegboard.retrieval.working import Work
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors

if TYPE_CHECKING:
    from pegboard.retrieval.llm.asking import LlmCaller


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller of `Board.find` asked for: see there."""

    requests: Sequence[str]
    k: int = 5
    strategy: "Strategy | str | Mapping[str, Any] | None" = None
    index: str | None = None
    where: Mapping[str, str | Sequence[str]] | None = None
    history: Sequence[Message | Mapping[str, str]] = ()
    explain: bool = False


def find(
    loaded: LoadedRelease, asked: Asked, vectors: QueryVectors, caller: "LlmCaller | None"
) -> list[Found]:
    """What was found for each request; waits in this thread. Where an LLM may be asked, or a part
    of the caller's own may wait for something, all that can wait at once does, in an event loop."""
    _check(asked)
    strategy = strategy_of(asked.strategy, loaded)
    if caller is None and strategy.is_of_the_library():
        return drive(_find(loaded, asked, strategy, vectors, None, Blocking()))
    return run_to_end(_find(loaded, asked, strategy, vectors, caller, Yielding()))


async def find_async(
    loaded: LoadedRelease, asked: Asked, vectors: QueryVectors, caller: "LlmCaller | None"
) -> list[Found]:
    """What was found for each request; the event loop goes on meanwhile."""
    _check(asked)
    return await _find(
        loaded, asked, strategy_of(asked.strategy, loaded), vectors, caller, Yielding()
    )


def strategy_of(
    strategy: "Strategy | str | Mapping[str, Any] | None", loaded: LoadedRelease
) -> Strategy:
    """The strategy that is meant: itself, one by name, one written as JSON values, or the release's
    own for None.

    Raises QueryError for an unknown name, or with every problem of a written strategy.
    """
    if strategy is None:
        published: str | Mapping[str, Any] | None = loaded.release.manifest.get("strategy")
        strategy = published or DEFAULT_PLAN
    if isinstance(strategy, str):
        return named_strategy(strategy)
    if not isinstance(strategy, Strategy | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QueryError(
            f"The strategy is {strategy!r:.80}; expected a Strategy, its JSON values, or a name: "
            f"{', '.join(STRATEGIES)}."
        )
    return strategy if isinstance(strategy, Strategy) else Strategy.from_dict(strategy)


def _check(asked: Asked) -> None:
    """Raises QueryError with all that is wrong with what was asked, but for the strategy and the
    filter.
    """
    problems: list[str] = []
    requests: Any = asked.requests
    if isinstance(requests, str) or not all(isinstance(text, str) for text in requests):
        problems.append(f"the requests are {requests!r:.80}, expected a list of texts")
    if type(asked.k) is not int or asked.k < 1:
        problems.append(f"k is {asked.k!r}; expected the number of tools wanted, 1 or more")
    history: Any = asked.history
    if not isinstance(history, list | tuple):
        problems.append(f"the history is {history!r:.80}, expected a list of messages")
    if problems:
        raise QueryError(f"This cannot be asked: {'; '.join(problems)}.")


async def _find(
    loaded: LoadedRelease,
    asked: Asked,
    strategy: Strategy,
    vectors: QueryVectors,
    caller: "LlmCaller | None",
    waits: Waits,
) -> list[Found]:
    names = [asked.index] if asked.index else strategy.indexes or [None]
    indexes = [loaded.index_name(name) for name in names]
    searches = Searches(
        loaded,
        vectors,
        indexes,
        strategy.modes,
        strategy.within,
        loaded.filter(asked.where),
        asked.k,
    )
    history = tuple(_message(one) for one in asked.history)
    works = [
        Work(
            Request(text, asked.k, history),
            searches,
            waits,
            Trace(strategy.name),
            caller,
            asked.explain,
        )
        for text in asked.requests
    ]
    meant = [work for work in works if work.request.text.strip()]  # a blank request has no answer
    answers = await answer(strategy, meant)
    answered = {id(work): one for work, one in zip(meant, answers, strict=True)}
    return [
        await waits.run(lambda work=work: _found(work, answered.get(id(work)))) for work in works
    ]


def _found(work: Work, answered: Answered | None) -> Found:
    loaded, release = work.loaded, work.loaded.release.id
    if answered is None:
        return Found((), work.trace, release=release)
    ids = [one.tool for one in answered.ranking]
    tools = loaded.tools(ids)
    why = _why(work, ids)
    probabilities = work.probabilities
    hits = tuple(
        Hit(
            tools[one.tool],
            loaded.agents[tools[one.tool].agent],
            one.score,
            why[one.tool],
            release,
            probabilities.get(one.tool) if probabilities is not None else None,
        )
        for one in answered.ranking
        if one.tool in tools
    )
    steps = tuple(
        FoundStep(answered.texts[step], tuple(one.tool for one in ranking[: work.request.k]))
        for step, ranking in answered.steps.items()
        if len(answered.steps) > 1
    )
    best = (
        max((hit.probability or 0.0 for hit in hits), default=0.0)
        if probabilities is not None
        else None
    )
    return Found(hits, work.trace, steps, best, release)


def _why(work: Work, ids: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """For each tool: its best rank in each way of searching, and by which query; where no search
    found it, which tool needs it.
    """
    why: dict[str, dict[str, dict[str, Any]]] = {one: {} for one in ids}
    several = len({seen.query for seen in work.seen}) > 1
    for seen in work.seen:
        for way, ranking in seen.rankings.items():
            for rank, row in enumerate(ranking, start=1):
                known = why.get(row.tool)
                if known is None or (way in known and known[way]["rank"] <= rank):
                    continue
                known[way] = {"rank": rank, "score": row.score, "part": row.part}
                if several:
                    known[way]["query"] = seen.query
    added = work.added
    for one in ids:
        if one in added:
            why[one]["dependency"] = dict(added[one])
    return why


def _message(one: Message | Mapping[str, str]) -> Message:
    if isinstance(one, Message):
        return one
    given: Any = one
    role, content = (
        (given.get("role"), given.get("content")) if isinstance(given, Mapping) else (None, None)
    )
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        raise QueryError(
            f"A message of the history is {given!r:.80}; expected "
            '{"role": "user" or "assistant", "content": a text}, as chat APIs take them.'
        )
    return Message(role, content)
