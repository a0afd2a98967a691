"""Sweep: evaluate each strategy in each index of a release at every k on golden queries, and
recommend a candidate within the limits.

A cheaper candidate is recommended only if it is shown to be no worse than the best by more than a
margin, as the gate compares releases: the lower end of the one-sided 95 % interval of their
difference, by a paired bootstrap over the queries, is not below minus the margin. A difference that
is not significant shows nothing: with few queries or many candidates none is significant.

With pools (`pegboard.evaluation.pools`), every system is also measured in each of them: recall by
tool-M and top-k, as in Lumer et al., "Toolshed", 4.2. The choice is that for the whole release."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_search import AgentSystem
from pegboard.evaluation.comparison import Evaluation, evaluate
from pegboard.evaluation.intervals import ONE_SIDED, Interval, interval, is_no_worse
from pegboard.evaluation.overhead import latency
from pegboard.evaluation.pools import ALL, pool_searchers, size_text
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.formatting import count_text, difference_text, list_text
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from pegboard.tokens import prompt_tokens
from tasks.lake.files import Lake
from tasks.lake.query_vectors import ConfiguredVectors
from tasks.runtime import progress
from tasks.settings.release import MIN_QUERIES
from tasks.settings.sweep import Sweep, SweepSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIMED = 20
"""Largest number of requests of each system that are sent one at a time to measure latency."""
MAX_NAMES = 10
"""Largest number of unknown tools that a problem names."""
USUAL_K = 5
"""The k of the result table, or the measured one nearest to it, if no candidate is recommended."""
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


@dataclass(frozen=True, slots=True)
class Result:
    """A measure of one strategy in one index at one k, and the cost of its tools.

    Attributes:
        mean: the mean over the queries, with its interval.
        tokens: estimated mean prompt tokens of the k tools.
        ms_p50, ms_p95: milliseconds per request, median and 95th percentile; None in pools of
            noise, whose searches open another release for each query.
        values: the measure of each query.
        pool: the pool in which the queries were answered; "" without pools.
        pool_size: the mean number of tools in it.
    """

    index: str
    strategy: str
    k: int
    measure: str
    mean: Interval
    tokens: float
    ms_p50: float | None
    ms_p95: float | None
    values: "NDArray[np.float64]" = field(repr=False, compare=False)
    pool: str = ""
    pool_size: float = 0.0

    @property
    def cost(self) -> tuple[float, float, float]:
        """A sort key: by tokens, then by milliseconds, then highest value first."""
        return self.tokens, self.ms_p50 or 0.0, -self.mean.value

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without `values`."""
        names = ("index", "strategy", "k", "measure", "tokens", "ms_p50", "ms_p95")
        pool = {"pool": self.pool, "pool_size": self.pool_size} if self.pool else {}
        return {name: getattr(self, name) for name in names} | pool | self.mean.to_dict()

    def __str__(self) -> str:
        return (
            f"index {self.index}, strategy {self.strategy}, k = {self.k}, {self.measure} "
            f"{self.mean}, about {self.tokens:.0f} tokens, {_ms_text(self.ms_p50)} ms (95th "
            f"percentile {_ms_text(self.ms_p95)})"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate and the recommended one: results by the first measure.

    Attributes:
        candidates, allowed: number of candidates, and of those within the limits.
        best: the best allowed candidate; None if there is none.
        recommended: the cheapest of the best and those in `near`.
        near: the other candidates that are shown to be within the margin of the best, cheapest
            first, each with the 90 % interval of its difference from the best.
    """

    candidates: int
    allowed: int
    best: Result | None = None
    recommended: Result | None = None
    near: tuple[tuple[Result, Interval], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        return {
            "candidates": self.candidates,
            "allowed": self.allowed,
            "best": self.best and self.best.to_dict(),
            "recommended": self.recommended and self.recommended.to_dict(),
            "near": [{**other.to_dict(), "against": asdict(gap)} for other, gap in self.near],
        }


def open_release(sweep: Sweep) -> Searcher:
    """Return the release to measure, with the encoders of the configuration.

    Raises:
        ConfigurationError: the release cannot be swept; lists every reason.
        BoardNotFound: there is no such release.
    """
    configuration = sweep.configuration
    largest_k = sweep.settings.k[-1]
    store = ReleaseStore(configuration.uri)
    release = store.named(sweep.settings.release or configuration.board.channel)
    vectors = ConfiguredVectors(configuration.indexes, Lake(configuration.uri))
    searcher = Searcher(LoadedRelease(store, release, IN_MEMORY_ROWS), vectors)
    problems: list[str] = []
    what = "agents" if sweep.settings.agents else "tools"
    count = len(searcher.loaded.agents if sweep.settings.agents else searcher.names.catalogs)
    if largest_k > count:
        problems.append(f"k: expected at most the {count} {what} of the release, got {largest_k}")
    unknown_by_query = _unknown_by_query(sweep, searcher)
    if names := sorted({name for unknown in unknown_by_query for name in unknown}):
        affected_queries = sum(map(bool, unknown_by_query))
        problems.append(
            f"golden: {affected_queries} queries need {what} that the release does not have: "
            f"{list_text(names, MAX_NAMES)}; correct or remove them, `pegboard golden check` "
            f"lists them"
        )
    if problems:
        raise ConfigurationError.from_problems(f"The sweep of release {release.id}", problems)
    return searcher


def _unknown_by_query(sweep: Sweep, searcher: Searcher) -> list[tuple[str, ...]]:
    """Return for each query the names of tools, or agents, that the release does not have."""
    if sweep.settings.agents:
        return [searcher.agent_names.needed(query).unknown for query in sweep.queries]
    return [searcher.names.resolve(query.tools).unknown for query in sweep.queries]


def measure(sweep: Sweep, searcher: Searcher) -> list[Result]:
    """Evaluate every strategy in every index of a release, in every pool, at every k, and time some
    requests.

    Raises ConfigurationError for pools that cannot hold what the queries need.
    """
    searchers = pool_searchers(searcher, sweep.queries, sweep.settings.pools)
    indexes = searcher.release.manifest["indexes"]
    systems: list[ReleaseSystem] = [
        ReleaseSystem(pool_searcher, strategy, index)
        for index, strategy, pool_searcher in product(indexes, sweep.strategies, searchers)
    ]
    systems += [
        AgentSystem(searcher, strategy, index)
        for index, strategy in product(indexes, sweep.agent_strategies)
    ]
    progress.start("queries", len(systems) * len(sweep.queries))
    return [result for system in systems for result in _measure_system(sweep, system)]


def _measure_system(sweep: Sweep, system: ReleaseSystem) -> list[Result]:
    settings = sweep.settings
    pool = system.searcher.pool
    name = f"{system.strategy_name} in {system.index_name} {pool}".rstrip()
    evaluation = evaluate(
        system,
        sweep.queries,
        [f"{measure}@{k}" for measure in settings.measures for k in settings.k],
        advance=lambda count: progress.advance("queries", count, name),
    )
    p50, p95 = _latency(system, sweep)
    tokens = _tokens(evaluation, system.searcher, settings.k)
    return [
        Result(
            index=evaluation.index,
            strategy=evaluation.strategy,
            k=measure.k or 0,
            measure=measure.kind,
            mean=interval(values),
            tokens=tokens[measure.k or 0],
            ms_p50=p50,
            ms_p95=p95,
            values=values,
            pool=pool,
            pool_size=evaluation.pool_size,
        )
        for measure, values in evaluation.values.items()
    ]


def _latency(system: ReleaseSystem, sweep: Sweep) -> tuple[float, float] | tuple[None, None]:
    """Return the median and the 95th percentile of milliseconds, unless in a pool of noise."""
    if any(system.searcher.pool == str(noise) for noise in sweep.settings.noise):
        return None, None
    timed = sweep.queries[:: max(1, len(sweep.queries) // TIMED)][:TIMED]
    return latency(system, timed, max(sweep.settings.k))


def _tokens(
    evaluation: Evaluation, searcher: Searcher, cut_offs: Sequence[int]
) -> dict[int, float]:
    """Return the mean prompt tokens of the first k tools, or of all tools of the first k agents,
    by k.
    """
    largest_k = max(cut_offs)
    retrieved = [
        [tool.id for tool in result.retrieved[:largest_k]] for result in evaluation.results
    ]
    sizes = _sizes(searcher, {identity for ids in retrieved for identity in ids})
    return {
        k: sum(sizes[tool] for tools in retrieved for tool in tools[:k]) / len(retrieved)
        for k in cut_offs
    }


def _sizes(searcher: Searcher, ids: Set[str]) -> Mapping[str, float]:
    """Return the prompt tokens of tools, and of agents those of their tools together, by id."""
    owned: dict[str, list[str]] = {}
    for tool in searcher.names.catalogs:
        owned.setdefault(tool.rpartition("/")[0], []).append(tool)
    tools = {tool for identity in ids for tool in owned.get(identity, [identity])}
    sizes = prompt_tokens(searcher.loaded, tools)
    return {
        identity: sum(sizes[tool] for tool in owned.get(identity, [identity])) for identity in ids
    }


def choose(results: Sequence[Result], settings: SweepSettings) -> Choice:
    """Return the best and the recommended candidate by the first measure, in the whole release."""
    candidates = [
        result
        for result in results
        if result.measure == settings.measures[0] and result.pool in ("", str(ALL))
    ]
    allowed = [
        candidate
        for candidate in candidates
        if (settings.max_tokens is None or candidate.tokens <= settings.max_tokens)
        and (settings.max_ms is None or (candidate.ms_p95 or 0.0) <= settings.max_ms)
    ]
    if not allowed:
        return Choice(len(candidates), 0)
    best = min(allowed, key=lambda candidate: (-candidate.mean.value, *candidate.cost))
    others = sorted(allowed, key=lambda candidate: candidate.cost)
    gaps = [
        (other, interval(other.values - best.values, ONE_SIDED))
        for other in others
        if other is not best
    ]
    near = tuple((other, gap) for other, gap in gaps if is_no_worse(gap.low, settings.margin))
    recommended = min([best, *(other for other, _ in near)], key=lambda candidate: candidate.cost)
    return Choice(len(candidates), len(allowed), best, recommended, near)


def sentences(choice: Choice, sweep: Sweep) -> list[str]:
    """Return the choice as sentences."""
    best = choice.best
    recommended = choice.recommended
    margin = sweep.settings.margin
    if best is None or recommended is None:
        return [
            f"None of the {choice.candidates} candidates is within the limits. The rows have the "
            f"cost of each; raise --max-tokens or --max-ms."
        ]
    lines = [f"Best of {choice.allowed} candidates: {best}."]
    if recommended is best:
        lines.append(
            f"Recommended: the same. No cheaper candidate is shown to be within {margin:g} of it."
        )
    else:
        gap = choice.near[0][1]  # The recommended candidate is the cheapest.
        lines.append(
            f"Recommended: {recommended}: the cheapest of {len(choice.near)} that are shown to be "
            f"no worse than the best by more than {margin:g} ({difference_text(asdict(gap))}, 95 % "
            f"confidence, one-sided)."
        )
    if sweep.settings.agents:
        lines.append(
            "Callers pass index, mode, k and, for clauses, decompose to Board.search_agents."
        )
    else:
        lines.append("Set them as default_index and [find] strategy; callers pass k.")
    if (queries := len(sweep.queries)) < MIN_QUERIES:
        count = count_text(queries, "golden query", "golden queries")
        lines.append(f"{count} say little. Add golden queries.")
    of_what = "of all tools of the agents" if sweep.settings.agents else "of the tools"
    return [*lines, f"Prompt tokens are estimated by the length {of_what} as JSON."]


def result_table(results: Sequence[Result], choice: Choice, settings: SweepSettings) -> Table:
    """Return the first measure of each index and strategy, in each pool, with tokens and latency,
    at the recommended k, or else at the k nearest to `USUAL_K`.
    """
    measure = settings.measures[0]
    if choice.recommended:
        k = choice.recommended.k
    else:
        k = min(settings.k, key=lambda cut_off: (abs(cut_off - USUAL_K), cut_off))
    lines = [
        [
            result.index,
            result.strategy,
            *([result.pool, size_text(result.pool_size)] if result.pool else []),
            str(result.mean),
            f"{result.tokens:.0f}",
            _ms_text(result.ms_p50),
        ]
        for result in results
        if (result.measure, result.k) == (measure, k)
    ]
    pool_columns = ["pool", "tools"] if results[0].pool else []
    return ["index", "strategy", *pool_columns, f"{measure}@{k}", "tokens", "ms"], lines


def _ms_text(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.0f}"
