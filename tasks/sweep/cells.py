"""One cell of a sweep: an index, a strategy and a sample of the catalog, asked all golden queries
of the sample once, and measured at every k.

A cell is done when its file is there; the file's name is a digest of all that decides the result:
the rows of the tables, the index, the strategy, the sample, the queries, the measures. So a sweep
that was killed goes on where it stopped, and one with another index added measures only that.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.encoders import Encoder
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.results import Evaluation
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.strategy import Strategy
from pegboard.search.query_vectors import QueryVectors
from tasks import progress
from tasks.sweep.files import write_frame
from tasks.sweep.opened import (
    caller_of,
    encoder_of,
    golden_queries,
    sample_of,
    tokens_of,
    vectors_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
"""Counts up when what a cell holds, or how it is measured, changes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured, by names and paths.

    Attributes:
        key: the digest of all that decides the result.
        folder: of the sweep.
        uri, release: the board, and the release by its id.
        strategy: as JSON values.
        size, seed, sample: of the sample, and its file.
        golden, golden_digest, queries: the file of golden queries, and the places of those that are
            asked.
        timed: how many of them are asked one at a time.
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
    sample: Path
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
        """For the person who watches."""
        return f"{self.strategy['name']} in {self.index}, {self.size} tools"

    @property
    def rows(self) -> Path:
        """Its file: a row for each measure and k."""
        return self.folder / "cells" / f"{self.key}.parquet"

    @property
    def values(self) -> Path:
        """The values query by query."""
        return self.folder / "cells" / f"{self.key}.values.parquet"


def is_done(cell: Cell) -> bool:
    """Whether the cell was measured before."""
    return cell.rows.is_file()


def measure_cell(cell: Cell, encoder: Encoder | None = None) -> None:
    """Ask, measure, and write the files of the cell.

    Args:
        encoder: stands in for the one of the index.
    """
    golden = golden_queries(cell.golden, cell.golden_digest)
    queries = [golden[place] for place in cell.queries]
    strategy = Strategy.from_dict(cell.strategy)
    loaded = sample_of(cell.uri, cell.release, cell.sample)
    manifest, caller = loaded.index_manifest(cell.index), caller_of(cell.llm, cell.llm_api_base)
    vectors = (
        QueryVectors(encoder, None)
        if encoder
        else vectors_of(cell.folder / "queries", manifest, cell.options)
    )
    evaluation = evaluate(
        ReleaseSystem(Searcher(loaded, vectors, caller), strategy, cell.index),
        queries,
        [f"{kind}@{k}" for kind in cell.measures for k in cell.ks],
        advance=lambda done: progress.advance("queries", done, cell.name),
    )
    one_by_one = (
        QueryVectors(encoder or encoder_of(manifest, cell.options), None, 0)
        if cell.timed
        else vectors
    )
    timed = _timed(Searcher(loaded, one_by_one, caller), queries, strategy, cell)
    tokens = _tokens(cell, evaluation)
    _write(cell, evaluation, tokens, timed)


def _timed(
    searcher: Searcher, queries: Sequence[GoldenQuery], strategy: Strategy, cell: Cell
) -> dict[str, Any]:
    """How long single requests take, their encoding included, and what an LLM would have done if
    there had been one.
    """
    import numpy as np

    spent: list[float] = []
    instead: list[str] = []
    step = max(1, len(queries) // max(cell.timed, 1))
    chosen = queries[::step][: cell.timed]
    for query in [
        *chosen[:1],
        *chosen,
    ]:  # the first one once more, since what it loads is loaded once
        began = time.perf_counter()
        found = searcher.search([query], max(cell.ks), strategy=strategy, index=cell.index)[0]
        spent.append((time.perf_counter() - began) * 1000)
        instead += [part.part for part in found.trace.parts if part.fallback_reason]
    p50, p95 = np.percentile(spent[1:], [50, 95]).tolist() if chosen else (None, None)
    return {"ms_p50": p50, "ms_p95": p95, "without_llm": ", ".join(dict.fromkeys(instead))}


def _tokens(cell: Cell, evaluation: Evaluation) -> "NDArray[np.float64]":
    """About how many prompt tokens the first k tools take, of shape (queries, ks)."""
    import numpy as np

    found = {one.id for answer in evaluation.results for one in answer.retrieved}
    known = tokens_of(cell.uri, cell.release, found)
    summed = np.zeros((len(evaluation.results), max(cell.ks) + 1))
    for row, answer in enumerate(evaluation.results):
        taken = [known[one.id] for one in answer.retrieved[: max(cell.ks)]]
        summed[row, 1 : len(taken) + 1] = taken
    return np.cumsum(summed, axis=1)[:, list(cell.ks)]


def _write(
    cell: Cell, evaluation: Evaluation, tokens: "NDArray[np.float64]", timed: Mapping[str, Any]
) -> None:
    import polars as pl

    values = [
        pl.DataFrame(
            {
                "place": cell.queries,
                "query": [answer.query.id for answer in evaluation.results],
                "kind": [answer.query.kind for answer in evaluation.results],
                "measure": one.kind,
                "k": one.k,
                "value": found,
            },
            schema_overrides={"place": pl.Int32, "k": pl.Int16},
        )
        for one, found in evaluation.values.items()
    ]
    means = dict(zip(cell.ks, tokens.mean(axis=0).tolist(), strict=True))
    rows = [
        {
            "k": one.k,
            "measure": one.kind,
            **interval(found).to_dict(),
            "tokens": means[one.k or 0],
            **timed,
        }
        for one, found in evaluation.values.items()
    ]
    write_frame(cell.values, pl.concat(values))
    write_frame(
        cell.rows,
        pl.DataFrame(
            rows, schema_overrides={"k": pl.Int16, "ms_p50": pl.Float64, "ms_p95": pl.Float64}
        ),
    )
