"""A benchmark from its files to its result: build its boards, evaluate, measure.

Boards in a folder of one's own are kept: the next run encodes only what changed.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.papers.benchmark import Benchmark
from benchmarks.papers.indexes import IndexFile
from benchmarks.papers.measuring import default_measures, measure_runs, result_of, runs_of
from benchmarks.papers.reading import PROBLEMS_SHOWN
from benchmarks.papers.strategies import Chosen
from flows.build import BuildOptions, build
from flows.cli.options import quiet_encoders
from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.overhead import Overhead
from pegboard.evaluation.searcher import CACHED_QUERY_VECTORS, Searcher
from pegboard.formatting import count_text, list_text
from pegboard.search.query_vectors import QueryVectors
from tasks.runtime import progress
from tasks.settings.configuration import load_configuration
from tasks.settings.encoders import encoder_for


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What is measured, and by which LLM.

    Attributes:
        chosen: the strategies; every strategy whose requirements are met if None.
        measures: the benchmark's own if empty.
        llm: a LiteLLM model for strategies that ask one.
        indexes: instead of the benchmark's own, each on boards of its own.
    """

    chosen: Chosen | None = None
    measures: tuple[Measure, ...] = ()
    llm: str | None = None
    llm_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    indexes: Sequence[IndexFile] = ()


@contextmanager
def working_folder(folder: str | Path | None) -> Generator[Path]:
    """The folder for boards: the given one, or a temporary one."""
    if folder is None:
        with TemporaryDirectory(prefix="pegboard-bench-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be created: {error.strerror}. Give --board another folder."
        ) from error
    yield folder.resolve()


@dataclass(frozen=True, slots=True)
class Built:
    """The boards of a benchmark with one set of indexes.

    Attributes:
        outcomes: what the pipeline reports of each board.
        searchers: by board, for each index that is searched; None is the release's default.
        note: behind the names of the boards in results.
    """

    benchmark: Benchmark
    outcomes: Mapping[str, Mapping[str, Any]]
    searchers: Mapping[str | None, Mapping[str, Searcher]]
    note: str = ""


def run_benchmark(
    benchmark: Benchmark, folder: Path, settings: BenchSettings
) -> tuple[dict[str, Any], list[Overhead]]:
    """Build the boards, evaluate and measure; returns `result_of` and what the answers took."""
    began = time.monotonic()
    every = list(_built(_with_needed_boards(benchmark, settings.chosen), folder, settings))
    built = time.monotonic()
    measures = list(settings.measures) or default_measures(benchmark.name)
    runs = [
        run
        for one in every
        for index, boards in one.searchers.items()
        for run in runs_of(one.benchmark, boards, settings.chosen, index)
    ]
    if not runs:
        raise ConfigurationError(
            f"No strategy of --strategy can answer the queries of {benchmark.name}. List the "
            f"strategies: python -m benchmarks --help"
        )
    step = f"ask {benchmark.name}"
    progress.start(step, sum(len(run.query_set.queries) for run in runs))
    with ExitStack() as opened:
        for one in every:  # all boards of one share its LLM
            first = next(iter(one.searchers.values()))
            opened.enter_context(closing(next(iter(first.values()))))
        measured = measure_runs(
            runs, measures, lambda count, strategy: progress.advance(step, count, strategy)
        )
    asked = time.monotonic()
    outcomes = {
        f"{name}{one.note}": outcome for one in every for name, outcome in one.outcomes.items()
    }
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


def _with_needed_boards(benchmark: Benchmark, chosen: Chosen | None) -> Benchmark:
    """The benchmark without boards that no chosen strategy searches."""
    needed = {query_set.board for query_set in benchmark.query_sets} | {
        variant.board
        for query_set in benchmark.query_sets
        for variant in query_set.variants
        if chosen is None or variant.name in chosen.names
    }
    boards = tuple(board for board in benchmark.boards if board.name in needed)
    return replace(benchmark, boards=boards)


def _built(benchmark: Benchmark, folder: Path, settings: BenchSettings) -> Iterator[Built]:
    """The boards with the benchmark's own indexes, or for each file of indexes."""
    if not settings.indexes:
        outcomes = _build(benchmark, folder / benchmark.name)
        yield Built(benchmark, outcomes, {None: _open(outcomes, settings)})
    for file in settings.indexes:
        yield _built_with(file, benchmark, folder, settings)


def _built_with(
    file: IndexFile, benchmark: Benchmark, folder: Path, settings: BenchSettings
) -> Built:
    composed = file.applied_to(benchmark)
    own = folder / f"{benchmark.name}@{file.name}"
    outcomes = _build(composed, own)
    boards = _open(outcomes, settings)
    configuration = load_configuration(own / benchmark.boards[0].name / "pegboard.toml")
    searchers: dict[str | None, Mapping[str, Searcher]] = {}
    shared: dict[str, QueryVectors] = {}  # indexes of one encoder have a query encoded once
    for index in configuration.indexes:
        key = f"{index.encoder} {index.options}"
        if key not in shared:
            shared[key] = QueryVectors(encoder_for(index), None, CACHED_QUERY_VECTORS)
        searchers[index.name] = {
            name: Searcher(board.loaded, shared[key], board.caller)
            for name, board in boards.items()
        }
    return Built(composed, outcomes, searchers, f" ({file.name})")


def open_boards(benchmark: Benchmark, folder: Path, encoder: Encoder) -> dict[str, Searcher]:
    """Build the boards in a folder and open them; their queries are encoded by `encoder`."""
    outcomes = _build(benchmark, folder)
    return {
        name: Searcher.open(outcome["board"], release=outcome["release"], encoder=encoder)
        for name, outcome in outcomes.items()
    }


def _build(benchmark: Benchmark, folder: Path) -> dict[str, dict[str, Any]]:
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
            name: build(file, BuildOptions(allow_removal=True))
            for name, file in configurations.items()
        }


def _open(
    outcomes: Mapping[str, Mapping[str, Any]], settings: BenchSettings
) -> dict[str, Searcher]:
    """The built releases; they share the encoders, so that a query is encoded once."""
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
