"""The experiment: a system answers golden queries, and measures are computed of what it retrieved.

`evaluate(system, queries, measures)` is the one loop under `pegboard eval`, the gate, sweeps, the
stress test, the agent evaluation and the papers' benchmarks.

A caller that keeps results between runs passes a `ResultStore`. `evaluate` calls `load` first and
searches nothing if it returns results; after a search it calls `save`. If the search fails (an
encoder is gone, a model cannot be reached), it calls `load` again with `stale=True`: then results
that an earlier version of the library wrote are used, and only without them the error is raised.
Measures are computed from the results, so another measure costs no search. A store derives the name
of an entry from `system.key`, the queries (`[query.to_dict() for query in queries]`) and the depth;
the gate keeps an entry as a Parquet file in the lake. To keep query vectors between runs, pass a
`QueryVectors` with a remembering encoder to the `Searcher` instead, as sweeps do.
"""

from collections.abc import Sequence
from typing import Protocol

from pegboard.errors import ConfigurationError, PegboardError
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import STANDARD, Measure, measures_of
from pegboard.evaluation.systems import Advance, QueryResult, System

MIN_DEPTH = 10
"""Minimum tools retrieved; more if a measure needs them."""
UNBOUNDED_DEPTH = 100
"""Tools retrieved for measures without a cutoff."""


class ResultStore(Protocol):
    """A store of retrieval results between runs."""

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
