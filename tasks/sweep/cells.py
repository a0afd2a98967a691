"""One cell of a sweep: a strategy in an index of a sample, measured at every k.

The name of a cell's file is a digest of everything that decides its values: the rows of the tables,
the index, the strategy, the sample, the queries, the measures. So a sweep that was killed continues
where it stopped, and a sweep with another index measures only the cells of that index."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.experiment import evaluate
from pegboard.evaluation.golden import GoldenQuery, read_queries
from pegboard.evaluation.overhead import check_fallbacks, latency
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS, Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.retrieval.llm.caller import open_caller
from pegboard.retrieval.strategy import Strategy
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.store.contract import VECTOR_OPTIONS
from pegboard.tokens import prompt_tokens
from tasks import progress
from tasks.embed import encoder_for
from tasks.lake.query_vectors import CachedQueryEncoder
from tasks.settings.configuration import IndexSettings
from tasks.sweep.files import SweepFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.retrieval.llm.caller import LlmCaller

VERSION = 1
"""Counts up when the columns of a cell, or how they are measured, change."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured, by names and paths.

    Attributes:
        key: the digest of everything that decides the values.
        folder: the folder of the sweep.
        uri, release: the board, and the release by its id.
        strategy: as JSON values.
        size, seed, sample: of the sample, and the path of its file in the folder.
        golden, golden_digest, queries: the file of golden queries, and the places of the queries.
        timed: how many of them are searched one at a time to measure latency.
        options: of the encoder.
    """

    key: str
    folder: Path
    uri: str
    release: str
    index: str
    strategy: Mapping[str, Any]
    size: int
    seed: int
    sample: str
    golden: Path
    golden_digest: str
    queries: tuple[int, ...]
    measures: tuple[str, ...]
    ks: tuple[int, ...]
    timed: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    llm: str | None = None
    llm_api_base: str | None = None

    @property
    def name(self) -> str:
        """The name of the cell in progress displays."""
        return f"{self.strategy['name']} in {self.index}, {self.size} tools"

    @property
    def files(self) -> SweepFolder:
        """The folder of the sweep."""
        return SweepFolder(self.folder)

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
    """Evaluate a cell, and write its files.

    Raises:
        ConfigurationError: the golden queries were changed since the sweep began.
    """
    golden = golden_queries(cell.golden, cell.golden_digest)
    queries = [golden[place] for place in cell.queries]
    loaded = _sample(cell.uri, cell.release, cell.folder, cell.sample)
    caller = _llm_caller(cell.llm, cell.llm_api_base)
    system = _system(cell, Searcher(loaded, _cached_vectors(cell, loaded), caller))
    evaluation = evaluate(
        system,
        queries,
        [f"{measure}@{k}" for measure in cell.measures for k in cell.ks],
        advance=lambda count: progress.advance("queries", count, cell.name),
    )
    if cell.llm:
        check_fallbacks([evaluation.overhead], 0.0, "repeat the sweep: finished cells are kept.")
    _write(cell, evaluation, _latency(cell, system, queries))


def _system(cell: Cell, searcher: Searcher) -> ReleaseSystem:
    return ReleaseSystem(searcher, Strategy.from_dict(cell.strategy), cell.index)


def _latency(cell: Cell, system: ReleaseSystem, queries: Sequence[GoldenQuery]) -> dict[str, Any]:
    """Milliseconds of single requests with their encoding; None where none are timed."""
    if not cell.timed:
        return {"ms_p50": None, "ms_p95": None}
    loaded, caller = system.searcher.loaded, system.searcher.caller
    vectors = QueryVectors(_encoder(cell, loaded), None)
    timed = queries[:: max(1, len(queries) // cell.timed)][: cell.timed]
    own = _system(cell, Searcher(loaded, vectors, caller))
    p50, p95 = latency(own, timed, max(cell.ks))
    return {"ms_p50": p50, "ms_p95": p95}


def _write(cell: Cell, evaluation: Evaluation, timing: Mapping[str, Any]) -> None:
    import polars as pl

    by_query = {
        "place": cell.queries,
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
    efforts = [result.effort for result in evaluation.results if result.effort]
    without_llm = dict.fromkeys(part for effort in efforts for part, _ in effort.fallbacks)
    tokens = dict(zip(cell.ks, _tokens(cell, evaluation).mean(axis=0).tolist(), strict=True))
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
    types = {"k": pl.Int16, "ms_p50": pl.Float64, "ms_p95": pl.Float64}
    cell.files.write(cell.values, pl.concat(values))
    cell.files.write(cell.rows, pl.DataFrame(rows, schema_overrides=types))


def _tokens(cell: Cell, evaluation: Evaluation) -> "NDArray[np.float64]":
    """The prompt tokens of the first k tools, of shape (queries, ks)."""
    import numpy as np

    most = max(cell.ks)
    retrieved = [[tool.id for tool in result.retrieved[:most]] for result in evaluation.results]
    sizes = _known_tokens(cell.uri, cell.release)
    new = {tool for tools in retrieved for tool in tools if tool not in sizes}
    sizes.update(prompt_tokens(release_searcher(cell.uri, cell.release).loaded, new))
    table = np.zeros((len(retrieved), most + 1))
    for row, tools in enumerate(retrieved):
        table[row, 1 : len(tools) + 1] = [sizes[tool] for tool in tools]
    return np.cumsum(table, axis=1)[:, list(cell.ks)]


# What the cells of a process share.


@lru_cache(maxsize=2)
def release_searcher(uri: str, release: str) -> Searcher:
    """Return a release by its id. Raises BoardNotFound."""
    return Searcher.open(uri, release=release)


@lru_cache(maxsize=2)
def golden_queries(file: Path, expected: str) -> list[GoldenQuery]:
    """Return the golden queries of a file.

    Args:
        expected: the digest of the queries.

    Raises:
        ConfigurationError: the queries have another digest.
    """
    queries = read_queries(file)
    if digest([query.to_dict() for query in queries]) != expected:
        raise ConfigurationError(
            f"{file} was changed while the sweep ran. Start the sweep again; cells that are still "
            f"valid are kept."
        )
    return queries


@lru_cache(maxsize=1)
def _sample(uri: str, release: str, folder: Path, file: str) -> LoadedRelease:
    """The release with the tools of a sample only; itself, if the sample has all of them."""
    whole = release_searcher(uri, release)
    ids: list[str] = SweepFolder(folder).read_json(file)["tools"]
    return whole.loaded if len(ids) == len(whole.names.catalogs) else whole.restricted(ids).loaded


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
    options = json.dumps(dict(cell.options), sort_keys=True)
    key = (str(cell.folder), manifest["fingerprint"], options)
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
    manifest = loaded.index_manifest(cell.index)
    published = manifest.get("options", {})
    options = {name: published[name] for name in VECTOR_OPTIONS if name in published}
    settings = IndexSettings(encoder=manifest["encoder"], options={**options, **cell.options})
    return encoder_for(settings)
