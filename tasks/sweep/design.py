"""Which cells a sweep has, and the problems that prevent measuring them.

The catalogs are nested samples: retrieval among 100, 500, 1,000, all tools (Toolshed, 4.2). A small
random sample would have all tools of hardly any query. So the tools are put in an order in which
tools of whole golden queries alternate with other tools, at a fixed share, and a sample is the
beginning of that order. In a small sample the tools that queries need are therefore denser than in
the catalog, and queries that need few tools are a little more frequent: to measure the effect of
size alone, compare the same queries in both samples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.canonical import digest
from pegboard.cli.tables import list_text
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.store.releases import ReleaseStore
from tasks.settings.sweep import Sweep
from tasks.sweep.cells import CatalogSample, Cell, release_searcher

MIN_QUERIES = 30
"""With fewer queries a mean says little: the interval of a recall of .8 is then .29 wide."""
MAX_NAMES = 10
SIZES = (100, 500, 1_000, 5_000, 10_000)
MAX_SHARE = 0.8
"""A sample with more of the catalog than this is not worth measuring beside the whole."""
NEEDED_SHARE = 0.75
"""The share of a sample that are tools which golden queries need, while there are any."""
RECIPE = ("encoder", "parts", "shape", "questions")


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that a sweep measures.

    Attributes:
        release: the id of the release.
        catalog: the number of its tools.
        indexes: for each index its `RECIPE`, as the release has it.
        samples: smallest first.
        cells: ordered so that neighbours share a sample and an index.
        finished: the number of cells that were done before.
        warnings: what to keep in mind when reading the results.
    """

    sweep: Sweep
    release: str
    catalog: int
    indexes: Mapping[str, Mapping[str, Any]]
    samples: tuple[CatalogSample, ...]
    cells: tuple[Cell, ...]
    finished: int
    warnings: tuple[str, ...]

    @property
    def todo(self) -> list[Cell]:
        """The cells that are not done."""
        return [cell for cell in self.cells if not cell.is_done]


def design(sweep: Sweep) -> Design:
    """Draw the samples, and list the cells.

    Raises:
        ConfigurationError: lists every reason why the release cannot be swept.
        BoardNotFound: there is no such release.
    """
    release = ReleaseStore(sweep.uri).named(sweep.settings.release or "live")
    searcher = release_searcher(sweep.uri, release.id)
    needed = [searcher.names.resolve(query.tools) for query in sweep.queries]
    if problems := _problems(sweep, searcher, needed):
        raise ConfigurationError.from_problems(f"The sweep of release {release.id}", problems)
    indexes, samples = _index_names(sweep, searcher), _samples(sweep, searcher, needed)
    cells = tuple(
        Cell.of(sweep, searcher.loaded, index, strategy, sample)
        for sample in samples
        for index in indexes
        for strategy in sweep.strategies
    )
    manifests = {index: searcher.loaded.index_manifest(index) for index in indexes}
    return Design(
        sweep=sweep,
        release=release.id,
        catalog=len(searcher.names.catalogs),
        indexes={
            index: {name: manifest[name] for name in RECIPE}
            for index, manifest in manifests.items()
        },
        samples=tuple(samples),
        cells=cells,
        finished=sum(cell.is_done for cell in cells),
        warnings=tuple(
            f"{len(sample.queries)} golden queries have all their tools in the sample of "
            f"{sample.size} tools, which says little. Add golden queries, or choose larger samples."
            for sample in samples
            if len(sample.queries) < MIN_QUERIES
        ),
    )


def _index_names(sweep: Sweep, searcher: Searcher) -> list[str]:
    """The indexes to measure, in the order of the configuration if there is one."""
    published: Iterable[str] = searcher.release.manifest["indexes"]
    order = [index.name for index in sweep.configuration.indexes] if sweep.configuration else []
    chosen = sweep.settings.indexes or tuple(published)
    names = [name for name in [*order, *published] if name in published and name in chosen]
    return list(dict.fromkeys(names))


def _problems(sweep: Sweep, searcher: Searcher, needed: Sequence[Needed]) -> list[str]:
    settings, published = sweep.settings, searcher.release.manifest["indexes"]
    catalog = len(searcher.names.catalogs)
    sizes = [size for size in settings.tools if size != "all"]
    problems = [
        f"tools: expected at most the {catalog} tools of the catalog (got {size})"
        for size in sizes
        if size > catalog
    ]
    smallest = min([*sizes, catalog])
    if settings.k[-1] > smallest:
        what = "the catalog" if smallest == catalog else "the smallest sample"
        problems.append(
            f"k: expected at most the {smallest} tools of {what} (got {settings.k[-1]})"
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


def _samples(sweep: Sweep, searcher: Searcher, needed: Sequence[Needed]) -> list[CatalogSample]:
    tools = searcher.names.catalogs
    sizes = [len(tools) if size == "all" else size for size in sweep.settings.tools]
    samples = nested_samples(
        tools, needed, sizes or default_sizes(len(tools)), sweep.settings.seed, NEEDED_SHARE
    )
    if empty := [str(sample.size) for sample in samples if not sample.queries]:
        raise ConfigurationError(
            f"No golden query has all its tools in a sample of {', '.join(empty)} tools. Choose "
            f"larger samples, or add golden queries that need few tools."
        )
    return samples


def default_sizes(tools: int) -> list[int]:
    """Return the sizes of samples for a number of tools; the last is the whole catalog."""
    return [*(size for size in SIZES if size < MAX_SHARE * tools), tools]


def nested_samples(
    tools: Iterable[str], needed: Sequence[Needed], sizes: Iterable[int], seed: int, share: float
) -> list[CatalogSample]:
    """Return the samples, smallest first, each within the next.

    Args:
        tools: the ids of the whole catalog.
        needed: what each golden query needs of it.
        share: see `catalog_order`.
    """
    order = catalog_order(tools, needed, seed, share)
    golden = {tool for query in needed for ids in query.tools.values() for tool in ids}
    samples: list[CatalogSample] = []
    for size in sorted(set(sizes)):
        ids = frozenset(order[:size])
        queries = tuple(place for place, one in enumerate(needed) if _has_all(ids, one))
        share_of_golden = len(ids & golden) / max(len(ids), 1)
        samples.append(CatalogSample(size, tuple(sorted(ids)), queries, share_of_golden))
    return samples


def catalog_order(
    tools: Iterable[str], needed: Sequence[Needed], seed: int, share: float
) -> list[str]:
    """Return all tools in the order in which samples take them.

    Args:
        seed: equal seeds give equal orders everywhere. A tool that is added or removed leaves the
            order of the others nearly as it is.
        share: of every beginning, the share of tools of golden queries, all tools of one query
            together, until there are none left.
    """
    shuffled = sorted(tools, key=lambda tool: digest(seed, tool))
    rank = {tool: place for place, tool in enumerate(shuffled)}
    queries = sorted(needed, key=lambda query: digest(seed, _names(query.tools)))
    golden = list(
        dict.fromkeys(
            # Of several tools with one name the same one for all queries.
            min(ids, key=lambda tool: rank[tool])
            for query in queries
            for _, ids in sorted(query.tools.items())
        )
    )
    others = [tool for tool in shuffled if tool not in set(golden)]
    order: list[str] = []
    taken = 0
    while len(order) < len(shuffled):
        due = taken < share * (len(order) + 1)
        if (due and taken < len(golden)) or len(order) - taken >= len(others):
            order.append(golden[taken])
            taken += 1
        else:
            order.append(others[len(order) - taken])
    return order


def _has_all(sample: frozenset[str], needed: Needed) -> bool:
    answerable = bool(needed.tools) and not needed.unknown
    return answerable and all(ids & sample for ids in needed.tools.values())


def _names(tools: Mapping[str, frozenset[str]]) -> list[list[str]]:
    return sorted(sorted(ids) for ids in tools.values())
