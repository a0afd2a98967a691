"""The stress test: golden queries among more and more distractors, random or nearest ones.

"Too Many Tools, Too Much Confusion?" (Kamiński et al., 2026), section 4.4: for each query the
candidates are its right tools and, for each of them, n others. The paper draws n in all and counts
what its search returns; here n is for each right tool, and the measures decide how far to look:
`Recall@5`, or `F1` for all that is returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.evaluation.comparison import MIN_DEPTH, Evaluation, comparison
from pegboard.evaluation.distractors import ALL, Distractors, Noise, noises
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import Measure, measures_of
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import Advance, QueryResult, ReleaseSystem, query_result
from pegboard.search.memory import MemoryIndex

COUNTS = (0, 10, 30, 50)
"""Distractors for each right tool, as in the paper."""
STRESS_MEASURES = ("Recall@5", "F1@5", "Recall@10", "F1@10", "F1")
"""`F1` is of all that is returned, at most ten here: its precision is of what was returned, not of
ten.
"""


@dataclass(frozen=True, slots=True)
class StressLevel:
    """What every system retrieved under one noise.

    Attributes:
        candidates: the mean number of tools that were searched.
        evaluations: one for each system, in their order.
    """

    noise: Noise
    candidates: float
    evaluations: tuple[Evaluation, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison of the systems, with the noise: null distractors stand for all tools."""
        count = None if self.noise == ALL else self.noise.count
        noise = {"noise": count, "distractors": self.noise.kind}
        return noise | {"candidates": round(self.candidates, 1)} | comparison(self.evaluations)


def stress(
    systems: Sequence[ReleaseSystem],
    queries: Sequence[GoldenQuery],
    *,
    counts: Sequence[int] = COUNTS,
    whole: bool = True,
    measures: Sequence[str | Measure] = STRESS_MEASURES,
    advance: Advance = lambda _: None,
) -> list[StressLevel]:
    """Evaluate systems of one release among the right tools and distractors, the same for all.

    Args:
        systems: the first is the baseline; the vectors of its index decide which tools are near.
        counts: distractors for each right tool; the larger sets contain the smaller.
        whole: also evaluate among all tools of the release.
        advance: called with the number of queries answered; of each noise and system.

    Returns: a level for each noise, the least first. A query is searched as if the release had its
    candidates only; one of whose tools the release has none counts as not found. Raises
    ConfigurationError for an invalid noise or measure.
    """
    parsed, levels = measures_of(measures), noises(counts, whole=whole)
    distractors = Distractors(
        systems[0].searcher.loaded, systems[0].index_name, max(counts, default=0)
    )
    searcher = _in_memory(systems[0].searcher, [system.index_name for system in systems])
    systems = [replace(system, searcher=searcher) for system in systems]
    depth = max([MIN_DEPTH, *(measure.k or 0 for measure in parsed)])
    found: dict[Noise, tuple[float, list[list[QueryResult]]]] = {}
    # All tools first: there the queries are encoded in batches, and their vectors are cached.
    for noise in sorted(levels, key=lambda level: level != ALL):
        if noise == ALL:
            results = [system.search(queries, depth, advance) for system in systems]
            found[noise] = len(searcher.names.catalogs), results
        else:
            found[noise] = _search_among(systems, queries, distractors, noise, depth, advance)
    return [
        StressLevel(
            noise,
            found[noise][0],
            tuple(
                Evaluation.of(system, own, parsed)
                for system, own in zip(systems, found[noise][1], strict=True)
            ),
        )
        for noise in levels
    ]


def _search_among(
    systems: Sequence[ReleaseSystem],
    queries: Sequence[GoldenQuery],
    distractors: Distractors,
    noise: Noise,
    depth: int,
    advance: Advance,
) -> tuple[float, list[list[QueryResult]]]:
    """The mean number of candidates, and each system's results among those of each query."""
    searcher = systems[0].searcher
    results: list[list[QueryResult]] = [[] for _ in systems]
    total = 0
    for query in queries:
        needed = searcher.names.resolve(query.tools)
        right = sorted(frozenset[str]().union(*needed.tools.values()))
        tools = distractors.candidates(noise, query.id, right)
        total += len(tools)
        restricted = searcher.restricted(tools)
        for own, system in zip(results, systems, strict=True):
            if not tools:
                own.append(QueryResult(query, needed, ()))
            else:
                hits = restricted.search(
                    [query], depth, strategy=system.strategy, index=system.index
                )
                own.append(query_result(query, needed, hits[0]))
            advance(1)
    return total / len(queries), results


def _in_memory(searcher: Searcher, indexes: Sequence[str]) -> Searcher:
    """The release with its indexes in memory; else every restricted search reads a whole table."""
    if all(isinstance(searcher.loaded.index(name), MemoryIndex) for name in indexes):
        return searcher
    return searcher.restricted(searcher.names.catalogs.keys())
