"""A benchmark by its name."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers import NAMES, linked, livemcpbench, metatool, seal_tools, toolret, ultratool
from benchmarks.papers.benchmark import Benchmark, sampled
from pegboard.errors import ConfigurationError

LOADERS: dict[str, Callable[[Path], Benchmark]] = {
    "seal-tools": seal_tools.load,
    "metatool": metatool.load,
    "toollinkos": linked.load,
    "toolsandbox": lambda path: linked.load(path, "toolsandbox"),
    "livemcpbench": livemcpbench.load,
    "ultratool": ultratool.load,
    "toolret": toolret.load,
}


def load_benchmark(name: str, path: Path, limit: int | None = None, seed: int = 0) -> Benchmark:
    """The benchmark of that name in a folder, with at most `limit` queries of each kind of
    question.

    Raises ConfigurationError if the folder does not hold it, or no row of it can be asked;
    SourceError if a file cannot be read."""
    if name not in LOADERS:
        raise ConfigurationError(
            f"There is no benchmark '{name}'. Expected one of: {', '.join(NAMES)}; or all."
        )
    benchmark = LOADERS[name](path)
    if not any(one.queries for one in benchmark.asked):
        left = "; ".join(benchmark.problems) or "its files are empty"
        raise ConfigurationError(
            f"{path} has no query of {name} that can be asked: {left}. Expected {NAMES[name]}."
        )
    if not benchmark.tools:
        raise ConfigurationError(
            f"{path} has no tool of {name} that can be indexed. Expected {NAMES[name]}."
        )
    return sampled(benchmark, limit, seed) if limit is not None else benchmark
