"""Every performance benchmark runs to its end, at a tiny size."""

import importlib
import pkgutil
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import performance
from benchmarks.papers import NAMES
from tasks.steps import maintain

SHARED = {"gateway_upstream", "boards", "shared"}
"""Modules without a benchmark of their own."""
TINY = {
    "abstention": "--limit 40 --data {data} --board {data}/kept",
    "gateway": "--sessions 2 --rounds 1 --requests 4 --encoder hashing/64",
    "scale": "--tools 60",
}
SLOW = ("abstention", "gateway", "scale")
"""Those that build boards or start processes take seconds each."""


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

    assert modules - SHARED == {*TINY} == benchmarks.PROGRAMS.keys() - benchmarks.MODULES


@pytest.mark.parametrize("name", benchmarks.PROGRAMS)
def test_every_program_is_started_by_its_name(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--help"])

    with pytest.raises(SystemExit) as exit_:
        benchmarks.main()

    assert exit_.value.code == 0
    assert f"usage: python -m benchmarks {name} [-h]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else ()) for name in TINY]
)
def test_a_benchmark_runs_to_its_end(name, call, monkeypatch, specimen, tmp_path):
    for benchmark in NAMES:
        specimen(benchmark)
    # Few rows, and indices as for many.
    monkeypatch.setattr(maintain, "IN_MEMORY_ROWS", 100)
    monkeypatch.setattr(maintain, "PARTITION_ROWS", 100)

    assert call(name, TINY[name].format(data=tmp_path)).strip()
