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
from pegboard.evaluation.overhead import Overhead, latency
from pegboard.evaluation.pools import ALL, pool_searchers, size_text
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.formatting import count_text, difference_text, list_text
from pegboard.retrieval.llm.caller import open_caller
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
CURVE = (1, 2, 3, 5, 10, 20, 50, 100, 128)
"""The k of a curve, as far as they are measured."""
STEPS = 3
"""Steps of a request, by which the calls of a strategy that takes requests apart are estimated."""
CALL_TOKENS = (1_400, 100)
"""Tokens of a prompt and of a reply by which money is estimated: those of a look at fifteen tools,
the longest of the prompts that docs/results/llm.md measures."""
Table = tuple[Sequence[str], list[list[str]]]
"""A header and rows."""


@dataclass(frozen=True, slots=True)
class Result:
    """A measure of one strategy in one index at one k, and the cost of its tools.

    Attributes:
        mean: the mean over the queries, with its interval.
        tokens: estimated mean prompt tokens of the k tools.
        ms_p50, ms_p95: milliseconds per request, median and 95th percentile; None in pools of
            noise, whose searches open another release for each query, and where an LLM is asked:
            its time is the provider's, and every timed request would be paid twice.
        values: the measure of each query.
        overhead: what the answers took of an LLM.
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
    overhead: Overhead | None = field(default=None, repr=False, compare=False)

    @property
    def asked(self) -> bool:
        """Whether an LLM was asked, or should have been."""
        return self.overhead is not None and bool(self.overhead.llm_calls or self.overhead.share)

    @property
    def llm_calls(self) -> float:
        """The mean number of LLM calls for a request."""
        overhead = self.overhead
        return overhead.llm_calls / overhead.queries if overhead and overhead.queries else 0.0

    @property
    def llm_tokens(self) -> float:
        """The mean number of tokens that the LLM reads and writes for a request."""
        overhead = self.overhead
        return overhead.tokens / overhead.queries if overhead and overhead.queries else 0.0

    @property
    def all_tokens(self) -> float:
        """Tokens of the k tools in a prompt, and those of the LLM."""
        return self.tokens + self.llm_tokens

    @property
    def cost(self) -> tuple[float, float, float]:
        """A sort key: by tokens, then by milliseconds, then highest value first."""
        return self.all_tokens, self.ms_p50 or 0.0, -self.mean.value

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without `values`."""
        names = ["index", "strategy", "k", "measure", "tokens", "ms_p50", "ms_p95"]
        if self.asked:
            names += ["llm_calls", "llm_tokens"]
        pool = {"pool": self.pool, "pool_size": self.pool_size} if self.pool else {}
        return {name: getattr(self, name) for name in names} | pool | self.mean.to_dict()

    def __str__(self) -> str:
        cost = (
            f"{self.llm_calls:.1f} LLM calls with {self.llm_tokens:.0f} tokens"
            if self.asked
            else f"{_ms_text(self.ms_p50)} ms (95th percentile {_ms_text(self.ms_p95)})"
        )
        return (
            f"index {self.index}, strategy {self.strategy}, k = {self.k}, {self.measure} "
            f"{self.mean}, about {self.tokens:.0f} tokens, {cost}"
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


def open_release(
    sweep: Sweep, llm: Any = None, llm_options: Mapping[str, Any] | None = None
) -> Searcher:
    """Return the release to measure, with the encoders of the configuration.

    Args:
        llm, llm_options: as in `pegboard.open`.

    Raises:
        ConfigurationError: the release cannot be swept; lists every reason.
        BoardNotFound: there is no such release.
    """
    configuration = sweep.configuration
    largest_k = sweep.settings.k[-1]
    store = ReleaseStore(configuration.uri)
    release = store.named(sweep.settings.release or configuration.board.channel)
    vectors = ConfiguredVectors(configuration.indexes, Lake(configuration.uri))
    loaded = LoadedRelease(store, release, IN_MEMORY_ROWS)
    searcher = Searcher(loaded, vectors, open_caller(llm, llm_options) if sweep.asking else None)
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


def systems_of(sweep: Sweep, searcher: Searcher) -> list[ReleaseSystem]:
    """Return every strategy in every index of a release, in every pool: all that is measured.

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
    return systems


def measure(sweep: Sweep, searcher: Searcher) -> list[Result]:
    """Evaluate every system at every k, and time some requests.

    Where the LLM's budget ends, so does the sweep: the results are those of the systems before the
    one in which it did, and `searcher.caller.exhausted` says so.

    Raises ConfigurationError for pools that cannot hold what the queries need.
    """
    systems = systems_of(sweep, searcher)
    progress.start("queries", len(systems) * len(sweep.queries))
    results: list[Result] = []
    for system in systems:
        own = _measure_system(sweep, system)
        if searcher.caller is not None and searcher.caller.exhausted is not None:
            break
        results += own
    return results


@dataclass(frozen=True, slots=True)
class LlmPlan:
    """What a sweep asks of an LLM, before it does.

    Attributes:
        calls: by strategy the least and the most calls, for requests of `STEPS` steps.
        usd: what the least and the most calls cost at `CALL_TOKENS` each; None if the price of the
            model is unknown.
    """

    calls: Mapping[str, tuple[int, int]]
    usd: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "calls": {name: list(bounds) for name, bounds in self.calls.items()},
            "usd": self.usd and list(self.usd),
        }

    def sentences(self) -> list[str]:
        """Return the plan as lines."""
        lines = [
            f"{name}: {_range_text(*bounds)} LLM calls, for requests of {STEPS} steps"
            for name, bounds in self.calls.items()
        ]
        if self.usd is None:
            return [*lines, "The price of the model is unknown."]
        prompt, reply = CALL_TOKENS
        return [
            *lines,
            f"about {_range_text(*self.usd, '.2f')} USD by list price, at {prompt:,} prompt tokens "
            f"and {reply} of the reply a call; recorded replies cost nothing",
        ]


def plan_of(sweep: Sweep, searcher: Searcher) -> LlmPlan:
    """Return how often the strategies of a sweep ask the LLM, and what that costs.

    Raises ConfigurationError for pools that cannot hold what the queries need.
    """
    calls: dict[str, tuple[int, int]] = {}
    for system in systems_of(sweep, searcher):
        least, most = _calls_of_request(system)
        if most:
            before = calls.get(system.strategy_name, (0, 0))
            count = len(sweep.queries)
            calls[system.strategy_name] = (before[0] + count * least, before[1] + count * most)
    price = None if searcher.caller is None else searcher.caller.price_per_token()
    if price is None:
        return LlmPlan(calls, None)
    usd = sum(tokens * cost for tokens, cost in zip(CALL_TOKENS, price, strict=True))
    least = sum(bounds[0] for bounds in calls.values())
    most = sum(bounds[1] for bounds in calls.values())
    return LlmPlan(calls, (least * usd, most * usd))


def _calls_of_request(system: ReleaseSystem) -> tuple[int, int]:
    if isinstance(system, AgentSystem):
        calls = int(system.strategy.asks_llm)
        return calls, calls
    return system.strategy.llm_call_bounds(STEPS)


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
    overhead = evaluation.overhead
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
            overhead=overhead,
        )
        for measure, values in evaluation.values.items()
    ]


def _latency(system: ReleaseSystem, sweep: Sweep) -> tuple[float, float] | tuple[None, None]:
    """Return the median and the 95th percentile of milliseconds, unless in a pool of noise or where
    an LLM is asked.
    """
    if _calls_of_request(system)[1] or any(
        system.searcher.pool == str(noise) for noise in sweep.settings.noise
    ):
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
        if (settings.max_tokens is None or candidate.all_tokens <= settings.max_tokens)
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
    asks = any(result.asked for result in results)
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
            *([f"{result.llm_calls:.1f}", f"{result.llm_tokens:.0f}"] if asks else []),
        ]
        for result in results
        if (result.measure, result.k) == (measure, k)
    ]
    pool_columns = ["pool", "tools"] if results[0].pool else []
    llm_columns = ["LLM calls", "LLM tokens"] if asks else []
    header = ["index", "strategy", *pool_columns, f"{measure}@{k}", "tokens", "ms", *llm_columns]
    return header, lines


def curve_table(results: Sequence[Result], settings: SweepSettings) -> Table:
    """Return the first measure by pool and k: a curve for each index and strategy."""
    cut_offs = [k for k in settings.k if k in CURVE] or list(
        settings.k[:: -(-len(settings.k) // 8)]
    )
    measure = settings.measures[0]
    curves: dict[tuple[str, str, str, float], dict[int, float]] = {}
    for result in results:
        if result.measure == measure:
            system = (result.index, result.strategy, result.pool, result.pool_size)
            curves.setdefault(system, {})[result.k] = result.mean.value
    lines = [
        [index, strategy, pool, size_text(size), *(f"{curve[k]:.3f}" for k in cut_offs)]
        for (index, strategy, pool, size), curve in curves.items()
    ]
    header = ["index", "strategy", "pool", "tools", *(f"{measure}@{k}" for k in cut_offs)]
    return header, lines


def _range_text(least: float, most: float, form: str = ",") -> str:
    texts = dict.fromkeys(format(value, form) for value in (least, most))
    return " to ".join(texts)


def _ms_text(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.0f}"
