"""Systems: what ranks tools for golden queries, and what it returned for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.find import strategy_of
from pegboard.retrieval.found import Trace
from pegboard.retrieval.strategy import Strategy

if TYPE_CHECKING:
    from pegboard.evaluation.searcher import StrategyLike

Advance = Callable[[int], None]
"""Called with the number of queries answered since the last call."""
NOT_RETRIEVED = 10**6
"""Rank assigned to a tool that was not retrieved."""


@dataclass(frozen=True, slots=True)
class RetrievedTool:
    """A retrieved tool: its id, its score and, after a hybrid search, its probability to fit."""

    id: str
    score: float
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A golden query, the tools it needs in the release, and the tools retrieved, best first.

    Attributes:
        trace: the cost of the answer; None for a result reused from an earlier run.
    """

    query: GoldenQuery
    needed: Needed
    retrieved: tuple[RetrievedTool, ...]
    trace: Trace | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The tools that the query names, or else the agents."""
        return self.query.tools or self.query.agents

    def ranks(self) -> dict[str, int | None]:
        """The rank of each tool that the query names, from 1; None if it was not retrieved."""
        places = {label: rank for rank, (label, _) in enumerate(self.ranking(), start=1)}
        return {label: places.get(label) for label in (*self.needed.tools, *self.needed.unknown)}

    def ranking(self) -> list[tuple[str, float]]:
        """The retrieved labels (see `Needed`) with probabilities if there are any, else scores."""
        scored = [
            (tool.id, tool.score if tool.probability is None else tool.probability)
            for tool in self.retrieved
        ]
        return self.needed.labelled(scored)

    def catalogs(self) -> set[str]:
        """The catalogs of the needed tools, including ids that the release lacks."""
        ids = {tool for tools in self.needed.tools.values() for tool in tools}
        ids |= {name for name in self.needed.unknown if name.count("/") >= 2}
        return {tool.partition("/")[0] for tool in ids}

    def last_rank(self) -> int:
        """The rank at which the last needed tool was retrieved, or `NOT_RETRIEVED`."""
        ranks = (NOT_RETRIEVED if rank is None else rank for rank in self.ranks().values())
        return max(ranks, default=0)


@dataclass(frozen=True, slots=True)
class ReleaseSystem:
    """What ranks tools for golden queries: a strategy in an index of a release.

    Attributes:
        index: None for the index that the strategy names, or else the release's default.
        name: the system's name in rows; the strategy's name if empty.
        explain: whether traces have the rank of every tool after every part.
    """

    searcher: Searcher
    strategy: Strategy
    index: str | None = None
    name: str = ""
    explain: bool = False

    @classmethod
    def resolve(
        cls,
        searcher: Searcher,
        strategy: "StrategyLike" = None,
        index: str | None = None,
        name: str = "",
    ) -> "ReleaseSystem":
        """Return the system of a strategy: its name, its JSON values, or None for the release's.

        Raises QueryError for an invalid strategy, BoardNotFound for an unknown index.
        """
        system = cls(searcher, strategy_of(strategy, searcher.loaded), index, name)
        _ = system.index_name
        return system

    @property
    def release_id(self) -> str:
        """The id of the release."""
        return self.searcher.release.id

    @property
    def strategy_name(self) -> str:
        """The display name, or else the strategy's name."""
        return self.name or self.strategy.name

    @property
    def index_name(self) -> str:
        """The index that is searched."""
        return self.searcher.loaded.index_name(self.index or self.strategy.index)

    @property
    def encoder_name(self) -> str:
        """The encoder of that index."""
        return str(self.searcher.loaded.index_manifest(self.index_name)["encoder"])

    @property
    def key(self) -> tuple[Any, ...]:
        """JSON values that determine what is retrieved for a query: the key of a result cache."""
        pool = [self.searcher.pool] if self.searcher.pool else []
        return (self.searcher.release.digest, self.index, self.strategy.to_dict(), *pool)

    def search(
        self, queries: Sequence[GoldenQuery], depth: int, advance: Advance = lambda _: None
    ) -> list[QueryResult]:
        """Retrieve at most `depth` tools for each query, best first."""
        answers = self.searcher.search(
            queries,
            depth,
            strategy=self.strategy,
            index=self.index,
            advance=advance,
            explain=self.explain,
        )
        results: list[QueryResult] = []
        for query, hits in zip(queries, answers, strict=True):
            needed = self.searcher.names.resolve(query.tools)
            retrieved = (RetrievedTool(hit.tool.id, hit.score, hit.probability) for hit in hits)
            results.append(QueryResult(query, needed, tuple(retrieved), hits.trace))
        return results
