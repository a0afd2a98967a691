"""The public benchmarks that stand beside a checkout, for the `bench_*` programs; nothing of them
is in this repository.

`pegboard bench` measures on them; these programs measure parts. They are started as modules:
`python -m benchmarks.performance.abstention`."""

import json
from pathlib import Path
from typing import Any

from benchmarks.papers.loading import load_benchmark

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"


def catalog_of(name: str) -> str:
    """The `[catalogs.NAME]` of a benchmark's first board, as TOML."""
    return load_benchmark(name, BENCHMARKS / name).boards[0].catalog


def lines(name: str) -> list[Any]:
    """The JSON values of a benchmark's file."""
    return [
        json.loads(line)
        for line in (BENCHMARKS / name).read_text("utf-8").splitlines()
        if line.strip()
    ]
