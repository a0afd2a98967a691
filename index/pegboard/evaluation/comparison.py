"""The experiment: a system answers golden queries, and its rankings are measured.

`pegboard eval`, the gate, sweeps, the agent evaluation and the papers' benchmarks all use the one
loop `evaluate(system, queries, measures)`. Evaluations of the same queries are compared query by
query.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import Difference, Interval, compare, holm, interval
from pegboard.evaluation.measures import (
    STANDARD,
    Measure,
    measures_of,
    parse_measure,
    per_query,
)
from pegboard.evaluation.overhead import Overhead
from pegboard.evaluation.systems import Advance, QueryResult, ReleaseSystem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GroupBy = Literal["kind", "catalog"]
MIN_DEPTH = 10
"""Minimum number of tools retrieved for a query; measures with a larger cutoff need more."""
UNBOUNDED_DEPTH = 100
"""Number of tools retrieved for measures without a cutoff."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one system retrieved for golden queries, and the measures of it.

    Attributes:
        release: the id of the release.
        values: each measure's value for each query, of shape (queries,), in the order of `results`.
        pool: the pool in which the queries were answered (`pools.py`); "" without pools.
        pool_size: the mean number of tools in it.
    """

    release: str
    strategy: str
    index: str
    encoder: str
    results: tuple[QueryResult, ...]
    values: "Mapping[Measure, NDArray[np.float64]]"
    pool: str = ""
    pool_size: float = 0.0

    @classmethod
    def of(
        cls, system: ReleaseSystem, results: Sequence[QueryResult], measures: Sequence[Measure]
    ) -> "Evaluation":
        """Measure what a system retrieved."""
        needed = [result.needed.labels for result in results]
        values = per_query(measures, needed, [result.ranking() for result in results])
        return cls(
            release=system.release_id,
            strategy=system.strategy_name,
            index=system.index_name,
            encoder=system.encoder_name,
            results=tuple(results),
            values=values,
            pool=system.searcher.pool,
            pool_size=system.searcher.pool_size([result.query for result in results]),
        )

    @property
    def system(self) -> str:
        """The system's name in tables: `STRATEGY in INDEX`, and its share of fallbacks."""
        return system_text(self.strategy, self.index, self.fallbacks)

    @property
    def pool_labels(self) -> dict[str, Any]:
        """`pool` and `pool_size`, as labels of rows; none without pools."""
        return {"pool": self.pool, "pool_size": self.pool_size} if self.pool else {}

    @property
    def fallbacks(self) -> float:
        """The share of the queries in which a part worked without the LLM."""
        return self.overhead.share

    @property
    def overhead(self) -> Overhead:
        """The cost of the answers."""
        return Overhead.of(self.strategy, self.index, self.results)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Tool names in queries that the release lacks; they count as not found."""
        names = (name for result in self.results for name in result.needed.unknown)
        return tuple(dict.fromkeys(names))

    def interval(self, measure: str | Measure) -> Interval:
        """The mean of a measure over all queries, with its interval."""
        return interval(self.values[parse_measure(measure)])

    def difference(self, baseline: "Evaluation", measure: str | Measure) -> Difference:
        """Return the paired difference to a baseline that answered the same queries.

        Raises ConfigurationError if the queries differ.
        """
        ours, theirs = (
            [result.query.id for result in evaluation.results] for evaluation in (self, baseline)
        )
        if ours != theirs:
            raise ConfigurationError(
                "Two systems can only be compared over the same queries in the same order; got "
                f"{len(ours)} and {len(theirs)} queries that differ."
            )
        measure = parse_measure(measure)
        return compare(self.values[measure], baseline.values[measure])

    def subset(self, places: Sequence[int]) -> "Evaluation":
        """The evaluation of some of the queries, by their places in `results`."""
        chosen = list(places)
        return replace(
            self,
            results=tuple(self.results[place] for place in chosen),
            values={measure: values[chosen] for measure, values in self.values.items()},
        )

    def groups(self, by: GroupBy, baseline: "Evaluation | None" = None) -> dict[str, list[int]]:
        """The places of the queries of each kind, or of each catalog with a tool that they need.

        Args:
            baseline: another release's evaluation of the same queries. A tool that only it has
                counts for its catalog too: a catalog that lost its tools does not look better.
        """
        groups: dict[str, list[int]] = {}
        for place, result in enumerate(self.results):
            names = {result.query.kind}
            if by == "catalog":
                other = baseline.results[place].catalogs() if baseline else set[str]()
                names = result.catalogs() | other
            for name in sorted(names):
                groups.setdefault(name, []).append(place)
        return dict(sorted(groups.items()))

    def rows(self, **labels: Any) -> list[dict[str, Any]]:
        """One row for each measure.

        Returns: rows {labels, strategy, index, encoder, measure, value, low, high, n}; with pools
            also {pool, pool_size}; and `fallbacks`, their share of the queries, if there were any.
        """
        system = {"strategy": self.strategy, "index": self.index, "encoder": self.encoder}
        system |= self.pool_labels
        if fallbacks := self.fallbacks:
            labels["fallbacks"] = fallbacks
        return [
            labels | system | {"measure": str(measure), **interval(values).to_dict()}
            for measure, values in self.values.items()
        ]

    def group_rows(self, by: GroupBy, baseline: "Evaluation | None" = None) -> list[dict[str, Any]]:
        """The same rows for each group of queries, with its name under `kind` or `catalog`."""
        groups = self.groups(by, baseline)
        return [
            row for name, places in groups.items() for row in self.subset(places).rows(**{by: name})
        ]

    def worst(self, count: int, measure: Measure | None = None) -> list[dict[str, Any]]:
        """The queries with the lowest value of a measure, or of the mean of all; ties by last rank.

        Returns: for each query its text, id, needed names, their ranks, the first retrieved tools
        and the value; worst first.
        """
        import numpy as np

        columns = [self.values[measure]] if measure else list(self.values.values())
        values: list[float] = np.mean(columns, axis=0).tolist()
        order = sorted(
            range(len(values)),
            key=lambda place: (values[place], -self.results[place].last_rank(), place),
        )
        shown = (measure.k if measure else None) or 5
        return [
            {
                "query": self.results[place].query.query,
                "id": self.results[place].query.id,
                "needed": list(self.results[place].named),
                "ranks": self.results[place].ranks(),
                "found": [tool.id for tool in self.results[place].retrieved[:shown]],
                "value": values[place],
            }
            for place in order[:count]
        ]


def search_depth(measures: Sequence[Measure]) -> int:
    """Return the number of tools to retrieve for a query to compute these measures."""
    return max([MIN_DEPTH, *(measure.k or UNBOUNDED_DEPTH for measure in measures)])


def evaluate(
    system: ReleaseSystem,
    queries: Sequence[GoldenQuery],
    measures: Sequence[str | Measure] = STANDARD,
    advance: Advance = lambda _: None,
) -> Evaluation:
    """Let a system answer golden queries, and measure what it retrieved.

    Args:
        advance: called with the number of queries answered since the last call.

    A tool that a query names and the release lacks counts as not found. Raises ConfigurationError
    for no queries or an unknown measure.
    """
    parsed = measures_of(measures)
    if not queries:
        raise ConfigurationError(
            "There are no golden queries to evaluate. Add some to the file, or choose others."
        )
    results = system.search(queries, search_depth(parsed), advance)
    return Evaluation.of(system, results, parsed)


def comparison(
    evaluations: Sequence[Evaluation], by: Sequence[GroupBy] = (), worst: int = 0
) -> dict[str, Any]:
    """Return evaluations of the same queries side by side, as JSON values; the first is the
    baseline, of each pool the first in it.

    Args:
        by: the groupings for additional rows.
        worst: the number of worst queries to list for each system.
    """
    last = evaluations[-1]
    return {
        "release": last.release,
        "queries": len(last.results),
        "rows": [
            row for evaluation in evaluations for row in evaluation.rows(release=evaluation.release)
        ],
        "differences": differences(evaluations),
        "overhead": [
            evaluation.pool_labels | evaluation.overhead.to_dict() for evaluation in evaluations
        ],
        "groups": {
            name: [row for evaluation in evaluations for row in evaluation.group_rows(name)]
            for name in by
        },
        "worst": [
            {
                "strategy": evaluation.strategy,
                "index": evaluation.index,
                **evaluation.pool_labels,
                "queries": evaluation.worst(worst),
            }
            for evaluation in evaluations
            if worst
        ],
        "unknown": list(last.unknown),
    }


def differences(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """Return each system's difference to the first, for every measure; see `difference_rows`.

    With pools, systems are compared with the first in the same pool, and each system with itself in
    the first pool.
    """
    pairs = [*_systems_compared(evaluations), *_pools_compared(evaluations)]
    return [row for measure in evaluations[0].values for row in difference_rows(pairs, measure)]


Pair = tuple[Evaluation, Evaluation, Mapping[str, Any]]
"""A system, its baseline, and labels of the row."""


def _systems_compared(evaluations: Sequence[Evaluation]) -> Iterator[Pair]:
    baselines: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        baseline = baselines.setdefault(evaluation.pool, evaluation)
        if baseline is not evaluation:
            against = {"against": system_name(baseline, evaluations)}
            yield evaluation, baseline, evaluation.pool_labels | against


def _pools_compared(evaluations: Sequence[Evaluation]) -> Iterator[Pair]:
    baselines: dict[tuple[str, str], Evaluation] = {}
    for evaluation in evaluations:
        baseline = baselines.setdefault((evaluation.strategy, evaluation.index), evaluation)
        if evaluation.pool != baseline.pool:
            yield evaluation, baseline, evaluation.pool_labels | {"against": baseline.pool}


def difference_rows(pairs: Iterable[Pair], measure: Measure) -> list[dict[str, Any]]:
    """One row for each pair of a system and its baseline, tested together.

    Args:
        pairs: system, baseline, and labels of the row.

    Returns: rows {strategy, index, labels, measure, value, low, high, p, n, p_holm}; `p_holm` is
    corrected for the number of pairs (Holm 1979).
    """
    pairs = list(pairs)
    gaps = [system.difference(baseline, measure) for system, baseline, _ in pairs]
    corrected = holm({str(place): gap.p for place, gap in enumerate(gaps)})
    return [
        {"strategy": system.strategy, "index": system.index, **labels, "measure": str(measure)}
        | gap.to_dict()
        | {"p_holm": corrected[str(place)]}
        for place, ((system, _, labels), gap) in enumerate(zip(pairs, gaps, strict=True))
    ]


def system_text(strategy: str, index: str, fallbacks: float = 0.0) -> str:
    """`STRATEGY in INDEX`, and the share of queries that fallbacks answered, if any."""
    return f"{strategy} in {index}" + (f", {fallbacks:.0%} by fallbacks" if fallbacks else "")


def system_name(evaluation: Evaluation, among: Sequence[Evaluation]) -> str:
    """The system's name beside others: with its release where several releases are evaluated."""
    several = len({other.release for other in among}) > 1
    return f"{evaluation.system} of {evaluation.release}" if several else evaluation.system
