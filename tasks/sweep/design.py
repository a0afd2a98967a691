"""Which cells a sweep has: every index with every strategy on every sample of the catalog; and what
stands in the way of measuring them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.strategy import Strategy
from pegboard.store.contract import EDGES, embedding_table
from tasks.settings.sweep import Sweep
from tasks.sweep.cells import VERSION, Cell, is_done
from tasks.sweep.files import write_json
from tasks.sweep.opened import release_named, release_of
from tasks.sweep.samples import Sample, default_sizes, nested_samples

FEW = 30
"""Fewer queries than this say little: the interval of a recall of .8 is then .29 wide."""
NAMED = 10


@dataclass(frozen=True, slots=True)
class IndexShape:
    """What a release says of an index."""

    name: str
    encoder: str
    parts: tuple[str, ...]
    shape: str
    questions: int


@dataclass(frozen=True, slots=True)
class Design:
    """All that is measured.

    Attributes:
        sweep: what was asked for.
        release: the id of the release.
        catalog: how many tools it has.
        samples: smallest first within each seed; the whole catalog once.
        cells: in an order in which neighbours share a sample and an index.
        finished: how many of them were done before.
        warnings: what the results will not say by themselves.
    """

    sweep: Sweep
    release: str
    catalog: int
    indexes: tuple[IndexShape, ...]
    samples: tuple[Sample, ...]
    cells: tuple[Cell, ...]
    finished: int
    warnings: tuple[str, ...]

    @property
    def todo(self) -> list[Cell]:
        """The cells that are not done."""
        return [cell for cell in self.cells if not is_done(cell)]


def design(sweep: Sweep) -> Design:
    """Draw the samples, and name the cells.

    Raises:
        ConfigurationError: with every reason why the release cannot be swept so.
        BoardNotFound: there is no such release.
    """
    settings = sweep.settings
    searcher = release_of(sweep.uri, release_named(sweep.uri, settings.release or "live"))
    catalog = len(searcher.names.catalogs)
    needed = [searcher.names.resolve(query.tools) for query in sweep.queries]
    indexes = _indexes(sweep, searcher)
    problems = _problems(sweep, searcher, catalog, needed)
    if problems:
        raise ConfigurationError(_message(sweep, searcher, problems))
    samples = _samples(sweep, searcher, needed, catalog)
    if empty := [str(one.size) for one in samples if not one.queries]:
        raise ConfigurationError(
            f"No golden query has all its tools in a sample of {', '.join(empty)} tools. Take "
            f"larger samples, or add golden queries that "
            "need few tools."
        )
    files = {one.digest: _written(sweep.out, one) for one in samples}
    cells = tuple(
        _cell(sweep, searcher, index, strategy, sample, files[sample.digest])
        for sample in samples
        for index in indexes
        for strategy in sweep.strategies
    )
    return Design(
        sweep,
        searcher.release.id,
        catalog,
        tuple(_shape(searcher, index) for index in indexes),
        tuple(samples),
        cells,
        sum(map(is_done, cells)),
        tuple(_warnings(sweep, samples)),
    )


def _indexes(sweep: Sweep, searcher: Searcher) -> list[str]:
    """The names of the indexes that are asked, in the order of the configuration, where there is
    one.
    """
    there: Iterable[str] = searcher.release.manifest["indexes"]
    order = [index.name for index in sweep.configuration.indexes] if sweep.configuration else []
    named = sweep.settings.indexes
    known = [one for one in [*order, *there] if one in there and (not named or one in named)]
    return list(dict.fromkeys(known))


def _shape(searcher: Searcher, index: str) -> IndexShape:
    said = searcher.loaded.index_manifest(index)
    return IndexShape(
        index, said["encoder"], tuple(said["parts"]), said["shape"], said["questions"]
    )


def _problems(
    sweep: Sweep, searcher: Searcher, catalog: int, needed: Sequence[Needed]
) -> list[str]:
    settings, indexes = sweep.settings, searcher.release.manifest["indexes"]
    sizes = [one for one in settings.tools if one != "all"]
    problems = [
        f"tools: {size} are more than the {catalog} of the catalog"
        for size in sizes
        if size > catalog
    ]
    smallest = min([*sizes, catalog])
    if settings.k[-1] > smallest:
        what = "the catalog" if smallest == catalog else "the smallest sample"
        problems.append(f"k: {settings.k[-1]} is more than the {smallest} tools of {what}")
    problems += [
        f"indexes: the release has no index '{one}'; it has {', '.join(sorted(indexes))}"
        for one in settings.indexes
        if one not in indexes
    ]
    problems += [
        f"strategies: '{strategy.name}' asks for probabilities, and index '{index}' is not "
        f"calibrated; add [golden] queries and build"
        for strategy in sweep.strategies
        for index in _indexes(sweep, searcher)
        if strategy.needs_calibration() and not searcher.loaded.calibration(index)
    ]
    if unknown := sorted({name for one in needed for name in one.unknown}):
        count = sum(1 for one in needed if one.unknown)
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        problems.append(
            f"golden: {count} queries need tools that the release does not have: "
            f"{', '.join(unknown[:NAMED])}{more}; correct or "
            "remove them, `pegboard golden check` lists them"
        )
    return problems


def _message(sweep: Sweep, searcher: Searcher, problems: Sequence[str]) -> str:
    listed = "\n".join(f"  - {one}" for one in problems)
    return f"Release {searcher.release.id} cannot be swept so:\n{listed}"


def _samples(
    sweep: Sweep, searcher: Searcher, needed: Sequence[Needed], catalog: int
) -> list[Sample]:
    settings = sweep.settings
    sizes = [catalog if one == "all" else int(one) for one in settings.tools] or default_sizes(
        catalog
    )
    seeds = range(settings.seed, settings.seed + settings.samples)
    drawn = [
        sample
        for seed in seeds
        for sample in nested_samples(searcher.names.catalogs, needed, sizes, seed, settings.share)
    ]
    # The whole catalog is the same whatever the seed.
    return [one for one in drawn if one.size < catalog or one.seed == settings.seed]


def _written(folder: Path, sample: Sample) -> Path:
    path = folder / "samples" / f"{sample.digest[:24]}.json"
    if not path.is_file():
        write_json(path, list(sample.tools))
    return path


def _cell(
    sweep: Sweep, searcher: Searcher, index: str, strategy: Strategy, sample: Sample, file: Path
) -> Cell:
    settings, release = sweep.settings, searcher.release
    named = sweep.configuration.indexes if sweep.configuration else ()
    manifest: Mapping[str, Any] = searcher.loaded.index_manifest(index)
    options = next(
        (one.options for one in named if (one.name, one.encoder) == (index, manifest["encoder"])),
        {},
    )
    tables = [release.tables[name] for name in ("tools", EDGES, embedding_table(index))]
    asked = [sweep.queries[place].to_dict() for place in sample.queries]
    decides = (
        VERSION, [[pin.table, pin.digest] for pin in tables], manifest, strategy.to_dict(), sample.digest, asked, settings.measures,
        settings.k, settings.timed, settings.llm, settings.llm_api_base,
    )  # fmt: skip
    return Cell(
        digest(*decides)[:24],
        sweep.out,
        sweep.uri,
        release.id,
        index,
        strategy.to_dict(),
        sample.size,
        sample.seed,
        file,
        sweep.golden,
        sweep.golden_digest,
        sample.queries,
        settings.measures,
        settings.k,
        settings.timed,
        options,
        settings.llm,
        settings.llm_api_base,
    )


def _warnings(sweep: Sweep, samples: Iterable[Sample]) -> list[str]:
    return [
        f"{len(one.queries)} golden queries have all their tools in the sample of {one.size} "
        f"tools (seed {one.seed}), which says little. "
        "Add golden queries, take larger samples, or draw several with --samples."
        for one in samples
        if len(one.queries) < FEW
    ]
