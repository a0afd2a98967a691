"""Evaluation: what a release finds for golden queries by one strategy in one index, query by query,
and what the measures say of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.intervals import Difference, Interval, compare, interval
from pegboard.evaluation.judged import JudgedRelease
from pegboard.evaluation.measures import STANDARD, Measure, measures_of, parse_measure, per_query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.retrieval.strategy import Strategy

LEAST_DEPTH = 10
"""Tools that are asked for at least; more where a measure looks further."""
WHOLE_DEPTH = 100
"""Tools that are asked for where a measure looks at all that was found."""


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool's id, its score and, where the index is calibrated and the strategy asks for it, how
    likely it fits.
    """

    id: str
    score: float
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A golden query, what it needs among the tools of the release, and what was found, best
    first.
    """

    query: GoldenQuery
    needed: Needed
    found: tuple[FoundTool, ...]

    def ranks(self) -> dict[str, int | None]:
        """For each tool that the query names its rank, from 1; None if it was not found."""
        places = {label: rank for rank, (label, _) in enumerate(self.ranking(), start=1)}
        return {label: places.get(label) for label in (*self.needed.tools, *self.needed.unknown)}

    def ranking(self) -> list[tuple[str, float]]:
        """What was found by labels (see `Needed`), with probabilities where there are some, else
        scores.
        """
        scored = [
            (one.id, one.score if one.probability is None else one.probability)
            for one in self.found
        ]
        return self.needed.labelled(scored)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one system, a strategy in an index of a release, found for golden queries.

    Attributes:
        values: each measure's value for each query, of shape (queries,), in the order of `answers`.
    """

    release: str
    strategy: str
    index: str
    encoder: str
    answers: tuple[Answer, ...]
    values: "Mapping[Measure, NDArray[np.float64]]"

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names that queries give and no tool of the release has; they count as not found."""
        return tuple(dict.fromkeys(name for one in self.answers for name in one.needed.unknown))

    def interval(self, measure: str | Measure) -> Interval:
        """The mean of a measure over all queries, with its interval."""
        return interval(self.values[parse_measure(measure)])

    def against(self, other: "Evaluation", measure: str | Measure) -> Difference:
        """How far this system is above another that answered the same queries. Raises
        ConfigurationError if they differ.
        """
        if [one.query.id for one in self.answers] != [one.query.id for one in other.answers]:
            raise ConfigurationError(
                "Two systems can only be compared over the same queries in the same order."
            )
        return compare(self.values[parse_measure(measure)], other.values[parse_measure(measure)])

    def groups(self, by: Literal["kind", "catalog"]) -> dict[str, list[int]]:
        """The places of the queries of each kind, or of each catalog whose tools they need; a query
        may need several.
        """
        groups: dict[str, list[int]] = {}
        for at, one in enumerate(self.answers):
            catalogs = {tool.partition("/")[0] for ids in one.needed.tools.values() for tool in ids}
            for name in sorted(catalogs) if by == "catalog" else (one.query.kind,):
                groups.setdefault(name, []).append(at)
        return dict(sorted(groups.items()))

    def rows(self, **more: Any) -> list[dict[str, Any]]:
        """One row for each measure: strategy, index, encoder, measure, value, low, high, n; and
        what is given beside.
        """
        named = {"strategy": self.strategy, "index": self.index, "encoder": self.encoder}
        return [
            more | named | {"measure": str(one), **interval(values).to_dict()}
            for one, values in self.values.items()
        ]

    def group_rows(self, by: Literal["kind", "catalog"]) -> list[dict[str, Any]]:
        """The same rows for each group of queries, with its name under `kind` or `catalog`."""
        rows: list[dict[str, Any]] = []
        for name, places in self.groups(by).items():
            rows += [
                {
                    by: name,
                    "strategy": self.strategy,
                    "index": self.index,
                    "measure": str(one),
                    **interval(values[places]).to_dict(),
                }
                for one, values in self.values.items()
            ]
        return rows


def evaluate(
    judged: JudgedRelease,
    queries: Sequence[GoldenQuery],
    *,
    strategy: "Strategy | str | Mapping[str, Any] | None" = None,
    index: str | None = None,
    measures: Sequence[str | Measure] = STANDARD,
    name: str | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Ask a release the golden queries by one strategy in one index.

    Args:
        index: the strategy's own, or the release's default, if None.
        name: what the strategy is called in the results; its own name if None.
        advance: told how many more queries were answered.

    Tools that a query names and the release lacks count as not found. Raises ConfigurationError for
    no queries or an unknown measure."""
    wanted = measures_of(measures)
    if not queries:
        raise ConfigurationError(
            "There are no golden queries to ask. Add some to the file, or choose others."
        )
    resolved = judged.strategy(strategy)
    depth = max([LEAST_DEPTH, *(measure.k or WHOLE_DEPTH for measure in wanted)])
    found = judged.ask(queries, depth, strategy=resolved, index=index, advance=advance)
    answers = [
        Answer(
            query,
            judged.names.meant(query.tools),
            tuple(FoundTool(hit.tool.id, hit.score, hit.probability) for hit in one),
        )
        for query, one in zip(queries, found, strict=True)
    ]
    searched = judged.loaded.index_name(index or next(iter(resolved.indexes or ()), None))
    return judge(
        answers,
        wanted,
        release=judged.release.id,
        strategy=name or resolved.name,
        index=searched,
        encoder=judged.encoder_of(searched),
    )


def judge(
    answers: Sequence[Answer],
    measures: Sequence[Measure],
    *,
    release: str,
    strategy: str,
    index: str,
    encoder: str,
) -> Evaluation:
    """The evaluation of answers that are known."""
    values = per_query(
        measures, [one.needed.labels for one in answers], [one.ranking() for one in answers]
    )
    return Evaluation(release, strategy, index, encoder, tuple(answers), values)
