"""A benchmark by its name."""

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.papers import NAMES, linked, livemcpbench, metatool, seal_tools, toolret, ultratool
from benchmarks.papers.benchmark import Benchmark, sampled
from benchmarks.real import catalogs
from pegboard.errors import ConfigurationError

LOADERS: dict[str, Callable[[Path], Benchmark]] = {
    "seal-tools": seal_tools.load,
    "metatool": metatool.load,
    "toollinkos": linked.load,
    "toolsandbox": lambda path: linked.load(path, "toolsandbox"),
    "livemcpbench": livemcpbench.load,
    "ultratool": ultratool.load,
    "toolret": toolret.load,
    "bfcl": lambda path: toolret.load(path, "bfcl"),
    "acebench-en": lambda path: toolret.load(path, "acebench-en"),
}


def load_benchmark(
    name: str,
    path: Path,
    limit: int | None = None,
    seed: int = 0,
    only: Sequence[str] = (),
) -> Benchmark:
    """Read a benchmark, with at most `limit` queries of each set.

    Args:
        only: the catalogs of `real` to read; all if empty.

    Raises ConfigurationError if the folder does not hold it or no row of it can be asked, and
    SourceError if a file cannot be read.
    """
    benchmark = catalogs.load(path, only) if name == "real" else LOADERS[name](path)
    expected = NAMES.get(name, "what `python -m benchmarks fetch` writes")
    if not any(one.queries for one in benchmark.query_sets):
        problems = "; ".join(benchmark.problems) or "its files are empty"
        raise ConfigurationError(
            f"{path} has no query of {name} that can be asked: {problems}. Expected {expected}."
        )
    if not benchmark.tools:
        raise ConfigurationError(
            f"{path} has no tool of {name} that can be indexed. Expected {expected}."
        )
    return sampled(benchmark, limit, seed) if limit is not None else benchmark
