"""What a release finds for golden queries, remembered in the lake: what was asked once of a
release, a strategy and an index is not asked again.

lake/gates/answers/<digest>.parquet   what was found for each query, and what it needs among the
tools of the release
lake/gates/answers/<digest>.json      which of these is the newest of a release, an index, a
strategy and queries

Measures are computed from what was found, so that another measure costs nothing. What an earlier
version of the library found is asked again; where that cannot be done, because an encoder is gone,
it serves."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pegboard.board import IN_MEMORY_ROWS
from pegboard.canonical import digest
from pegboard.errors import PegboardError, StoreError
from pegboard.evaluation.experiment import ReleaseSystem
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.measures import Measure, per_query
from pegboard.evaluation.results import Evaluation, QueryResult, ScoredTool
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.strategy import Strategy
from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import Release, ReleaseStore
from tasks.gate.query_vectors import GoldenVectors
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration

FOLDER = "gates/answers"


@dataclass(frozen=True, slots=True)
class System:
    """A strategy in an index; in the indexes that the strategy itself names if `index` is None."""

    strategy: Strategy
    index: str | None

    @property
    def searched(self) -> tuple[str, ...]:
        """The indexes that are searched."""
        return (self.index,) if self.index else self.strategy.indexes


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation, the system whose it is, and where in the lake its answers are remembered."""

    system: System
    evaluation: Evaluation
    path: str


class Measurer:
    """Asks releases of one board, and remembers what they found.

    Args:
        depth: tools that are asked for.
        advance: told how many more queries were answered.
    """

    def __init__(
        self,
        configuration: Configuration,
        depth: int,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._store, self._lake = ReleaseStore(configuration.uri), Lake(configuration.uri)
        self._vectors = GoldenVectors(configuration)
        self._depth, self._advance = depth, advance
        self._judged: dict[str, Searcher] = {}

    def judged(self, release: Release) -> Searcher:
        """The release, loaded when it is first needed."""
        if release.id not in self._judged:
            loaded = LoadedRelease(self._store, release, IN_MEMORY_ROWS)
            self._judged[release.id] = Searcher(loaded, self._vectors)
        return self._judged[release.id]

    def measure(
        self,
        release: Release,
        system: System,
        queries: Sequence[GoldenQuery],
        measures: Sequence[Measure],
    ) -> Measured:
        """What the release finds by that system. Raises PegboardError if it cannot be asked, and
        was not before.
        """
        index = system.searched[0]
        path = f"{FOLDER}/{_key(release, system, queries)}"
        results = self._answers(path, release, system, queries)
        evaluation = Evaluation(
            release.id,
            system.strategy.name,
            index,
            str(release.manifest["indexes"][index]["encoder"]),
            results,
            per_query(
                measures,
                [result.needed.labels for result in results],
                [result.ranking() for result in results],
            ),
        )
        return Measured(system, evaluation, f"{path}.json")

    def _answers(
        self, path: str, release: Release, system: System, queries: Sequence[GoldenQuery]
    ) -> tuple[QueryResult, ...]:
        said = _pointer(self._lake, path)
        current = said.get("by") == version("pegboard") and said.get("depth") == self._depth
        if current and (known := _read(self._lake, said["answers"], queries)):
            self._advance(len(queries))
            return known
        try:
            answers = self._ask(release, system, queries)
        except PegboardError:
            deep = int(said.get("depth", 0)) >= self._depth
            if deep and (known := _read(self._lake, said["answers"], queries)):
                self._advance(len(queries))
                return known
            raise
        _write(self._lake, path, answers, self._depth)
        return answers

    def _ask(
        self, release: Release, system: System, queries: Sequence[GoldenQuery]
    ) -> tuple[QueryResult, ...]:
        return tuple(
            ReleaseSystem(self.judged(release), system.strategy, system.index).search(
                queries, self._depth, self._advance
            )
        )


def _key(release: Release, system: System, queries: Sequence[GoldenQuery]) -> str:
    return digest(
        release.digest, system.index, system.strategy.to_dict(), [one.to_dict() for one in queries]
    )


def _pointer(lake: Lake, path: str) -> Mapping[str, Any]:
    try:
        said = lake.read_json(f"{path}.json")
    except ValueError:
        return {}
    return said if isinstance(said, dict) and {"by", "depth", "answers"} <= said.keys() else {}  # pyright: ignore[reportUnknownVariableType]


def _write(lake: Lake, path: str, answers: Sequence[QueryResult], depth: int) -> None:
    import polars as pl

    frame = pl.DataFrame(
        {
            "found": [[one.id for one in answer.retrieved] for answer in answers],
            "scores": [[one.score for one in answer.retrieved] for answer in answers],
            "probabilities": [[one.probability for one in answer.retrieved] for answer in answers],
            "needed": [
                json.dumps(_needed_values(answer.needed), ensure_ascii=False) for answer in answers
            ],
        },
        schema={
            "found": pl.List(pl.String),
            "scores": pl.List(pl.Float64),
            "probabilities": pl.List(pl.Float64),
            "needed": pl.String,
        },
    )
    held = f"{FOLDER}/{digest(path, version('pegboard'), depth)}.parquet"
    lake.write(held, frame)
    lake.write_json(f"{path}.json", {"by": version("pegboard"), "depth": depth, "answers": held})


def _read(lake: Lake, path: str, queries: Sequence[GoldenQuery]) -> tuple[QueryResult, ...] | None:
    """The answers to the queries; None if they are damaged or gone: then they are asked again."""
    try:
        rows = lake.read(path).rows(named=True)
    except StoreError:
        return None
    if len(rows) != len(queries):
        return None
    return tuple(
        QueryResult(
            query,
            _needed(json.loads(row["needed"])),
            tuple(map(ScoredTool, row["found"], row["scores"], row["probabilities"])),
        )
        for query, row in zip(queries, rows, strict=True)
    )


def _needed_values(needed: Needed) -> dict[str, Any]:
    return {
        "tools": {name: sorted(ids) for name, ids in needed.tools.items()},
        "unknown": list(needed.unknown),
    }


def _needed(values: Mapping[str, Any]) -> Needed:
    return Needed(
        {name: frozenset(ids) for name, ids in values["tools"].items()}, tuple(values["unknown"])
    )
