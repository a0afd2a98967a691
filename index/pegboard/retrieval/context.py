"""The searches of a strategy, and the context of one request, with which its parts work."""

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


@dataclass(frozen=True, slots=True)
class QueryRankings:
    """The rankings of one query: by `vector` (cosine), `text` (BM25) and, if both were searched,
    `ranker`, with the candidates that it scored.
    """

    query: str
    rankings: Mapping[str, Sequence[ScoredTool]]
    weighed: Measures | None = None


@dataclass(frozen=True, slots=True)
class Searches:
    """How the queries of one strategy are searched in one release.

    Attributes:
        index: the name of one of the release's indexes.
        k: the number of tools that the caller wants.
        mode: how each query is searched.
        alpha: the weight of the cosine, if a hybrid search ranks by it instead of by the ranker.
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
        """Search every text: one encoder call and one batch search.

        Returns:
            One result for each text. Raises as `Board.search` does.
        """
        if not texts:
            return []
        mode, index = self.mode, self.index
        n = max(depth, self.k, hybrid_depth(self.k) if mode == "hybrid" else 0)
        searched = self.loaded.index(index)
        tokens = [self.loaded.query_words(index, text) for text in texts]
        if mode == "text":
            found = searched.texts(tokens, n, self.where)
            return [
                QueryRankings(text, {"text": rows}) for text, rows in zip(texts, found, strict=True)
            ]
        if self.vector is None:
            units = self.vectors.units(self.loaded, index, texts)
        else:
            units = self.vectors.unit(self.loaded, index, self.vector)[None]
        if mode == "vector":
            found = searched.vectors(units, n, self.where)
            return [
                QueryRankings(text, {"vector": rows})
                for text, rows in zip(texts, found, strict=True)
            ]
        ranker, both = self.loaded.ranker(index), searched.both_many(units, tokens, n, self.where)
        return [
            QueryRankings(
                text,
                {"vector": own.vector, "text": own.text, "ranker": ranker.rank(text, own)},
                own,
            )
            for text, own in zip(texts, both, strict=True)
        ]

    def ranking(self, result: QueryRankings) -> Ranking:
        """Return the ranking of what was found for one query, as deep as it was searched."""
        if self.mode != "hybrid":
            return result.rankings[self.mode]
        if self.alpha is None:
            return result.rankings["ranker"]
        return convex_combination(result.rankings["vector"], result.rankings["text"], self.alpha)


@dataclass(slots=True)
class Context:
    """What a part sees of the request that it works on, and of the release that answers.

    Attributes:
        request: as it was last rewritten.
        whole: the trace of all parts.
        caller: the LLM; None if there is none to ask.
        trace: of this part, which writes into `note` and `fallback_reason`.
        explain: whether the trace keeps the rank of every tool after every part.
        results: everything that was searched for the request.
        added: for tools that no search found, why a part added them, as JSON values; it becomes
            `Hit.why["dependency"]`.
        called: the ids of the tools that were just called, the last one last.
        evidence: for each tool how much `called` speaks for it; it becomes `Hit.why["called"]`.
        silent: why the LLM is not called again; empty until it times out.
    """

    request: Request
    searches: Searches
    execution: Execution
    whole: Trace
    caller: "LlmCaller | None" = None
    explain: bool = False
    trace: PartTrace = field(default_factory=lambda: PartTrace("", ""))
    results: list[QueryRankings] = field(default_factory=list[QueryRankings])
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    called: tuple[str, ...] = ()
    evidence: dict[str, float] = field(default_factory=dict[str, float])
    silent: list[str] = field(default_factory=list[str])

    @property
    def loaded(self) -> LoadedRelease:
        """The release: its agents, tools and dependencies."""
        return self.searches.loaded

    @property
    def cosines(self) -> dict[str, float] | None:
        """The best cosine of each tool found so far; None if vectors were not searched."""
        if not any("vector" in result.rankings for result in self.results):
            return None
        best: dict[str, float] = {}
        for result in self.results:
            for row in result.rankings.get("vector", ()):
                best[row.tool] = max(row.score, best.get(row.tool, -1.0))
        return best

    @property
    def probabilities(self) -> dict[str, float] | None:
        """How likely each tool found so far fits; None but in a hybrid search.

        If the whole request was searched, a tool found for a step has the mean of both scores: what
        fits a step alone may not fit the request.
        """
        best: dict[str, float] = {}
        text = self.request.text
        whole = next((one.rankings for one in self.results if one.query == text), None)
        for result in self.results:
            rankings = result.rankings
            if whole is not None and result.query != text:
                rankings = _mean_scores(rankings, whole)
            own = self.loaded.probabilities(self.searches.index, rankings)
            if own is None:
                return None
            for tool, probability in own.items():
                best[tool] = max(probability, best.get(tool, 0.0))
        return best

    @property
    def thresholds(self) -> dict[str, float] | None:
        """The ranker's thresholds by name; None but in a hybrid search."""
        return self.loaded.thresholds(self.searches.index, self.searches.mode)

    async def search(self, queries: Sequence[Query], depth: int) -> list[Ranking]:
        """Return at most `depth` tools for every query: one encoder call, one search for all."""
        texts = [query.text for query in queries]
        self.trace.searches += len(texts)
        results = await self.execution.run(lambda: self.searches.search(texts, depth))
        return [self.found(own)[:depth] for own in results]

    def found(self, result: QueryRankings) -> Ranking:
        """Record what was found for one query, and return its ranking."""
        self.results.append(result)
        return self.searches.ranking(result)

    async def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """Return the tools of those ids without blocking; unknown ids are absent."""
        return await self.execution.run(lambda: self.loaded.tools(ids))

    async def passing(self, ids: Sequence[str]) -> set[str]:
        """Return the known ids that pass the caller's filter, if there is one."""
        where, tools = self.searches.where, await self.tools(ids)
        return {
            identity
            for identity, tool in tools.items()
            if where is None or where.passes(tool, self.loaded.agents[tool.agent].kind)
        }

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str | None]:
        """Return the texts of the LLM's replies, asked concurrently; None for one that was refused,
        late or cut off, or if there is no LLM. Never raises for a failing LLM.

        Tokens, cost, calls and the reason of a failure are written into the trace.
        """
        trace = self.trace
        if self.caller is None or self.silent:
            trace.fallback_reason = self.silent[0] if self.silent else NO_LLM
            return [None] * len(requests)
        completions = await self.caller.ask(requests)
        if requests and all(completion.timed_out for completion in completions):
            self.silent.append(f"the LLM was not asked again: it {completions[0].why}")
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
    part: Mapping[str, Sequence[ScoredTool]], whole: Mapping[str, Sequence[ScoredTool]]
) -> dict[str, Sequence[ScoredTool]]:
    """The means of the scores of two searches; a tool that one did not find has the least there."""
    return {name: _means(ranking, whole.get(name, ())) for name, ranking in part.items()}


def _means(part: Sequence[ScoredTool], whole: Sequence[ScoredTool]) -> list[ScoredTool]:
    known = {row.tool: row.score for row in whole}
    least = min(known.values(), default=0.0)
    means = [
        ScoredTool(row.tool, (row.score + known.get(row.tool, least)) / 2, row.part) for row in part
    ]
    return sorted(means, key=lambda row: (-row.score, row.tool))
