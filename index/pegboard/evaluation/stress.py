"""The stress test: golden queries among more and more distractors, random or nearest ones.

"Too Many Tools, Too Much Confusion?" (Kamiński et al., 2026), section 4.4: for each query the
candidates are its right tools and, for each of them, n others. The paper draws n in all and counts
what its search returns; here n is for each right tool, and the measures decide how far to look:
`Recall@5`, or `F1` for all that is returned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import MIN_DEPTH, Evaluation, difference_rows
from pegboard.evaluation.distractors import ALL, Distractors, Noise, noises
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.measures import Measure, measures_of
from pegboard.evaluation.overhead import Overhead
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
class Stress:
    """What every system retrieved under every noise.

    Attributes:
        evaluations: by noise, one evaluation for each system, in the order of the systems; all of
            the same queries.
        candidates: by noise the mean number of tools that were searched.
        near_by: the index whose vectors decide which tools are near.
        left_out: queries none of whose tools the release has.
    """

    evaluations: Mapping[Noise, tuple[Evaluation, ...]]
    candidates: Mapping[Noise, float]
    near_by: str
    left_out: int = 0

    @property
    def first(self) -> Evaluation:
        """The evaluation of the first system under the first noise."""
        return next(iter(self.evaluations.values()))[0]

    @property
    def overheads(self) -> list[Overhead]:
        """What the answers of each system took, under all noises together."""
        by_system = zip(*self.evaluations.values(), strict=True)
        return [
            Overhead.of(
                evaluations[0].strategy,
                evaluations[0].index,
                (result for evaluation in evaluations for result in evaluation.results),
            )
            for evaluations in by_system
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row for each noise, system and measure."""
        return [
            row
            for noise, evaluations in self.evaluations.items()
            for evaluation in evaluations
            for row in evaluation.rows(
                **_noise_labels(noise), candidates=round(self.candidates[noise], 1)
            )
        ]

    def differences(self) -> list[dict[str, Any]]:
        """How far each system is above the first under the same noise; p corrected over noises."""
        against = {"against": self.first.system}
        rows: list[dict[str, Any]] = []
        baseline, *others = zip(*self.evaluations.values(), strict=True)
        for system in others:
            pairs = [
                (ours, theirs, against | _noise_labels(noise))
                for noise, ours, theirs in zip(self.evaluations, system, baseline, strict=True)
            ]
            rows += [
                row for measure in self.first.values for row in difference_rows(pairs, measure)
            ]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "release": self.first.release,
            "queries": len(self.first.results),
            "left_out": self.left_out,
            "unknown": list(self.first.unknown),
            "near_by": self.near_by,
            "rows": self.rows(),
            "differences": self.differences(),
            "overhead": [overhead.to_dict() for overhead in self.overheads],
        }


def stress(
    systems: Sequence[ReleaseSystem],
    queries: Sequence[GoldenQuery],
    *,
    counts: Sequence[int] = COUNTS,
    whole: bool = True,
    measures: Sequence[str | Measure] = STRESS_MEASURES,
    advance: Advance = lambda _: None,
) -> Stress:
    """Evaluate systems of one release among the right tools and distractors, the same for all.

    Args:
        systems: the first is the baseline; the vectors of its index decide which tools are near.
        counts: distractors for each right tool; the larger sets contain the smaller.
        whole: also evaluate among all tools of the release.
        advance: called with the number of queries answered; of each noise and system.

    A query is searched as if the release had its candidates only. Queries none of whose tools the
    release has are left out. Raises ConfigurationError if no query is left, or for an invalid noise
    or measure.
    """
    parsed, levels = measures_of(measures), noises(counts, whole=whole)
    searcher = systems[0].searcher
    needs = [(query, searcher.names.resolve(query.tools)) for query in queries]
    usable = [(query, needed) for query, needed in needs if needed.tools]
    if not usable:
        raise ConfigurationError(
            f"None of the {len(queries)} golden queries needs a tool that release "
            f"{searcher.release.id} has. Check the names: pegboard golden check"
        )
    near_by = systems[0].index_name
    searcher = _in_memory(searcher, [system.index_name for system in systems])
    systems = [replace(system, searcher=searcher) for system in systems]
    depth = max([MIN_DEPTH, *(measure.k or 0 for measure in parsed)])
    distractors = Distractors(searcher.loaded, near_by, max(counts, default=0))
    results: dict[Noise, list[list[QueryResult]]] = {}
    candidates: dict[Noise, float] = {}
    # All tools first: there the queries are encoded in batches, and their vectors are cached.
    if ALL in levels:
        searched = [query for query, _ in usable]
        results[ALL] = [system.search(searched, depth, advance) for system in systems]
        candidates[ALL] = len(searcher.names.catalogs)
    for noise in levels:
        if noise != ALL:
            results[noise], candidates[noise] = _search_among(
                systems, usable, distractors, noise, depth, advance
            )
    return Stress(
        {
            noise: tuple(
                Evaluation.of(system, own, parsed)
                for system, own in zip(systems, results[noise], strict=True)
            )
            for noise in levels
        },
        {noise: candidates[noise] for noise in levels},
        near_by,
        len(needs) - len(usable),
    )


def _search_among(
    systems: Sequence[ReleaseSystem],
    queries: Sequence[tuple[GoldenQuery, Needed]],
    distractors: Distractors,
    noise: Noise,
    depth: int,
    advance: Advance,
) -> tuple[list[list[QueryResult]], float]:
    """Each system's results among the candidates of each query, and their mean number."""
    results: list[list[QueryResult]] = [[] for _ in systems]
    total = 0
    for query, needed in queries:
        right = sorted(frozenset[str]().union(*needed.tools.values()))
        tools = distractors.candidates(noise, query.id, right)
        total += len(tools)
        restricted = systems[0].searcher.restricted(tools)
        for own, system in zip(results, systems, strict=True):
            hits = restricted.search([query], depth, strategy=system.strategy, index=system.index)
            own.append(query_result(query, needed, hits[0]))
            advance(1)
    return results, total / len(queries)


def _in_memory(searcher: Searcher, indexes: Sequence[str]) -> Searcher:
    """The release with its indexes in memory; else every restricted search reads a whole table."""
    if all(isinstance(searcher.loaded.index(name), MemoryIndex) for name in indexes):
        return searcher
    return searcher.restricted(searcher.names.catalogs.keys())


def _noise_labels(noise: Noise) -> dict[str, Any]:
    """The noise as JSON values: distractors for each right tool (null for all tools), and which."""
    return {"noise": None if noise == ALL else noise.count, "distractors": noise.kind}
