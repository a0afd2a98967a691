"""One cell of a sweep: a strategy in an index of a sample, measured at every k.

The name of a cell's file is a digest of everything that decides its values: the rows of the tables,
the index, the strategy, the sample, the queries, the measures. So a sweep that was killed continues
where it stopped, and a sweep with another index measures only the cells of that index."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.encoders import Encoder, check_allowed
from pegboard.evaluation.comparison import Evaluation, evaluate
from pegboard.evaluation.overhead import check_fallbacks, latency
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS, Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.llm.caller import open_caller
from pegboard.retrieval.strategy import Strategy
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.contract import EDGES, VECTOR_OPTIONS, embedding_table
from pegboard.tokens import prompt_tokens
from tasks import progress
from tasks.embed import encoder_for
from tasks.lake.files import Lake
from tasks.lake.query_vectors import CachedQueryEncoder
from tasks.settings.configuration import IndexSettings
from tasks.settings.sweep import Sweep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.retrieval.llm.caller import LlmCaller

VERSION = 2
"""Counts up when the columns of a cell, or how they are measured, change."""
TIMED = 20
"""Requests of each cell that are sent one at a time to measure latency."""


class SweepFolder(Lake):
    """The folder of a sweep, written and read like the lake: no file is ever half-written.

    cells/<key>.parquet            one cell: a row for each measure and k; written last, so a cell
                                   is done if it exists
    cells/<key>.values.parquet     its values query by query
    vectors/<digest>/*.parquet     vectors of queries
    sweep.parquet, values.parquet, sweep.json      the results
    """

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)


@dataclass(frozen=True, slots=True)
class CatalogSample:
    """Some tools of a catalog, and the golden queries all of whose tools are among them.

    Attributes:
        tools: their ids, sorted.
        queries: places of the queries in the golden file, rising.
        share: how much of the sample are tools that golden queries need.
    """

    size: int
    tools: tuple[str, ...]
    queries: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured: a strategy, as JSON values, in an index of a sample of a release."""

    sweep: Sweep
    release: str
    index: str
    strategy: Mapping[str, Any]
    sample: CatalogSample
    key: str

    @classmethod
    def of(
        cls,
        sweep: Sweep,
        loaded: LoadedRelease,
        index: str,
        strategy: Strategy,
        sample: CatalogSample,
    ) -> "Cell":
        """Return the cell of an index, a strategy and a sample of a release."""
        names = ("tools", EDGES, embedding_table(index))
        pins = [loaded.release.tables[name] for name in names if name in loaded.release.tables]
        settings = sweep.settings
        key = digest(
            VERSION,
            [[pin.table, pin.digest] for pin in pins],
            loaded.index_manifest(index),
            strategy.to_dict(),
            sample.tools,
            [sweep.queries[place].to_dict() for place in sample.queries],
            settings.measures,
            settings.k,
            settings.llm,
            settings.llm_api_base,
        )
        return cls(sweep, loaded.release.id, index, strategy.to_dict(), sample, key[:24])

    @property
    def name(self) -> str:
        """The name of the cell in progress displays."""
        return f"{self.strategy['name']} in {self.index}, {self.sample.size} tools"

    @property
    def files(self) -> SweepFolder:
        """The folder of the sweep."""
        return SweepFolder(self.sweep.out)

    @property
    def rows(self) -> str:
        """The file with a row for each measure and k."""
        return f"cells/{self.key}.parquet"

    @property
    def values(self) -> str:
        """The file with the values query by query."""
        return f"cells/{self.key}.values.parquet"

    @property
    def is_done(self) -> bool:
        """Whether the cell was measured before."""
        return self.files.exists(self.rows)


def measure_cell(cell: Cell) -> None:
    """Evaluate a cell, and write its files."""
    sweep, settings = cell.sweep, cell.sweep.settings
    queries = [sweep.queries[place] for place in cell.sample.queries]
    loaded = _sample(sweep.uri, cell.release, cell.sample.tools)
    caller = _llm_caller(settings.llm, settings.llm_api_base)
    strategy, vectors = Strategy.from_dict(cell.strategy), _cached_vectors(cell, loaded)
    system = ReleaseSystem(Searcher(loaded, vectors, caller), strategy, cell.index)
    evaluation = evaluate(
        system,
        queries,
        [f"{measure}@{k}" for measure in settings.measures for k in settings.k],
        advance=lambda count: progress.advance("queries", count, cell.name),
    )
    if settings.llm:
        check_fallbacks([evaluation.overhead], 0.0, "repeat the sweep: finished cells are kept.")
    # Requests are timed with their encoding.
    searcher = Searcher(loaded, QueryVectors(_encoder(cell, loaded), None), caller)
    timed = queries[:: max(1, len(queries) // TIMED)][:TIMED]
    system = ReleaseSystem(searcher, strategy, cell.index)
    p50, p95 = latency(system, timed, max(settings.k))
    _write(cell, evaluation, {"ms_p50": p50, "ms_p95": p95})


def _write(cell: Cell, evaluation: Evaluation, timing: Mapping[str, Any]) -> None:
    import polars as pl

    by_query = {
        "place": cell.sample.queries,
        "query": [result.query.id for result in evaluation.results],
        "kind": [result.query.kind for result in evaluation.results],
    }
    integers = {"place": pl.Int32, "k": pl.Int16}
    values = [
        pl.DataFrame(
            {**by_query, "measure": measure.kind, "k": measure.k, "value": column},
            schema_overrides=integers,
        )
        for measure, column in evaluation.values.items()
    ]
    traces = [result.trace for result in evaluation.results if result.trace]
    without_llm = dict.fromkeys(part for trace in traces for part, _ in trace.fallbacks)
    tokens = dict(zip(cell.sweep.settings.k, _tokens(cell, evaluation).tolist(), strict=True))
    rows = [
        {
            "k": measure.k,
            "measure": measure.kind,
            **evaluation.interval(measure).to_dict(),
            "tokens": tokens[measure.k or 0],
            **timing,
            "without_llm": ", ".join(without_llm),
        }
        for measure in evaluation.values
    ]
    cell.files.write(cell.values, pl.concat(values))
    cell.files.write(cell.rows, pl.DataFrame(rows, schema_overrides={"k": pl.Int16}))


def _tokens(cell: Cell, evaluation: Evaluation) -> "NDArray[np.float64]":
    """The mean prompt tokens of the first k tools, of shape (ks,)."""
    import numpy as np

    most = max(cell.sweep.settings.k)
    retrieved = [[tool.id for tool in result.retrieved[:most]] for result in evaluation.results]
    sizes = _known_tokens(cell.sweep.uri, cell.release)
    new = {tool for tools in retrieved for tool in tools if tool not in sizes}
    sizes.update(prompt_tokens(release_searcher(cell.sweep.uri, cell.release).loaded, new))
    table = np.zeros((len(retrieved), most + 1))
    for row, tools in enumerate(retrieved):
        table[row, 1 : len(tools) + 1] = [sizes[tool] for tool in tools]
    return np.cumsum(table, axis=1)[:, list(cell.sweep.settings.k)].mean(axis=0)


# What the cells of a process share.


@lru_cache(maxsize=2)
def release_searcher(uri: str, release: str) -> Searcher:
    """Return a release by its id. Raises BoardNotFound."""
    return Searcher.open(uri, release=release)


@lru_cache(maxsize=1)
def _sample(uri: str, release: str, tools: tuple[str, ...]) -> LoadedRelease:
    """The release with the tools of a sample only; itself, if the sample has all of them."""
    whole = release_searcher(uri, release)
    return (
        whole.loaded if len(tools) == len(whole.names.catalogs) else whole.restricted(tools).loaded
    )


@lru_cache(maxsize=2)
def _known_tokens(_uri: str, _release: str) -> dict[str, float]:
    return {}


@cache
def _llm_caller(llm: str | None, api_base: str | None) -> "LlmCaller | None":
    return open_caller(llm, {"api_base": api_base} if api_base else None)


_query_vectors: dict[tuple[str, str, str], QueryVectors] = {}
"""By the folder of the sweep, the encoder's fingerprint and its options."""


def _cached_vectors(cell: Cell, loaded: LoadedRelease) -> QueryVectors:
    manifest = loaded.index_manifest(cell.index)
    options = json.dumps(_encoder_settings(cell, loaded).options, sort_keys=True)
    key = (str(cell.sweep.out), manifest["fingerprint"], options)
    if key not in _query_vectors:
        encoder = CachedQueryEncoder(
            cell.files,
            manifest["encoder"],
            manifest["fingerprint"],
            manifest["dimensions"],
            lambda: _encoder(cell, loaded),
        )
        _query_vectors[key] = QueryVectors(encoder, None, CACHED_QUERY_VECTORS)
    return _query_vectors[key]


def _encoder(cell: Cell, loaded: LoadedRelease) -> Encoder:
    """The encoder of the index, loaded once in a process."""
    return encoder_for(_encoder_settings(cell, loaded))


def _encoder_settings(cell: Cell, loaded: LoadedRelease) -> IndexSettings:
    """The published encoder of the index, with the options that the configuration gives it."""
    manifest = loaded.index_manifest(cell.index)
    published = manifest.get("options", {})
    options = {name: published[name] for name in VECTOR_OPTIONS if name in published}
    configured = cell.sweep.configuration.indexes if cell.sweep.configuration else ()
    check_allowed(manifest["encoder"], [index.encoder for index in configured])
    for index in configured:
        if (index.name, index.encoder) == (cell.index, manifest["encoder"]):
            options |= index.options
    return IndexSettings(encoder=manifest["encoder"], options=options)
