"""How retrieval bears more tools, and more alike: golden queries asked among few and many
distractors, by chance and near ones.

"Too Many Tools, Too Much Confusion?" (Kamiński et al., 2026), section 4.4: for each query the
candidates are its right tools and, for each of them, n others. The paper draws n in all and counts
what its search returns; here n is for each right tool, and the measures say
how far they look: `Recall@5`, or `F1` for all that is returned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.collisions import Collisions, collisions
from pegboard.evaluation.distractors import ALL, NONE, Distractors, Noise, noises
from pegboard.evaluation.evaluate import LEAST_DEPTH, Answer, Evaluation, FoundTool, judge
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.intervals import Difference, holm, interval
from pegboard.evaluation.judged import JudgedRelease
from pegboard.evaluation.measures import Measure, measures_of
from pegboard.search.memory import MemoryIndex

if TYPE_CHECKING:
    from pegboard.retrieval.found import Found
    from pegboard.retrieval.strategy import Strategy

    StrategyLike = Strategy | str | Mapping[str, Any] | None

COUNTS = (0, 10, 30, 50)
"""Distractors for each right tool, as the paper has them."""
LEASTS = (0.9, 0.95)
"""Cosines from which on two tools collide."""
STRESS_MEASURES = ("Recall@5", "F1@5", "Recall@10", "F1@10", "F1")
"""`F1` is of all that is returned, at most ten here: the precision is of what came, not of ten."""


@dataclass(frozen=True, slots=True)
class System:
    """A strategy in an index; None is the release's own, or the strategy's."""

    strategy: "StrategyLike" = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Stress:
    """What every system found under every noise.

    Attributes:
        found: by noise, one evaluation for each system, in the order in which those were given; all
            of the same queries.
        candidates: by noise, among how many tools a query was asked, as a mean.
        collisions: for each cosine the pairs of tools that lie so close, in the index that says
            which tools are near.
        near_by: the name of that index.
        left_out: queries none of whose tools the release has.
    """

    found: Mapping[Noise, tuple[Evaluation, ...]]
    candidates: Mapping[Noise, float]
    collisions: tuple[Collisions, ...]
    near_by: str
    left_out: int = 0

    def rows(self) -> list[dict[str, Any]]:
        """One row for each noise, system and measure."""
        return [
            row
            for noise, evaluations in self.found.items()
            for one in evaluations
            for row in one.rows(**_said(noise), candidates=round(self.candidates[noise], 1))
        ]

    def against_none(self) -> list[dict[str, Any]]:
        """How far each system is below itself without noise; p is corrected for the number of
        noises of each system and measure.
        """
        bases = self.found.get(NONE, ())
        rows: list[dict[str, Any]] = []
        for at, base in enumerate(bases):
            for measure in base.values:
                gaps = {
                    noise: one[at].against(base, measure)
                    for noise, one in self.found.items()
                    if noise != NONE
                }
                rows += _compared(base, measure, gaps)
        return rows

    def against_first(self) -> list[dict[str, Any]]:
        """How far each system is above the first under the same noise; p is corrected for the
        number of noises.
        """
        first, *others = next(iter(self.found.values()))
        rows: list[dict[str, Any]] = []
        for at, one in enumerate(others, start=1):
            for measure in first.values:
                gaps = {
                    noise: each[at].against(each[0], measure) for noise, each in self.found.items()
                }
                rows += [
                    row | {"against": f"{first.strategy} in {first.index}"}
                    for row in _compared(one, measure, gaps)
                ]
        return rows

    def collision_rows(self) -> list[dict[str, Any]]:
        """Recall by whether any tool that a query needs collides with another, for each cosine,
        noise and system.
        """
        rows: list[dict[str, Any]] = []
        for near in self.collisions:
            for noise, evaluations in self.found.items():
                for one in evaluations:
                    colliding = [
                        any(
                            tool in near.colliding
                            for ids in answer.needed.tools.values()
                            for tool in ids
                        )
                        for answer in one.answers
                    ]
                    rows += _grouped(one, noise, near.least, colliding)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        first = next(iter(self.found.values()))[0]
        return {
            "release": first.release,
            "queries": len(first.answers),
            "left_out": self.left_out,
            "unknown": list(first.unknown),
            "near_by": self.near_by,
            "rows": self.rows(),
            "against_none": self.against_none(),
            "against_first": self.against_first(),
            "collisions": [one.to_dict() for one in self.collisions],
            "by_collision": self.collision_rows(),
        }


def stress(
    judged: JudgedRelease,
    queries: Sequence[GoldenQuery],
    systems: Sequence[System] = (System(),),
    *,
    counts: Sequence[int] = COUNTS,
    kinds: Sequence[Literal["random", "nearest"]] = ("random", "nearest"),
    whole: bool = True,
    measures: Sequence[str | Measure] = STRESS_MEASURES,
    leasts: Sequence[float] = LEASTS,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> Stress:
    """Ask golden queries among their right tools and distractors; all systems are asked among the
    same.

    Args:
        systems: the first is the baseline; the vectors of its index say which tools are near.
        counts: distractors for each right tool; the smaller are among the larger.
        whole: ask among all tools of the release, too.
        leasts: cosines from which on two tools collide.
        seed: which distractors are drawn by chance.
        advance: told how many more queries were answered; of each noise and system.

    A query is searched as if the release had its candidates only (`JudgedRelease.restricted`).
    Queries none of whose tools the release has are left out. Raises ConfigurationError if no query
    is left, or for noise or measures that cannot be."""
    wanted, asked = measures_of(measures), noises(counts, kinds, whole=whole)
    meant = [(query, judged.names.meant(query.tools)) for query in queries]
    usable = [(query, needed) for query, needed in meant if needed.tools]
    if not usable:
        raise ConfigurationError(
            f"None of the {len(queries)} golden queries needs a tool that release "
            f"{judged.release.id} has. "
            "`pegboard golden check` says which there are."
        )
    trial = _Trial.of(judged, usable, systems, wanted, advance)
    near_by = trial.indexes[0]
    distractors = Distractors(trial.judged.loaded, near_by, max(counts, default=0), seed)
    # All tools first: there the queries are encoded many at a time, and their vectors are
    # remembered.
    answered = {ALL: trial.among_all()} if ALL in asked else {}
    answered |= {noise: trial.among(distractors, noise) for noise in asked if noise != ALL}
    return Stress(
        {noise: answered[noise][0] for noise in asked},
        {noise: answered[noise][1] for noise in asked},
        tuple(collisions(trial.judged.loaded, near_by, least=least) for least in leasts),
        near_by,
        len(meant) - len(usable),
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """The queries with what they need, and the systems that are asked them; of each system its
    strategy and the index that it names.
    """

    judged: JudgedRelease
    queries: Sequence[tuple[GoldenQuery, Needed]]
    systems: "Sequence[tuple[Strategy, str | None]]"
    indexes: Sequence[str]
    measures: Sequence[Measure]
    advance: Callable[[int], None]

    @classmethod
    def of(
        cls,
        judged: JudgedRelease,
        queries: Sequence[tuple[GoldenQuery, Needed]],
        systems: Sequence[System],
        measures: Sequence[Measure],
        advance: Callable[[int], None],
    ) -> "_Trial":
        resolved = [(judged.strategy(one.strategy), one.index) for one in systems]
        indexes = [
            judged.loaded.index_name(index or next(iter(strategy.indexes or ()), None))
            for strategy, index in resolved
        ]
        return cls(_in_memory(judged, indexes), queries, resolved, indexes, measures, advance)

    def among_all(self) -> tuple[tuple[Evaluation, ...], float]:
        """What is found among all tools of the release, and how many those are."""
        asked = [query for query, _ in self.queries]
        found = [
            self.judged.ask(
                asked, self._depth, strategy=strategy, index=index, advance=self.advance
            )
            for strategy, index in self.systems
        ]
        return self._judged(found), len(self.judged.names.catalogs)

    def among(self, distractors: Distractors, noise: Noise) -> tuple[tuple[Evaluation, ...], float]:
        """What is found among the right tools and their distractors, and how many those are as a
        mean.
        """
        found: list[list[Found]] = [[] for _ in self.systems]
        total = 0
        for query, needed in self.queries:
            candidates = distractors.candidates(
                noise, query.id, sorted(frozenset[str]().union(*needed.tools.values()))
            )
            total += len(candidates)
            few = self.judged.restricted(candidates)
            for one, (strategy, index) in zip(found, self.systems, strict=True):
                one += few.ask([query], self._depth, strategy=strategy, index=index)
                self.advance(1)
        return self._judged(found), total / len(self.queries)

    @property
    def _depth(self) -> int:
        return max([LEAST_DEPTH, *(measure.k or 0 for measure in self.measures)])

    def _judged(self, found: "Sequence[Sequence[Found]]") -> tuple[Evaluation, ...]:
        evaluations: list[Evaluation] = []
        for own, (strategy, _), index in zip(found, self.systems, self.indexes, strict=True):
            answers = [
                Answer(
                    query,
                    needed,
                    tuple(FoundTool(hit.tool.id, hit.score, hit.probability) for hit in hits),
                )
                for (query, needed), hits in zip(self.queries, own, strict=True)
            ]
            named = {
                "strategy": strategy.name,
                "index": index,
                "encoder": self.judged.encoder_of(index),
            }
            evaluations.append(
                judge(answers, self.measures, release=self.judged.release.id, **named)
            )
        return tuple(evaluations)


def _in_memory(judged: JudgedRelease, indexes: Sequence[str]) -> JudgedRelease:
    """The release with its indexes in memory: otherwise every query among a few tools would read
    the whole table.
    """
    if all(isinstance(judged.loaded.index(name), MemoryIndex) for name in indexes):
        return judged
    return judged.restricted(judged.names.catalogs.keys())


def _compared(
    one: Evaluation, measure: Measure, gaps: Mapping[Noise, Difference]
) -> list[dict[str, Any]]:
    corrected = holm({str(noise): gap.p for noise, gap in gaps.items()})
    named = {"strategy": one.strategy, "index": one.index, "measure": str(measure)}
    return [
        named | _said(noise) | gap.to_dict() | {"p_holm": corrected[str(noise)]}
        for noise, gap in gaps.items()
    ]


def _grouped(
    one: Evaluation, noise: Noise, least: float, colliding: Sequence[bool]
) -> list[dict[str, Any]]:
    """Recall of the queries that collide, and of the others; a group without a query has no row."""
    rows: list[dict[str, Any]] = []
    for measure, values in one.values.items():
        for group in (True, False) if measure.kind == "Recall" else ():
            places = [at for at, collides in enumerate(colliding) if collides == group]
            named = {
                "strategy": one.strategy,
                "index": one.index,
                "least": least,
                "colliding": group,
                "measure": str(measure),
            }
            rows += [named | _said(noise) | interval(values[places]).to_dict()] if places else []
    return rows


def _said(noise: Noise) -> dict[str, Any]:
    """The noise as JSON values: how many distractors for each right tool, null for all tools, and
    which.
    """
    return {"noise": None if noise == ALL else noise.count, "distractors": noise.kind}
