"""Every performance benchmark runs to its end, at a tiny size."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

from benchmarks import performance
from benchmarks.performance import boards, data, llm, start
from tasks.maintain import IndexSizes

SHARED = {"service_app", "gateway_upstream", "boards", "data", "shared"}
"""Modules without a benchmark of their own."""
TINY = {
    "gateway": "--sessions 2 --rounds 1 --requests 4 --encoder hashing/64",
    "engines": "--texts 20 --rounds 1 --encoder hashing/64",
    "incremental": "--tools 200 --change 0.1",
    "llm": "",
    "scale": "--tools 60",
    "search": "--rows 300 --repeats 1",
    "start": "--rounds 0",
    "strategies": "--rows 300 --repeats 1",
    "service": "--rows 300 --clients 3 --rounds 1",
    "threads": "--rows 300 --seconds 0.1 --rounds 1 --threads 1 2",
}
ON_PUBLIC_DATA = {
    "abstention": "--limit 40 --only livemcpbench ultratool",
    "dependencies": "",
    "filter": "",
}
MARKS = {"start": pytest.mark.prefect} | dict.fromkeys(
    ("gateway", "incremental", "scale", "service"), pytest.mark.slow
)
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

    assert modules - SHARED == {*TINY, *ON_PUBLIC_DATA, "formats"}


def test_tokens_of_definitions_are_counted_for_a_board(board_uri):
    # In a process of its own: the benchmark of LLM calls has to load LiteLLM itself.
    command = [sys.executable, "-m", "benchmarks.performance.formats", board_uri]

    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert [line.split(" | ")[1] for line in printed.splitlines()[2:]] == ["14"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in TINY])
def test_a_benchmark_runs_to_its_end(name, call, monkeypatch):
    monkeypatch.setattr(llm, "CALLS", 3)
    monkeypatch.setattr(start, "TEXTS", 10)
    # Few rows, and indices as for many.
    monkeypatch.setattr(boards, "SIZES", IndexSizes(in_memory=100, flat_partition=100))

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
    for reader in ("lines", "requests_of", "_pairs"):
        if read := getattr(module, reader, None):
            monkeypatch.setattr(module, reader, lambda file, read=read: read(file)[:ROWS])
    if hasattr(module, "bench_cost"):
        monkeypatch.setattr(module, "bench_cost", lambda tools, questions: None)

    assert call(name, ON_PUBLIC_DATA[name]).strip()
