"""What a sweep measures: each strategy in each index of a release, at every k, in samples of its
tools.

Every sample has all tools that the golden queries need, and others in an order of their own: so
each is within the next, and all answer the same queries. In a small one the needed tools are denser
than in the catalog."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.cli.tables import count_text, list_text
from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import Evaluation, evaluate
from pegboard.evaluation.golden import Needed
from pegboard.evaluation.overhead import latency
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.strategy import Strategy
from pegboard.store.releases import ReleaseStore
from pegboard.tokens import prompt_tokens
from tasks import progress
from tasks.lake.files import Lake
from tasks.lake.query_vectors import ConfiguredVectors
from tasks.settings.release import MIN_QUERIES
from tasks.settings.sweep import Sweep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIMED = 20
"""Requests of each system that are sent one at a time to measure latency."""
MAX_NAMES = 10
SIZES = (100, 500, 1_000, 5_000, 10_000)
MAX_SHARE = 0.8
"""A sample with more of the catalog than this is not worth measuring beside the whole."""
RECIPE = ("encoder", "parts", "shape", "questions")


class SweepFolder(Lake):
    """The folder of a sweep, written and read like the lake: no file is ever half-written.

    vectors/<digest>/*.parquet     vectors of queries
    sweep.json                     the results
    """

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that a sweep measures.

    Attributes:
        release: the id of the release.
        samples: the tools of each sample by their number; the last is the whole catalog.
        indexes: for each index its `RECIPE`, as the release has it.
        warnings: what to keep in mind when reading the results.
    """

    sweep: Sweep
    release: str
    samples: Mapping[int, frozenset[str]]
    indexes: Mapping[str, Mapping[str, Any]]
    warnings: tuple[str, ...]

    @property
    def tools(self) -> int:
        """The number of tools of the release."""
        return max(self.samples)

    @property
    def systems(self) -> list[tuple[str, Strategy, int]]:
        """Every index with every strategy and the size of every sample."""
        return list(product(self.indexes, self.sweep.strategies, self.samples))


@dataclass(frozen=True, slots=True)
class Result:
    """A measure of one strategy in one index at one k, over a sample of the tools, and its cost.

    Attributes:
        tools: the size of the sample.
        value, low, high, n: the mean over n queries, with its interval.
        tokens: the mean prompt tokens of the k tools, an estimate.
        ms_p50, ms_p95: milliseconds per request.
        values: the measure of each query.
    """

    index: str
    strategy: str
    tools: int
    k: int
    measure: str
    value: float
    low: float
    high: float
    n: int
    tokens: float
    ms_p50: float
    ms_p95: float
    values: "NDArray[np.float64]" = field(repr=False, compare=False)

    @property
    def cost(self) -> tuple[float, float, float]:
        """Sorts by tokens, then by milliseconds, then highest value first."""
        return self.tokens, self.ms_p50, -self.value

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without those of single queries."""
        names = (field.name for field in fields(self) if field.name != "values")
        return {name: getattr(self, name) for name in names}


def design(sweep: Sweep) -> Design:
    """Return what there is to measure.

    Raises:
        ConfigurationError: lists every reason why the release cannot be swept.
        BoardNotFound: there is no such release.
    """
    release = ReleaseStore(sweep.uri).named(sweep.settings.release or "live")
    searcher = _searcher(sweep.uri, release.id)
    needed = [searcher.names.resolve(query.tools) for query in sweep.queries]
    if problems := _problems(sweep, searcher, needed):
        raise ConfigurationError.from_problems(f"The sweep of release {release.id}", problems)
    queries = len(sweep.queries)
    few = f"{count_text(queries, 'golden query', 'golden queries')} say little. Add golden queries."
    return Design(
        sweep=sweep,
        release=release.id,
        samples=_samples(sweep, searcher, needed),
        indexes={
            index: {name: searcher.loaded.index_manifest(index)[name] for name in RECIPE}
            for index in _index_names(sweep, searcher)
        },
        warnings=(few,) if queries < MIN_QUERIES else (),
    )


def measure_system(design: Design, index: str, strategy: Strategy, tools: int) -> list[Result]:
    """Evaluate a strategy in an index of a sample of so many tools at every k, and time some of its
    requests with their encoding.
    """
    sweep, settings = design.sweep, design.sweep.settings
    sample = design.samples[tools] if tools < design.tools else None
    loaded = _searcher(sweep.uri, design.release, sample).loaded
    vectors = ConfiguredVectors(sweep.configuration.indexes, SweepFolder(sweep.out))
    system = ReleaseSystem(Searcher(loaded, vectors), strategy, index)
    name = f"{strategy.name} in {index}, {tools} tools"
    evaluation = evaluate(
        system,
        sweep.queries,
        [f"{measure}@{k}" for measure in settings.measures for k in settings.k],
        advance=lambda count: progress.advance("queries", count, name),
    )
    timed = sweep.queries[:: max(1, len(sweep.queries) // TIMED)][:TIMED]
    p50, p95 = latency(system, timed, max(settings.k))
    tokens = _tokens(design, evaluation)
    return [
        Result(
            index=index,
            strategy=strategy.name,
            tools=tools,
            k=measure.k or 0,
            measure=measure.kind,
            **evaluation.interval(measure).to_dict(),
            tokens=tokens[measure.k or 0],
            ms_p50=p50,
            ms_p95=p95,
            values=values,
        )
        for measure, values in evaluation.values.items()
    ]


def _tokens(design: Design, evaluation: Evaluation) -> dict[int, float]:
    """The mean prompt tokens of the first k tools, by k."""
    ks = design.sweep.settings.k
    retrieved = [[tool.id for tool in result.retrieved[: max(ks)]] for result in evaluation.results]
    loaded = _searcher(design.sweep.uri, design.release).loaded
    sizes = prompt_tokens(loaded, {tool for tools in retrieved for tool in tools})
    return {
        k: sum(sizes[tool] for tools in retrieved for tool in tools[:k]) / len(retrieved)
        for k in ks
    }


@lru_cache(maxsize=2)
def _searcher(uri: str, release: str, tools: frozenset[str] | None = None) -> Searcher:
    """Return a release by its id, with these tools only if they are given. Raises BoardNotFound."""
    if tools is not None:
        return _searcher(uri, release).restricted(tools)
    return Searcher.open(uri, release=release)


def _samples(
    sweep: Sweep, searcher: Searcher, needed: Sequence[Needed]
) -> dict[int, frozenset[str]]:
    tools, golden = searcher.names.catalogs, _golden(needed)
    order = [*sorted(golden), *sorted(tools.keys() - golden, key=digest)]
    usual = [size for size in SIZES if len(golden) <= size < MAX_SHARE * len(tools)]
    sizes = {size for size in sweep.settings.tools or usual if size != "all"} | {len(tools)}
    return {size: frozenset(order[:size]) for size in sorted(sizes)}


def _golden(needed: Iterable[Needed]) -> set[str]:
    """The tools that golden queries need."""
    return {tool for need in needed for ids in need.tools.values() for tool in ids}


def _index_names(sweep: Sweep, searcher: Searcher) -> list[str]:
    """The indexes to measure, in the order of the configuration."""
    published: Iterable[str] = searcher.release.manifest["indexes"]
    order = [index.name for index in sweep.configuration.indexes]
    chosen = sweep.settings.indexes or tuple(published)
    names = [name for name in [*order, *published] if name in published and name in chosen]
    return list(dict.fromkeys(names))


def _problems(sweep: Sweep, searcher: Searcher, needed: Sequence[Needed]) -> list[str]:
    settings, published = sweep.settings, searcher.release.manifest["indexes"]
    tools, golden, problems = len(searcher.names.catalogs), len(_golden(needed)), list[str]()
    problems += [
        f"tools: expected sizes from {golden}, the tools that the golden queries need, to {tools} "
        f"(got {size})"
        for size in settings.tools
        if size != "all" and not golden <= size <= tools
    ]
    if settings.k[-1] > tools:
        problems.append(
            f"k: expected at most the {tools} tools of the release, got {settings.k[-1]}"
        )
    problems += [
        f"indexes: the release has no index '{name}'; expected one of "
        f"{', '.join(sorted(published))}"
        for name in settings.indexes
        if name not in published
    ]
    if unknown := sorted({name for tools in needed for name in tools.unknown}):
        count = sum(bool(tools.unknown) for tools in needed)
        problems.append(
            f"golden: {count} queries need tools that the release does not have: "
            f"{list_text(unknown, MAX_NAMES)}; correct or remove them, `pegboard golden check` "
            f"lists them"
        )
    return problems
