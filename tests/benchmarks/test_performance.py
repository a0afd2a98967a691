"""Every performance benchmark runs to its end, at a tiny size."""

import importlib
import os
import pkgutil
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import performance
from benchmarks.performance import data, start
from tasks import maintain

SHARED = {"gateway_upstream", "boards", "data", "shared"}
"""Modules without a benchmark of their own."""
TINY = {
    "gateway": "--sessions 2 --rounds 1 --requests 4 --encoder hashing/64",
    "engines": "--texts 20 --rounds 1 --encoder hashing/64",
    "scale": "--tools 60",
    "search": "--rows 300 --repeats 1",
    "start": "--rounds 0",
    "strategies": "--rows 300 --repeats 1",
    "threads": "--rows 300 --seconds 0.1 --rounds 1 --threads 1 2",
}
ON_PUBLIC_DATA = {
    "abstention": "--limit 40 --only livemcpbench ultratool",
    "dependencies": "",
}
MARKS = {"start": pytest.mark.prefect} | dict.fromkeys(("gateway", "scale"), pytest.mark.slow)
"""Those that start processes take seconds each."""
ROWS = 80


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the main function of a benchmark; returns what it printed."""

    def benchmark(name, options=""):
        monkeypatch.setattr(sys, "argv", [name, *options.split()])
        importlib.import_module(f"benchmarks.performance.{name}").main()
        return capsys.readouterr().out

    return benchmark


def test_every_benchmark_is_called_here():
    modules = {module.name for module in pkgutil.iter_modules(performance.__path__)}

    assert modules - SHARED == {*TINY, *ON_PUBLIC_DATA}
    assert {*TINY, *ON_PUBLIC_DATA} == benchmarks.PROGRAMS.keys() - benchmarks.MODULES


@pytest.mark.parametrize("name", benchmarks.PROGRAMS)
def test_every_program_is_started_by_its_name(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--help"])

    with pytest.raises(SystemExit) as exit_:
        benchmarks.main()

    assert exit_.value.code == 0
    assert f"usage: python -m benchmarks {name} [-h]" in capsys.readouterr().out


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in TINY])
def test_a_benchmark_runs_to_its_end(name, call, monkeypatch):
    monkeypatch.setattr(start, "TEXTS", 10)
    # Few rows, and indices as for many.
    monkeypatch.setattr(maintain, "IN_MEMORY_ROWS", 100)
    monkeypatch.setattr(maintain, "PARTITION_ROWS", 100)

    assert call(name, TINY[name]).strip()


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.skipif(
    os.environ.get("PEGBOARD_TEST_SIZE") != "full", reason="takes minutes: make soak runs it"
)
@pytest.mark.parametrize("name", ON_PUBLIC_DATA)
def test_a_benchmark_on_public_data_runs_to_its_end(name, call, monkeypatch):
    if not data.BENCHMARKS.is_dir():
        pytest.skip(f"the benchmarks are not at {data.BENCHMARKS}")
    module = importlib.import_module(f"benchmarks.performance.{name}")
    if read := getattr(module, "lines", None):
        monkeypatch.setattr(module, "lines", lambda file: read(file)[:ROWS])

    assert call(name, ON_PUBLIC_DATA[name]).strip()
