"""Hostile sources of every kind cost only what is hostile in them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import boards
from tests.fuzz.run import run
from tests.fuzz.sources import DOCUMENTS, RECORDS, mcp_live

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
FILES = [generator for generator in (*RECORDS, *DOCUMENTS) if generator is not mcp_live]
MEMORY_MB = 1_000


@pytest.mark.parametrize("generator", FILES, ids=lambda generator: generator.__name__)
def test_a_hostile_record_costs_itself_and_a_hostile_file_or_module_no_other(tmp_path, generator):
    number, size = (4, 1) if generator in DOCUMENTS else (60, 30)

    outcome = run(1, number, tmp_path, size=size, generators=[generator])

    assert outcome.violations == []
    assert outcome.counts["records"] == number


@pytest.mark.slow
def test_a_hostile_tool_of_a_live_server_costs_itself(tmp_path):
    assert run(1, 60, tmp_path, size=30, generators=[mcp_live]).violations == []


def test_a_hostile_board_is_a_clear_error_calls_nobody_and_leaves_running_readers(tmp_path):
    outcome = boards.run(1, 18, tmp_path)

    assert outcome.violations == []
    assert outcome.counts["refused"] > 18


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("program", "unit", "full", "small"),
    [("boards", "variants", 2_000, 200), ("run", "records", 100_000, 2_000)],
)
def test_much_that_is_hostile_crashes_hangs_and_loses_nothing(program, unit, full, small):
    size = ["--seed", "2", f"--{unit}", str(full if FULL else small)]

    # In a process of its own: its peak is that of nobody else.
    done = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{program}", *size],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )

    outcome = json.loads(done.stdout)
    assert outcome["violations"] == []
    assert outcome["peak_mb"] < MEMORY_MB
