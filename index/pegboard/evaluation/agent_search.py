"""Systems that search for agents, measured as those that search for tools.

This is what Tool-to-Agent Retrieval (Lumer and others, 2025) evaluates. A query needs the agents
that it names, or else the owners of its tools. A tool name that several agents have is satisfied by
any of them, so a request needs a set of owners for each tool; an agent counts for the first set
that contains it.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product, starmap
from typing import Any

from pegboard.errors import QueryError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.systems import Advance, QueryResult, ReleaseSystem, RetrievedTool
from pegboard.retrieval.context import Searches
from pegboard.retrieval.find_agents import (
    ENTITIES,
    decomposed,
    rank_agents,
    search_entities,
)
from pegboard.retrieval.found import PartTrace, Trace
from pegboard.retrieval.requests import Ranking
from pegboard.retrieval.rules.clauses import split_clauses

SEARCHED = {
    "agents": "by their own descriptions",
    "tools": "by their tools",
    "both": "by both in one space",
}
TEXTS = {
    "": "",
    "steps": ", all steps as one request",
    "clauses": ", the request and its clauses",
    "decomposed": ", the request and the steps that an LLM writes",
}
CONCURRENT_QUERIES = 8
"""Largest number of queries whose steps an LLM writes at once."""


@dataclass(frozen=True, slots=True)
class AgentStrategy:
    """How agents are searched.

    Attributes:
        searched: `agents` (their own descriptions), `tools` (the owners of tools) or `both`.
        mode: `text`, `vector` or `hybrid`.
        texts: the request as a whole if empty; `steps`, its known steps at once; `clauses`, the
            request and its clauses; `decomposed`, the request and the steps that an LLM writes.
    """

    searched: str
    mode: str
    texts: str = ""
    index: None = None

    @property
    def name(self) -> str:
        """Its name in rows, such as `both-vector-steps`."""
        mode = "BM25" if self.mode == "text" else self.mode
        return "-".join(part for part in (self.searched, mode, self.texts) if part)

    @property
    def description(self) -> str:
        """What it does, in words."""
        return f"agents: {SEARCHED[self.searched]}{TEXTS[self.texts]}"

    def fits(self, queries: Sequence[GoldenQuery]) -> bool:
        """Whether it differs from the whole request: steps and clauses are of whole questions."""
        return not self.texts or any(query.steps for query in queries)

    @property
    def asks_llm(self) -> bool:
        """Whether an LLM writes the steps of each request."""
        return self.texts == "decomposed"


AGENT_STRATEGIES = (
    *starmap(AgentStrategy, product(SEARCHED, ("text", "vector", "hybrid"))),
    *(
        AgentStrategy("both", mode, texts)
        for texts in ("steps", "clauses")
        for mode in ("vector", "hybrid")
    ),
)
DECOMPOSED = AgentStrategy("both", "hybrid", "decomposed")
"""What `Board.search_agents` does with `decompose=True` and an LLM."""
DEFAULT_AGENT_STRATEGY = "both-hybrid"
"""What `Board.search_agents` does by default."""


def agent_strategy(name: str) -> AgentStrategy:
    """Return a strategy by its name. Raises QueryError with the valid names for any other."""
    strategies = {strategy.name: strategy for strategy in (*AGENT_STRATEGIES, DECOMPOSED)}
    if name not in strategies:
        raise QueryError(
            f"'{name}' is not a way of searching for agents. Expected one of "
            f"{', '.join(strategies)}."
        )
    return strategies[name]


@dataclass(frozen=True, slots=True)
class AgentSystem(ReleaseSystem):
    """A way of searching for agents in an index of a release."""

    strategy: Any  # an AgentStrategy

    @property
    def key(self) -> tuple[Any, ...]:
        """The release's digest, the index and the strategy's name."""
        return (self.searcher.release.digest, self.index, self.strategy.name)

    def search(
        self, queries: Sequence[GoldenQuery], depth: int, advance: Advance = lambda _: None
    ) -> list[QueryResult]:
        """Rank at most `depth` agents for each query."""
        names = self.searcher.agent_names
        texts_and_traces = self._texts_of_all(queries)
        distinct = list(dict.fromkeys(text for texts, _ in texts_and_traces for text in texts))
        rankings = self._rankings(distinct, depth)
        results: list[QueryResult] = []
        for query, (texts, trace) in zip(queries, texts_and_traces, strict=True):
            ranked = rank_agents([rankings[text] for text in texts], depth)
            agents = tuple(RetrievedTool(best.agent, best.score) for best, *_ in ranked)
            trace.parts.append(PartTrace("search", "search", searches=len(texts)))
            results.append(QueryResult(query, names.needed(query), agents, trace))
        advance(len(queries))
        return results

    def _rankings(self, texts: Sequence[str], depth: int) -> dict[str, Ranking]:
        """Return the tools and agents that are found for each text."""
        if not texts:
            return {}
        loaded = self.searcher.loaded
        vectors = self.searcher.vectors
        n = max(ENTITIES, 10 * depth)
        mode = self.strategy.mode
        searched = self.strategy.searched
        rankings = search_entities(loaded, self.index_name, texts, mode, n, None, vectors, searched)
        return dict(zip(texts, rankings, strict=True))

    def _texts_of_all(self, queries: Sequence[GoldenQuery]) -> list[tuple[list[str], Trace]]:
        """Return for each query the texts that are searched, and the trace of what wrote them."""
        if self.strategy.asks_llm and self.searcher.caller is not None:
            with ThreadPoolExecutor(CONCURRENT_QUERIES, "pegboard-agents") as threads:
                return list(threads.map(self._texts, queries))
        return [self._texts(query) for query in queries]

    def _texts(self, query: GoldenQuery) -> tuple[list[str], Trace]:
        trace = Trace(self.strategy_name)
        if self.strategy.texts == "steps":
            return list(query.steps) or [query.query], trace
        steps: Sequence[str] = ()
        if self.strategy.texts == "clauses":
            steps = split_clauses(query.query)
        elif self.strategy.texts == "decomposed":
            loaded = self.searcher.loaded
            searches = Searches(
                loaded, self.searcher.vectors, self.index_name, None, 1, self.strategy.mode
            )
            steps = decomposed(query.query, searches, trace, self.searcher.caller)
        return list(dict.fromkeys((query.query, *steps))), trace
