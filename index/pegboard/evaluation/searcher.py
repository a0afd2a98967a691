"""A release, published or staged, that answers golden queries."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.encoders import Encoder
from pegboard.evaluation.golden import AgentNames, GoldenQuery, ToolNames
from pegboard.retrieval.find import FindArguments, find
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.releases import Release, ReleaseStore

if TYPE_CHECKING:
    from pegboard.retrieval.found import FindResult
    from pegboard.retrieval.llm.caller import LlmCaller
    from pegboard.retrieval.strategy import Strategy

    StrategyLike = Strategy | str | Mapping[str, Any] | None

BATCH = 128
"""Number of queries searched at a time, which bounds memory and lets progress advance."""
CACHED_QUERY_VECTORS = 100_000
"""Number of query vectors cached, as several strategies search the same texts; 150 MB at 384
dimensions.
"""


def _query_vectors(encoder: Encoder | None = None) -> QueryVectors:
    return QueryVectors(encoder, None, CACHED_QUERY_VECTORS)


@dataclass(frozen=True)
class Searcher:
    """A release with the encoders and the LLM that strategies may use.

    Attributes:
        loaded: the release.
        vectors: encodes queries; searchers that share it encode each query once.
        caller: asks the LLM; None without an LLM.
    """

    loaded: LoadedRelease
    vectors: QueryVectors = field(default_factory=_query_vectors)
    caller: "LlmCaller | None" = None

    @classmethod
    def open(
        cls,
        uri: str,
        channel: str = "live",
        release: str | None = None,
        *,
        encoder: Encoder | None = None,
        llm: Any = None,
        llm_options: Mapping[str, Any] | None = None,
    ) -> "Searcher":
        """Open a release by channel, or by id; options as in `pegboard.open`.

        Raises BoardNotFound if there is no such board, channel or release.
        """
        from pegboard.retrieval.llm.caller import open_caller

        store = ReleaseStore(uri)
        if release is None:
            release = store.existing_channel(channel).release
        loaded = LoadedRelease(store, store.get(release), IN_MEMORY_ROWS)
        return cls(loaded, _query_vectors(encoder), open_caller(llm, llm_options))

    def close(self) -> None:
        """Close the connections to the LLM, if there are any."""
        if self.caller is not None:
            self.caller.close()

    @property
    def release(self) -> Release:
        """The release that is searched."""
        return self.loaded.release

    @cached_property
    def names(self) -> ToolNames:
        """The tools of the release by the names that golden queries use."""
        return ToolNames(self.loaded.tool_names())

    @cached_property
    def agent_names(self) -> AgentNames:
        """The agents of the release by the names that golden queries use."""
        agents = self.loaded.agents.items()
        names = ((identity, agent.name) for identity, agent in agents)
        return AgentNames(self.loaded.tool_names(), names)

    @property
    def pool(self) -> str:
        """The name of the pool in which queries are answered (`pools.py`); "" without pools."""
        return ""

    def pool_size(self, queries: Sequence[GoldenQuery]) -> float:
        """Return the mean number of tools among which these queries are answered."""
        return float(len(self.names.catalogs))

    def search(
        self,
        queries: Sequence[GoldenQuery],
        k: int,
        *,
        strategy: "StrategyLike" = None,
        index: str | None = None,
        advance: Callable[[int], None] = lambda _: None,
        explain: bool = False,
    ) -> "list[FindResult]":
        """Search for each query, in batches of queries with the same history.

        Args:
            k: the most tools to return for a query.
            explain: whether traces have the rank of every tool after every part.
            advance: called with the number of queries answered since the last call.

        Returns: for each query its hits, best first, in the order of `queries`.
        """
        results: dict[int, FindResult] = {}
        for positions in _batches(queries):
            texts = [queries[position].query for position in positions]
            history = queries[positions[0]].history
            request = FindArguments(texts, k, strategy, index, history=history, explain=explain)
            answers = find(self.loaded, request, self.vectors, self.caller)
            results.update(zip(positions, answers, strict=True))
            advance(len(positions))
        return [results[position] for position in range(len(queries))]


def _batches(queries: Sequence[GoldenQuery]) -> list[list[int]]:
    """Return batches of positions: at most `BATCH` queries with the same history in each."""
    groups: dict[str, list[int]] = {}
    for position, query in enumerate(queries):
        groups.setdefault(json.dumps(query.history, sort_keys=True), []).append(position)
    return [
        positions[start : start + BATCH]
        for positions in groups.values()
        for start in range(0, len(positions), BATCH)
    ]
