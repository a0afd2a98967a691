"""The experiment: a system answers golden queries, and measures are computed of what it retrieved.

`evaluate(system, queries, measures)` is the one loop under `pegboard eval`, the gate, sweeps, the
stress test, the agent evaluation and the papers' benchmarks. A system is what ranks tools for a
query; `ReleaseSystem` is a strategy in an index of a release, and other rankers satisfy `System`.

A caller that keeps results between runs passes a `ResultStore`. `evaluate` calls `load` first and
searches nothing if it returns results; after a search it calls `save`. If the search fails (an
encoder is gone, a model cannot be reached), it calls `load` again with `stale=True`: then results
that an earlier version of the library wrote are used, and only without them the error is raised.
Measures are computed from the results, so another measure costs no search. A store derives the name
of an entry from `system.key`, the queries (`[query.to_dict() for query in queries]`) and the depth;
the gate keeps an entry as a Parquet file in the lake. To keep query vectors between runs, pass a
`QueryVectors` with a remembering encoder to the `Searcher` instead, as sweeps do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.errors import ConfigurationError, PegboardError
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.measures import STANDARD, Measure, measures_of
from pegboard.evaluation.results import Evaluation, QueryResult, RetrievedTool
from pegboard.evaluation.searcher import Searcher
from pegboard.hits import Hit
from pegboard.retrieval.strategy import Strategy

if TYPE_CHECKING:
    from pegboard.evaluation.searcher import StrategyLike

MIN_DEPTH = 10
"""Tools retrieved at least; more where a measure looks further."""
UNBOUNDED_DEPTH = 100
"""Tools retrieved where a measure looks at all that was retrieved."""

Advance = Callable[[int], None]
"""Called with the number of queries answered since the last call."""


class System(Protocol):
    """What ranks tools for golden queries."""

    @property
    def release_id(self) -> str:
        """The id of the release that is searched."""
        ...

    @property
    def strategy_name(self) -> str:
        """What the system is called in rows and tables."""
        ...

    @property
    def index_name(self) -> str:
        """The index that is searched; the first of several."""
        ...

    @property
    def encoder_name(self) -> str:
        """The encoder of that index."""
        ...

    @property
    def key(self) -> tuple[Any, ...]:
        """JSON values that decide what is retrieved for a query, for a store of results."""
        ...

    def search(
        self, queries: Sequence[GoldenQuery], depth: int, advance: Advance
    ) -> list[QueryResult]:
        """Retrieve at most `depth` tools for each query, best first."""
        ...


class ResultStore(Protocol):
    """Keeps what systems retrieved, between runs."""

    def load(
        self, system: System, queries: Sequence[GoldenQuery], depth: int, *, stale: bool = False
    ) -> Sequence[QueryResult] | None:
        """The results of at least that depth, or None.

        Args:
            stale: accept results that another version of the library wrote.
        """
        ...

    def save(
        self,
        system: System,
        queries: Sequence[GoldenQuery],
        depth: int,
        results: Sequence[QueryResult],
    ) -> None:
        """Keep results."""
        ...


@dataclass(frozen=True, slots=True)
class ReleaseSystem:
    """A strategy in an index of a release.

    Attributes:
        searcher: the release; `searcher.restricted(tools)` searches some of its tools only.
        index: None for the indexes that the strategy names, or else the release's default.
        name: what the system is called in rows; the strategy's name if empty.
    """

    searcher: Searcher
    strategy: Strategy
    index: str | None = None
    name: str = ""

    @classmethod
    def resolve(
        cls,
        searcher: Searcher,
        strategy: "StrategyLike" = None,
        index: str | None = None,
        name: str = "",
    ) -> "ReleaseSystem":
        """The system of a strategy's name, JSON values or None for the release's own.

        Raises QueryError for an invalid strategy, BoardNotFound for an unknown index.
        """
        system = cls(searcher, searcher.strategy(strategy), index, name)
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
        """The index that is searched; the first of several."""
        index = self.index or next(iter(self.strategy.indexes or ()), None)
        return self.searcher.loaded.index_name(index)

    @property
    def encoder_name(self) -> str:
        """The encoder of that index."""
        return str(self.searcher.loaded.index_manifest(self.index_name)["encoder"])

    @property
    def key(self) -> tuple[Any, ...]:
        """Digest of the release, index, and strategy as JSON values."""
        return (self.searcher.release.digest, self.index, self.strategy.to_dict())

    def search(
        self, queries: Sequence[GoldenQuery], depth: int, advance: Advance = lambda _: None
    ) -> list[QueryResult]:
        """Retrieve at most `depth` tools for each query, best first."""
        hits = self.searcher.search(
            queries, depth, strategy=self.strategy, index=self.index, advance=advance
        )
        needed = (self.searcher.names.resolve(query.tools) for query in queries)
        return [query_result(*row) for row in zip(queries, needed, hits, strict=True)]


def query_result(query: GoldenQuery, needed: Needed, hits: Sequence[Hit]) -> QueryResult:
    """The result of a query from its hits."""
    retrieved = (RetrievedTool(hit.tool.id, hit.score, hit.probability) for hit in hits)
    return QueryResult(query, needed, tuple(retrieved))


def search_depth(measures: Sequence[Measure]) -> int:
    """How many tools have to be retrieved to compute these measures."""
    return max([MIN_DEPTH, *(measure.k or UNBOUNDED_DEPTH for measure in measures)])


def evaluate(
    system: System,
    queries: Sequence[GoldenQuery],
    measures: Sequence[str | Measure] = STANDARD,
    *,
    depth: int | None = None,
    store: ResultStore | None = None,
    advance: Advance = lambda _: None,
) -> Evaluation:
    """Let a system answer golden queries, and measure what it retrieved.

    Args:
        depth: tools retrieved for a query; what the measures need if None.
        store: keeps results between runs; see the module.
        advance: called with the number of queries answered since the last call.

    A tool that a query names and the release lacks counts as not found. Raises ConfigurationError
    for no queries or an unknown measure.
    """
    parsed = measures_of(measures)
    if not queries:
        raise ConfigurationError(
            "There are no golden queries to evaluate. Add some to the file, or choose others."
        )
    depth = depth or search_depth(parsed)
    if store is None:
        results: Sequence[QueryResult] = system.search(queries, depth, advance)
    else:
        results = _stored_results(system, queries, depth, store, advance)
    return Evaluation.of(system, results, parsed)


def _stored_results(
    system: System,
    queries: Sequence[GoldenQuery],
    depth: int,
    store: ResultStore,
    advance: Advance,
) -> Sequence[QueryResult]:
    stored = store.load(system, queries, depth)
    if stored is None:
        try:
            results = system.search(queries, depth, advance)
        except PegboardError:
            stored = store.load(system, queries, depth, stale=True)
            if stored is None:
                raise
        else:
            store.save(system, queries, depth, results)
            return results
    advance(len(queries))
    return stored
