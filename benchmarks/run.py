"""A benchmark from its files to its result: its boards built by the pipeline, asked through the
reader, measured.

Boards in a folder that stays are found again: the next run encodes only what changed.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.papers.benchmark import Benchmark
from benchmarks.papers.measuring import Work, measure, work_of
from benchmarks.papers.reading import counted, some
from benchmarks.papers.results import default_measures, result_of
from benchmarks.papers.strategies import Chosen, asks_llm
from flows.build import build
from flows.cli.options import quiet_encoders
from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure
from tasks import progress

if TYPE_CHECKING:
    from pegboard.evaluation.searcher import Searcher


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What is measured, and who may be asked.

    Attributes:
        chosen: the strategies; every strategy that can be asked if None.
        measures: the benchmark's own if empty.
        llm: a LiteLLM model for strategies that ask one.
        prefect: build the boards as Prefect flows.
    """

    chosen: Chosen | None = None
    measures: tuple[Measure, ...] = ()
    llm: str | None = None
    llm_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prefect: bool = False


@contextmanager
def working_folder(folder: Path | None) -> Generator[Path]:
    """The folder for boards: the one that is given and stays, or one that goes away at the end,
    also when interrupted.
    """
    if folder is None:
        with TemporaryDirectory(prefix="pegboard-bench-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be made: {error.strerror}. Give --board a folder that can be."
        ) from error
    yield folder.resolve()


def run_benchmark(benchmark: Benchmark, folder: Path, settings: BenchSettings) -> dict[str, Any]:
    """Build, ask and measure; see `result_of` for what comes back."""
    began = time.monotonic()
    outcomes = _built(benchmark, folder / benchmark.name, prefect=settings.prefect)
    built = time.monotonic()
    boards = _opened(outcomes, settings)
    measures = list(settings.measures) or default_measures(benchmark.name)
    work = work_of(benchmark, boards, settings.chosen)
    if not work.queries:
        raise ConfigurationError(
            f"None of the strategies of --strategy can be asked of {benchmark.name}. `pegboard "
            f"bench --help` lists them."
        )
    step, taken = f"ask {benchmark.name}", dict[str, float]()
    progress.start(step, work.queries)
    measured = measure(
        work,
        boards,
        measures,
        lambda count, strategy: progress.advance(step, count, strategy),
        taken,
    )
    asked = time.monotonic()
    seconds: dict[str, Any] = {"build": round(built - began, 2), "ask": round(asked - built, 2)}
    result = result_of(
        benchmark,
        measured,
        measures,
        boards={name: _said(outcome) for name, outcome in outcomes.items()},
        seconds=seconds,
        problems=[*_problems(outcomes.values()), *_without_llm(work, boards)],
    )
    result["seconds"] |= {
        "measure": round(time.monotonic() - asked, 2),
        "total": round(time.monotonic() - began, 2),
        "strategies": {name: round(value, 2) for name, value in taken.items()},
    }
    return result


def _built(benchmark: Benchmark, folder: Path, *, prefect: bool) -> dict[str, dict[str, Any]]:
    """What the pipeline says of each board, as `RunSummary.end` returns it."""
    configurations: dict[str, Path] = {}
    for board in benchmark.boards:
        own = folder / board.name
        own.mkdir(parents=True, exist_ok=True)
        for name, text in {**board.files, "pegboard.toml": board.configuration}.items():
            if not (own / name).is_file() or (own / name).read_text("utf-8") != text:
                (own / name).write_text(text, "utf-8")
        configurations[board.name] = own / "pegboard.toml"
    with quiet_encoders():
        return {
            name: build(file, allow_empty=True, prefect=prefect)
            for name, file in configurations.items()
        }


def _opened(
    outcomes: Mapping[str, Mapping[str, Any]], settings: BenchSettings
) -> "dict[str, Searcher]":
    """The releases that were built; a query that several are asked is encoded once."""
    from pegboard.evaluation.searcher import Searcher

    boards: dict[str, Searcher] = {}
    for name, outcome in outcomes.items():
        opened = Searcher.open(
            outcome["board"],
            release=outcome["release"],
            llm=settings.llm,
            llm_options=settings.llm_options,
        )
        first = next(iter(boards.values()), opened)
        boards[name] = Searcher(opened.loaded, first.vectors, first.caller)
    return boards


def _said(outcome: Mapping[str, Any]) -> dict[str, Any]:
    edges = outcome["edges"]
    return {
        "release": outcome["release"],
        "outcome": outcome["outcome"],
        "tools": sum(one["tools"] for one in outcome["catalogs"].values()),
        "agents": sum(one["agents"] for one in outcome["catalogs"].values()),
        "encoded": outcome["encoded"],
        "edges": edges["origins"] if edges else {},
    }


def _problems(outcomes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What the builds left out or could not do."""
    for outcome in outcomes:
        yield from outcome["problems"]
        yield from (problem for one in outcome["catalogs"].values() for problem in one["problems"])
        if rejected := [f"{_place(one['where'])}: {one['why']}" for one in outcome["rejected"]]:
            yield f"left out of the catalog: {counted(len(rejected), 'record')}: {some(rejected)}"
        if unresolved := outcome["edges"]["unresolved"] if outcome["edges"] else []:
            yield f"declared dependencies that name no tool: {len(unresolved)}: {some(unresolved)}"


def _place(where: str) -> str:
    """Where a record stands, without the folder."""
    return Path(where).name if Path(where).is_absolute() else where


def _without_llm(work: Work, boards: "Mapping[str, Searcher]") -> list[str]:
    named = {
        variant.name
        for asked, variant in work.tools
        if boards[asked.board].caller is None
        and asks_llm(boards[asked.board].strategy(variant.strategy))
    }
    return (
        [
            f"{', '.join(sorted(named))}: asked without an LLM (--llm), so embedded counterparts "
            f"did its work"
        ]
        if named
        else []
    )
