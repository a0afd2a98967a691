"""A benchmark from its files to its result: build its boards, evaluate, measure.

Boards in a folder of one's own are kept: the next run encodes only what changed.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.papers.benchmark import Benchmark
from benchmarks.papers.measuring import default_measures, measure_runs, result_of, runs_of
from benchmarks.papers.reading import PROBLEMS_SHOWN
from benchmarks.papers.strategies import Chosen
from flows.build import BuildOptions, build
from flows.cli.options import quiet_encoders
from pegboard.cli.tables import count_text, list_text
from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.overhead import Overhead
from tasks import progress

if TYPE_CHECKING:
    from pegboard.evaluation.searcher import Searcher


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What is measured, and by which LLM.

    Attributes:
        chosen: the strategies; every strategy whose requirements are met if None.
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
    """The folder for boards: the given one, or a temporary one."""
    if folder is None:
        with TemporaryDirectory(prefix="pegboard-bench-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be created: {error.strerror}. Give --board another folder."
        ) from error
    yield folder.resolve()


def run_benchmark(
    benchmark: Benchmark, folder: Path, settings: BenchSettings
) -> tuple[dict[str, Any], list[Overhead]]:
    """Build the boards, evaluate and measure; returns `result_of` and what the answers took."""
    began = time.monotonic()
    outcomes = _build(benchmark, folder / benchmark.name, prefect=settings.prefect)
    built = time.monotonic()
    measures = list(settings.measures) or default_measures(benchmark.name)
    boards = _open(outcomes, settings)
    runs = runs_of(benchmark, boards, settings.chosen)
    if not runs:
        raise ConfigurationError(
            f"No strategy of --strategy can answer the queries of {benchmark.name}. List the "
            f"strategies: python -m benchmarks --help"
        )
    step = f"ask {benchmark.name}"
    progress.start(step, sum(len(run.query_set.queries) for run in runs))
    with closing(next(iter(boards.values()))):  # all boards share its LLM
        measured = measure_runs(
            runs, measures, lambda count, strategy: progress.advance(step, count, strategy)
        )
    asked = time.monotonic()
    result = result_of(
        benchmark,
        measured,
        measures,
        boards={name: _board_values(outcome) for name, outcome in outcomes.items()},
        seconds={"build": round(built - began, 2), "ask": round(asked - built, 2)},
        problems=_problems(outcomes.values()),
    )
    result["seconds"] |= {
        "measure": round(time.monotonic() - asked, 2),
        "total": round(time.monotonic() - began, 2),
        "strategies": {name: round(value, 2) for name, value in measured.seconds.items()},
    }
    return result, measured.overheads


def open_boards(benchmark: Benchmark, folder: Path, encoder: Encoder) -> "dict[str, Searcher]":
    """Build the boards in a folder and open them; their queries are encoded by `encoder`."""
    from pegboard.evaluation.searcher import Searcher

    outcomes = _build(benchmark, folder, prefect=False)
    return {
        name: Searcher.open(outcome["board"], release=outcome["release"], encoder=encoder)
        for name, outcome in outcomes.items()
    }


def _build(benchmark: Benchmark, folder: Path, *, prefect: bool) -> dict[str, dict[str, Any]]:
    """Build each board; returns what the pipeline reports of it."""
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
            name: build(file, BuildOptions(allow_removal=True), prefect=prefect)
            for name, file in configurations.items()
        }


def _open(
    outcomes: Mapping[str, Mapping[str, Any]], settings: BenchSettings
) -> "dict[str, Searcher]":
    """The built releases; they share the encoders, so that a query is encoded once."""
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


def _board_values(outcome: Mapping[str, Any]) -> dict[str, Any]:
    catalogs, edges = outcome["catalogs"].values(), outcome["edges"]
    return {
        "release": outcome["release"],
        "outcome": outcome["outcome"],
        "tools": sum(catalog["tools"] for catalog in catalogs),
        "agents": sum(catalog["agents"] for catalog in catalogs),
        "encoded": outcome["encoded"],
        "edges": edges["origins"] if edges else {},
    }


def _problems(outcomes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What the builds left out or could not do."""
    for outcome in outcomes:
        yield from outcome["problems"]
        for catalog in outcome["catalogs"].values():
            yield from catalog["problems"]
        if rejected := [f"{_place(row['where'])}: {row['why']}" for row in outcome["rejected"]]:
            records, first = count_text(len(rejected), "record"), _first(rejected)
            yield f"left out of the catalog: {records}: {first}"
        if unresolved := outcome["edges"]["unresolved"] if outcome["edges"] else []:
            first = _first(unresolved)
            yield f"declared dependencies that name no tool: {len(unresolved)}: {first}"


def _first(reasons: Sequence[Any]) -> str:
    return list_text((f"{reason:.200}" for reason in reasons), PROBLEMS_SHOWN, "; ")


def _place(where: str) -> str:
    """The place of a record, without the folder."""
    return Path(where).name if Path(where).is_absolute() else where
