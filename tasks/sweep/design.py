"""Which cells a sweep has, and the problems that prevent measuring them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.canonical import digest
from pegboard.cli.tables import list_text
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.strategy import Strategy
from pegboard.store.contract import EDGES, embedding_table
from pegboard.store.releases import ReleaseStore
from tasks.settings.sweep import Sweep
from tasks.sweep.cells import VERSION, Cell, release_searcher
from tasks.sweep.files import SweepFolder
from tasks.sweep.samples import CatalogSample, default_sizes, nested_samples

MIN_QUERIES = 30
"""With fewer queries a mean says little: the interval of a recall of .8 is then .29 wide."""
MAX_NAMES = 10


@dataclass(frozen=True, slots=True)
class IndexRecipe:
    """The recipe of an index, as the release has it."""

    name: str
    encoder: str
    parts: tuple[str, ...]
    shape: str
    questions: int


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that a sweep measures.

    Attributes:
        release: the id of the release.
        catalog: the number of its tools.
        samples: smallest first within each seed; the whole catalog once.
        cells: ordered so that neighbours share a sample and an index.
        finished: the number of cells that were done before.
        warnings: what to keep in mind when reading the results.
    """

    sweep: Sweep
    release: str
    catalog: int
    indexes: tuple[IndexRecipe, ...]
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
    indexes = _index_names(sweep, searcher)
    if problems := _problems(sweep, searcher, needed, indexes):
        raise ConfigurationError.from_problems(f"The sweep of release {release.id}", problems)
    samples = _samples(sweep, searcher, needed)
    files = {sample.digest: _write_sample(sweep, sample) for sample in samples}
    cells = tuple(
        _cell(sweep, searcher, index, strategy, sample, files[sample.digest])
        for sample in samples
        for index in indexes
        for strategy in sweep.strategies
    )
    return Design(
        sweep=sweep,
        release=release.id,
        catalog=len(searcher.names.catalogs),
        indexes=tuple(_shape(searcher, index) for index in indexes),
        samples=tuple(samples),
        cells=cells,
        finished=sum(cell.is_done for cell in cells),
        warnings=tuple(_warnings(samples)),
    )


def _index_names(sweep: Sweep, searcher: Searcher) -> list[str]:
    """The indexes to measure, in the order of the configuration if there is one."""
    published: Iterable[str] = searcher.release.manifest["indexes"]
    order = [index.name for index in sweep.configuration.indexes] if sweep.configuration else []
    chosen = sweep.settings.indexes or tuple(published)
    names = [name for name in [*order, *published] if name in published and name in chosen]
    return list(dict.fromkeys(names))


def _shape(searcher: Searcher, index: str) -> IndexRecipe:
    manifest = searcher.loaded.index_manifest(index)
    return IndexRecipe(
        index,
        manifest["encoder"],
        tuple(manifest["parts"]),
        manifest["shape"],
        manifest["questions"],
    )


def _problems(
    sweep: Sweep, searcher: Searcher, needed: Sequence[Needed], indexes: Sequence[str]
) -> list[str]:
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
    settings, tools = sweep.settings, searcher.names.catalogs
    sizes = [len(tools) if size == "all" else size for size in settings.tools]
    seeds = range(settings.seed, settings.seed + settings.samples)
    drawn = [
        sample
        for seed in seeds
        for sample in nested_samples(
            tools, needed, sizes or default_sizes(len(tools)), seed, settings.share
        )
    ]
    # The whole catalog is the same for every seed.
    samples = [
        sample for sample in drawn if sample.size < len(tools) or sample.seed == settings.seed
    ]
    if empty := [str(sample.size) for sample in samples if not sample.queries]:
        raise ConfigurationError(
            f"No golden query has all its tools in a sample of {', '.join(empty)} tools. Choose "
            f"larger samples, or add golden queries that need few tools."
        )
    return samples


def _write_sample(sweep: Sweep, sample: CatalogSample) -> str:
    files, path = SweepFolder(sweep.out), f"samples/{sample.digest[:24]}.json"
    if not files.exists(path):
        files.write_json(path, {"tools": list(sample.tools)})
    return path


def _cell(
    sweep: Sweep,
    searcher: Searcher,
    index: str,
    strategy: Strategy,
    sample: CatalogSample,
    file: str,
) -> Cell:
    settings, release = sweep.settings, searcher.release
    manifest: Mapping[str, Any] = searcher.loaded.index_manifest(index)
    configured = sweep.configuration.indexes if sweep.configuration else ()
    options = [
        index_settings.options
        for index_settings in configured
        if (index_settings.name, index_settings.encoder) == (index, manifest["encoder"])
    ]
    names = ("tools", EDGES, embedding_table(index))
    tables = [release.tables[name] for name in names if name in release.tables]
    key = digest(
        VERSION,
        [[pin.table, pin.digest] for pin in tables],
        manifest,
        strategy.to_dict(),
        sample.digest,
        [sweep.queries[place].to_dict() for place in sample.queries],
        settings.measures,
        settings.k,
        settings.timed,
        settings.llm,
        settings.llm_api_base,
    )
    return Cell(
        key=key[:24],
        folder=sweep.out,
        uri=sweep.uri,
        release=release.id,
        index=index,
        strategy=strategy.to_dict(),
        size=sample.size,
        seed=sample.seed,
        sample=file,
        golden=sweep.golden,
        golden_digest=sweep.golden_digest,
        queries=sample.queries,
        measures=settings.measures,
        ks=settings.k,
        timed=settings.timed,
        options=options[0] if options else {},
        llm=settings.llm,
        llm_api_base=settings.llm_api_base,
    )


def _warnings(samples: Iterable[CatalogSample]) -> list[str]:
    return [
        f"{len(sample.queries)} golden queries have all their tools in the sample of {sample.size} "
        f"tools (seed {sample.seed}), which says little. Add golden queries, choose larger "
        f"samples, or draw several with --samples."
        for sample in samples
        if len(sample.queries) < MIN_QUERIES
    ]
