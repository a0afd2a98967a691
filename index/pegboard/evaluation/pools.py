"""Pools: the tools among which golden queries are answered.

A search is harder among more tools, and among tools that look alike. A pool holds what the queries
need and some other tools of the release:

    100          100 tools, the same for all queries (tool-M in Lumer et al., "Toolshed", 4.2)
    all          the whole release
    random:30    for each query the tools that it needs and 30 others, drawn at random
    near:10      for each query the tools that it needs and, for each of them, the 10 nearest others
                 by the vectors of the default index

The last two are the noise of Kamiński et al., "Too Many Tools, Too Much Confusion?", 4.4. A smaller
pool is part of a larger one of its kind, and all systems search the same pools. Where several tools
share a name that a query needs, one of them stays and none of the others is drawn as noise.

A pool is searched as a release that has no other tools (`RestrictedRelease`): agents, dependencies
and the statistics of BM25 are those of the pool.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.evaluation.searcher import Searcher
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.search.restricted import RestrictedRelease
from pegboard.store.database import sql_literals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.evaluation.searcher import StrategyLike
    from pegboard.retrieval.found import FindResult

SEED = 0
"""Seed of all draws, fixed so that every run draws the same tools."""
CONCURRENT_QUERIES = 8
"""Largest number of queries with pools of their own that are searched at once with an LLM."""
PoolKind = Literal["all", "sample", "random", "near"]


@dataclass(frozen=True, slots=True)
class Pool:
    """A kind of pool and its number of tools.

    Attributes:
        count: for a `sample` all its tools, for `random` the others of each query, for `near` those
            of each tool that a query needs; 0 for `all`.
    """

    kind: PoolKind
    count: int = 0

    def __str__(self) -> str:
        if self.kind == "all":
            return "all"
        return str(self.count) if self.kind == "sample" else f"{self.kind}:{self.count}"

    @property
    def is_noise(self) -> bool:
        """Whether each query has a pool of its own."""
        return self.kind in ("random", "near")


ALL = Pool("all")


def size_text(tools: float) -> str:
    """The mean number of tools in a pool, for a table."""
    return f"{tools:,.1f}".removesuffix(".0")


def parse_sizes(text: str) -> tuple[Pool, ...]:
    """Return the pools of `100,500,all`. Raises ConfigurationError for anything else."""
    pools = [_size(item.strip()) for item in text.split(",")]
    return tuple(dict.fromkeys(pools))


def parse_noise(text: str) -> tuple[Pool, ...]:
    """Return the pools of `random:30,near:10`. Raises ConfigurationError for anything else."""
    pools = [_noise(item.strip()) for item in text.split(",")]
    return tuple(dict.fromkeys(pools))


def _size(text: str) -> Pool:
    if text == "all":
        return ALL
    if text.isascii() and text.isdecimal() and int(text):
        return Pool("sample", int(text))
    raise ConfigurationError(f"{text!r}: expected numbers of tools, or all: 100,500,all")


def _noise(text: str) -> Pool:
    kind, _, count = text.partition(":")
    if count.isascii() and count.isdecimal():
        if kind == "random":
            return Pool("random", int(count))
        if kind == "near":
            return Pool("near", int(count))
    raise ConfigurationError(
        f"{text!r}: expected random or near with a number of tools: random:30,near:10"
    )


@dataclass(frozen=True)
class PoolDrawer:
    """Draws the pools of golden queries from the tools of a release.

    Attributes:
        queries: all that are measured; samples hold what any of them needs.
        most_near: the largest number of near tools that is drawn for a needed tool.
    """

    loaded: LoadedRelease
    names: ToolNames
    queries: Sequence[GoldenQuery]
    most_near: int

    def tools(self, pool: Pool, query: GoldenQuery) -> frozenset[str]:
        """Return the ids of the tools in a query's pool."""
        match pool.kind:
            case "all":
                return frozenset(self._ids)
            case "sample":
                return frozenset(self._sample_order[: pool.count])
            case "random":
                return frozenset((*self._needed(query), *self._random(pool.count, query)))
            case "near":
                return frozenset((*self._needed(query), *self._near(pool.count, query)))

    def check(self, pools: Sequence[Pool]) -> None:
        """Raise ConfigurationError with every sample that cannot hold what the queries need, or
        that has more tools than the release.
        """
        smallest = len(self._needed_by_any)
        largest = len(self._ids)
        problems = [
            f"{pool} tools: expected {smallest} to {largest}, since the queries need {smallest} "
            f"tools, and the release has {largest}"
            for pool in pools
            if pool.kind == "sample" and not smallest <= pool.count <= largest
        ]
        if problems:
            raise ConfigurationError.from_problems(
                "The numbers of tools",
                problems,
                "Fewer queries (--limit) need fewer tools. `--noise random:N` gives each query N "
                "tools beside those that it needs.",
            )

    @cached_property
    def _ids(self) -> list[str]:
        return sorted(self.names.catalogs)

    @cached_property
    def _needed_by_any(self) -> dict[str, None]:
        return dict.fromkeys(tool for query in self.queries for tool in self._needed(query))

    @cached_property
    def _sample_order(self) -> list[str]:
        """The needed tools, then all others in random order; each sample is a beginning of it."""
        generator = random.Random(SEED)  # noqa: S311  a sample, not a secret
        others = [tool for tool in self._ids if tool not in self._needed_by_any]
        generator.shuffle(others)
        return [*self._needed_by_any, *others]

    def _needed(self, query: GoldenQuery) -> list[str]:
        """One id for each tool that the query names."""
        needed = self.names.resolve(query.tools).tools.values()
        return list(dict.fromkeys(map(min, needed)))

    def _right(self, query: GoldenQuery) -> frozenset[str]:
        """The ids of all tools that satisfy a name of the query."""
        return frozenset[str]().union(*self.names.resolve(query.tools).tools.values())

    def _random(self, count: int, query: GoldenQuery) -> Iterator[str]:
        right = self._right(query)
        generator = random.Random(f"{SEED}:{query.id}")  # noqa: S311
        others = (tool for tool in random_order(self._ids, generator) if tool not in right)
        return islice(others, count)

    def _near(self, count: int, query: GoldenQuery) -> Iterator[str]:
        right = self._right(query)
        for needed in self._needed(query):
            others = (tool for tool in self._nearest[needed] if tool not in right)
            yield from islice(others, count)

    @cached_property
    def _nearest(self) -> Mapping[str, Sequence[str]]:
        """For each needed tool the nearest others, nearest first: `most_near`, and as many more as
        a query has right tools, which are left out.
        """
        most_right = max((len(self._right(query)) for query in self.queries), default=0)
        tools = list(self._needed_by_any)
        return nearest_tools(self.loaded, tools, self.most_near + most_right)


def random_order(ids: Sequence[str], generator: random.Random) -> Iterator[str]:
    """Yield ids in random order without a copy of the list (Fisher and Yates): what is drawn first
    does not depend on how many are drawn.
    """
    moved: dict[int, int] = {}
    for place in range(len(ids)):
        drawn = generator.randrange(place, len(ids))
        yield ids[moved.get(drawn, drawn)]
        moved[drawn] = moved.get(place, place)


def nearest_tools(
    loaded: LoadedRelease, tools: Sequence[str], count: int
) -> dict[str, Sequence[str]]:
    """Return for each tool at least `count` others if there are as many, those with the highest
    cosine in the default index first; of several vectors of two tools the closest count.
    """
    index_name = loaded.index_name(None)
    index = loaded.index(index_name)
    vectors = vectors_of_tools(loaded, index_name, tools)
    nearest: dict[str, Sequence[str]] = {}
    for tool in tools:
        best: dict[str, float] = {}
        for ranking in index.vectors(vectors[tool], count + 1):
            for row in ranking:
                best[row.tool] = max(row.score, best.get(row.tool, row.score))
        best.pop(tool, None)
        nearest[tool] = sorted(best, key=lambda other: (-best[other], other))
    return nearest


def vectors_of_tools(
    loaded: LoadedRelease, index_name: str, tools: Sequence[str]
) -> "dict[str, NDArray[np.float32]]":
    """Return the vectors of each tool, of shape (vectors, dimensions)."""
    import numpy as np

    index = loaded.index(index_name)
    if isinstance(index, MemoryIndex):
        rows = index.rows.select(("tool", "vector"))
    else:
        condition = f"tool IN ({sql_literals(tools)})" if tools else "false"
        rows = index.table.read(("tool", "vector"), where=condition)
    row_numbers: dict[str, list[int]] = {tool: [] for tool in tools}
    for number, tool in enumerate(rows.column("tool").to_pylist()):
        if tool in row_numbers:
            row_numbers[tool].append(number)
    vectors: Any = rows.column("vector")
    return {
        tool: np.asarray(vectors.take(numbers).to_pylist(), np.float32)
        for tool, numbers in row_numbers.items()
    }


@dataclass(frozen=True)
class PoolSearcher(Searcher):
    """A searcher whose queries see nothing but their pool.

    Attributes:
        chosen: the pool of each query.
        drawer: draws from the same release.
    """

    drawer: PoolDrawer = field(kw_only=True)
    chosen: Pool = field(kw_only=True)

    @property
    def pool(self) -> str:
        """The pool's name, as in the options of commands."""
        return str(self.chosen)

    @cached_property
    def names(self) -> ToolNames:
        """The names of the whole release: what a query needs does not depend on the pool."""
        return self.drawer.names

    def pool_size(self, queries: Sequence[GoldenQuery]) -> float:
        """Return the mean number of tools among which these queries are answered."""
        sizes = [len(self.drawer.tools(self.chosen, query)) for query in queries]
        return sum(sizes) / len(sizes)

    def search(
        self,
        queries: Sequence[GoldenQuery],
        k: int,
        *,
        strategy: "StrategyLike" = None,
        index: str | None = None,
        advance: Callable[[int], None] = lambda _: None,
        explain: bool = False,
    ) -> "list[FindResult]":
        """Search for each query in its pool; as `Searcher.search`."""
        if not self.chosen.is_noise:
            searcher = Searcher(self._release, self.vectors, self.caller)
            return searcher.search(
                queries, k, strategy=strategy, index=index, advance=advance, explain=explain
            )

        def answer(query: GoldenQuery) -> "FindResult":
            tools = self.drawer.tools(self.chosen, query)
            searcher = Searcher(RestrictedRelease(self._release, tools), self.vectors, self.caller)
            [result] = searcher.search([query], k, strategy=strategy, index=index, explain=explain)
            advance(1)
            return result

        if self.caller is None:
            return [answer(query) for query in queries]
        with ThreadPoolExecutor(CONCURRENT_QUERIES, "pegboard-pools") as threads:
            return list(threads.map(answer, queries))

    @cached_property
    def _release(self) -> LoadedRelease:
        """The release with the tools of all queries' pools."""
        if self.chosen.kind == "all":
            return self.loaded
        pools = [self.drawer.tools(self.chosen, query) for query in self.drawer.queries]
        return RestrictedRelease(self.loaded, frozenset[str]().union(*pools))


def pool_searchers(
    searcher: Searcher, queries: Sequence[GoldenQuery], pools: Sequence[Pool]
) -> list[Searcher]:
    """Return a searcher for each pool; the given one if there are no pools.

    Raises ConfigurationError for pools that cannot hold what the queries need.
    """
    if not pools:
        return [searcher]
    most_near = max((pool.count for pool in pools if pool.kind == "near"), default=0)
    drawer = PoolDrawer(searcher.loaded, searcher.names, queries, most_near)
    drawer.check(pools)
    return [
        PoolSearcher(searcher.loaded, searcher.vectors, searcher.caller, drawer=drawer, chosen=pool)
        for pool in pools
    ]
