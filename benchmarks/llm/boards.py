"""The boards of an experiment: of which benchmarks, with which indexes and texts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.llm.measured import Experiment, Places
from benchmarks.papers.benchmark import Benchmark
from benchmarks.papers.indexes import IndexFile, read_index_files
from benchmarks.papers.loading import load_benchmark

HERE = Path(__file__).parent


def benchmarks_of(experiment: Experiment, places: Places) -> Iterator[Benchmark]:
    """Yield the benchmarks of an experiment; raises as `load_benchmark` does."""
    for name in experiment.benchmarks:
        if name != "real":
            benchmark = load_benchmark(name, places.data, experiment.limit)
            yield with_boards(benchmark, experiment.boards)
        elif places.real is not None:
            yield load_benchmark(name, places.real, only=experiment.catalogs)


def with_boards(benchmark: Benchmark, names: Sequence[str]) -> Benchmark:
    """Return a benchmark with the boards of these names and what is asked there; all if empty."""
    if not names:
        return benchmark
    return replace(
        benchmark,
        boards=tuple(board for board in benchmark.boards if board.name in names),
        query_sets=tuple(one for one in benchmark.query_sets if one.board in names),
    )


def index_files(experiment: Experiment, places: Places) -> list[IndexFile]:
    """Return the indexes of an experiment with the recorded replies.

    Where missing replies are written down, boards are built without them, so that one run writes
    the requests of all boards.
    """
    if not experiment.indexes:
        return []
    files = read_index_files([str(HERE / experiment.indexes)])
    incomplete = "publish" if places.missing == "write" else None
    return [file.with_replies(str(places.replies), places.missing, incomplete) for file in files]
