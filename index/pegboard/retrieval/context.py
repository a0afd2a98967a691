"""The context with which the parts of a strategy work: the searches, the log of one request, and a
part's view of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.llm import ChatRequest
from pegboard.ranker.features import Measures
from pegboard.ranking import Mode, ScoredTool, convex_combination, hybrid_depth
from pegboard.records import Tool
from pegboard.retrieval.execution import Execution
from pegboard.retrieval.found import NO_LLM, PartTrace, Trace
from pegboard.retrieval.requests import Query, Ranking, Request
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.retrieval.llm.caller import LlmCaller


NOT_RECORDED_BEFORE = "not asked: an earlier question has no recorded reply"


@dataclass(frozen=True, slots=True)
class QueryRankings:
    """The rankings of one query: by `vector` (cosine), `text` (BM25) and, if both were searched,
    `ranker`.

    Attributes:
        measures: the candidates that the ranker scored; None unless the search is hybrid.
    """

    query: str
    rankings: Mapping[str, Sequence[ScoredTool]]
    measures: Measures | None = None


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches of one strategy in one release.

    Attributes:
        index: the name of one of the release's indexes.
        k: the number of tools that the caller wants.
        mode: how each query is searched.
        alpha: the weight of the cosine in a hybrid search by convex combination; None for the
            ranker.
        vector: the vector of the only query, if the caller encoded it.
    """

    loaded: LoadedRelease
    vectors: QueryVectors
    index: str
    where: Filter | None
    k: int
    mode: Mode
    alpha: float | None = None
    vector: "Sequence[float] | NDArray[np.floating] | None" = None

    def can_search(self, text: str) -> bool:
        """Whether there is something to search for: words, or a vector."""
        return bool(text.strip()) or self.vector is not None

    def search(self, texts: Sequence[str], depth: int) -> list[QueryRankings]:
        """Search for every text with one encoder call and one batch search.

        Returns:
            One result for each text. Raises as `Board.search` does.
        """
        if not texts:
            return []
        n = max(depth, self.k)
        if self.mode == "hybrid":
            n = max(n, hybrid_depth(self.k))
        index = self.loaded.index(self.index)
        tokens = [self.loaded.query_words(self.index, text) for text in texts]
        if self.mode == "text":
            rankings = index.texts(tokens, n, self.where)
            return [
                QueryRankings(text, {"text": ranking})
                for text, ranking in zip(texts, rankings, strict=True)
            ]
        if self.vector is None:
            units = self.vectors.units(self.loaded, self.index, texts)
        else:
            units = self.vectors.unit(self.loaded, self.index, self.vector)[None]
        if self.mode == "vector":
            rankings = index.vectors(units, n, self.where)
            return [
                QueryRankings(text, {"vector": ranking})
                for text, ranking in zip(texts, rankings, strict=True)
            ]
        ranker = self.loaded.ranker(self.index)
        return [
            QueryRankings(
                query=text,
                rankings={
                    "vector": measures.vector,
                    "text": measures.text,
                    "ranker": ranker.rank(text, measures),
                },
                measures=measures,
            )
            for text, measures in zip(
                texts, index.both_many(units, tokens, n, self.where), strict=True
            )
        ]

    def ranking(self, result: QueryRankings) -> Ranking:
        """Return the ranking of one query, to the depth at which it was searched."""
        if self.mode != "hybrid":
            return result.rankings[self.mode]
        if self.alpha is None:
            return result.rankings["ranker"]
        return convex_combination(result.rankings["vector"], result.rankings["text"], self.alpha)


@dataclass(slots=True)
class RequestLog:
    """What the parts record while they answer one request. All of them share it.

    Attributes:
        request: the request as last rewritten.
        original: the text of the request as the caller wrote it.
        trace: the traces of all parts.
        results: the rankings of every query searched so far.
        added: for tools that no search found, why a part added them, as JSON values; becomes
            `Hit.why["dependency"]`.
        evidence: the evidence of the called tools for a tool; becomes `Hit.why["called"]`.
        llm_stopped: why the LLM is not asked again; "" while it is.
        unrecorded_part: the trace of the part that lacks a recorded reply. Later parts would ask
            about results that depend on it.
        verdicts: whether any tool fits, by each look of an LLM; None for one that failed.
    """

    request: Request
    trace: Trace
    results: list[QueryRankings] = field(default_factory=list[QueryRankings])
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    evidence: dict[str, float] = field(default_factory=dict[str, float])
    llm_stopped: str = ""
    unrecorded_part: tuple[str, str] | None = None
    verdicts: list[bool | None] = field(default_factory=list[bool | None])
    original: str = field(init=False)

    def __post_init__(self) -> None:
        self.original = self.request.text

    @property
    def verdict(self) -> bool | None:
        """Whether any tool fits the request, as an LLM judged; None if none judged all of it."""
        if any(self.verdicts):
            return True
        return None if None in self.verdicts or not self.verdicts else False


@dataclass(frozen=True, slots=True)
class Context:
    """A part's view of the request that it works on and of the release that answers.

    Attributes:
        log: what the parts record of the request; the only mutable part.
        caller: the LLM; None without one.
        explain: whether the trace records the rank of every tool after every part.
        called: the ids of the tools that were just called, the most recent last.
        trace: the trace of this part, which sets its `note` and `fallback_reason`.
    """

    searches: Searches
    execution: Execution
    log: RequestLog
    caller: "LlmCaller | None" = None
    explain: bool = False
    called: tuple[str, ...] = ()
    trace: PartTrace = field(default_factory=lambda: PartTrace("", ""))

    @property
    def request(self) -> Request:
        """The request as last rewritten."""
        return self.log.request

    @property
    def loaded(self) -> LoadedRelease:
        """The release: its agents, tools and dependencies."""
        return self.searches.loaded

    @property
    def cosines(self) -> dict[str, float] | None:
        """The best cosine of each tool found so far; None if vectors were not searched."""
        if not any("vector" in result.rankings for result in self.log.results):
            return None
        best: dict[str, float] = {}
        for result in self.log.results:
            for row in result.rankings.get("vector", ()):
                best[row.tool] = max(row.score, best.get(row.tool, -1.0))
        return best

    @property
    def probabilities(self) -> dict[str, float] | None:
        """The probability that each tool found so far fits; None unless the search is hybrid.

        If the whole request was searched, a tool found for a step is judged by the mean of both
        scores: a tool that fits a step may not fit the request.
        """
        best: dict[str, float] = {}
        text = self.request.text
        results = self.log.results
        request_rankings = next(
            (result.rankings for result in results if result.query == text), None
        )
        for result in results:
            rankings = result.rankings
            if request_rankings is not None and result.query != text:
                rankings = _mean_scores(rankings, request_rankings)
            probabilities = self.loaded.probabilities(self.searches.index, rankings)
            if probabilities is None:
                return None
            for tool, probability in probabilities.items():
                best[tool] = max(probability, best.get(tool, 0.0))
        return best

    @property
    def thresholds(self) -> dict[str, float] | None:
        """The ranker's thresholds by name; None unless the search is hybrid."""
        return self.loaded.thresholds(self.searches.index, self.searches.mode)

    async def search(self, queries: Sequence[Query], depth: int) -> list[Ranking]:
        """Return at most `depth` tools for every query, by one encoder call and one search."""
        texts = [query.text for query in queries]
        self.trace.searches += len(texts)
        results = await self.execution.run(lambda: self.searches.search(texts, depth))
        return [self.record(result)[:depth] for result in results]

    def record(self, result: QueryRankings) -> Ranking:
        """Record the result of one query in the log, and return its ranking."""
        self.log.results.append(result)
        return self.searches.ranking(result)

    async def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """Return the tools of those ids without blocking; unknown ids are absent."""
        return await self.execution.run(lambda: self.loaded.tools(ids))

    async def passing(self, ids: Sequence[str]) -> set[str]:
        """Return the ids that the release has and that pass the caller's filter, if any."""
        where = self.searches.where
        tools = await self.tools(ids)
        return {
            identity
            for identity, tool in tools.items()
            if where is None or where.passes(tool, self.loaded.agents[tool.agent].kind)
        }

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str | None]:
        """Ask the LLM concurrently and return the texts of its replies; None for a reply that was
        refused, late or cut off, or without an LLM. Never raises for a failing LLM.

        Records tokens, cost, calls and the reason of a failure in the trace.
        """
        trace = self.trace
        if self.caller is None or self.log.llm_stopped:
            trace.fallback_reason = self.log.llm_stopped or NO_LLM
            return [None] * len(requests)
        this_part = (trace.stage, trace.part)
        if self.log.unrecorded_part not in (None, this_part):
            trace.fallback_reason = NOT_RECORDED_BEFORE
            return [None] * len(requests)
        completions = await self.caller.ask(requests)
        if any(completion.unrecorded for completion in completions):
            self.log.unrecorded_part = this_part
        if requests and all(completion.timed_out for completion in completions):
            stopped = f"the LLM was not asked again: it {completions[0].why}"
            self.log.llm_stopped = self.log.llm_stopped or stopped
        for completion in completions:
            trace.llm_calls += 1
            trace.prompt_tokens += completion.prompt_tokens
            trace.completion_tokens += completion.completion_tokens
            if completion.cost_usd is not None:
                trace.cost_usd = (trace.cost_usd or 0.0) + completion.cost_usd
            if completion.text is None:
                trace.fallback_reason = completion.why
        return [completion.text for completion in completions]


def _mean_scores(
    step: Mapping[str, Sequence[ScoredTool]], request: Mapping[str, Sequence[ScoredTool]]
) -> dict[str, Sequence[ScoredTool]]:
    """Return a step's rankings with the mean of each score and the request's. A tool that the
    request did not find has the request's lowest score.
    """
    return {name: _means(ranking, request.get(name, ())) for name, ranking in step.items()}


def _means(step: Sequence[ScoredTool], request: Sequence[ScoredTool]) -> list[ScoredTool]:
    request_scores = {row.tool: row.score for row in request}
    lowest = min(request_scores.values(), default=0.0)
    means = [
        ScoredTool(row.tool, (row.score + request_scores.get(row.tool, lowest)) / 2, row.part)
        for row in step
    ]
    return sorted(means, key=lambda row: (-row.score, row.tool))
