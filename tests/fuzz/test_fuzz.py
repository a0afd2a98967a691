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
    assert outcome.records == number


@pytest.mark.slow
def test_a_hostile_tool_of_a_live_server_costs_itself(tmp_path):
    assert run(1, 60, tmp_path, size=30, generators=[mcp_live]).violations == []


def test_a_hostile_board_is_a_clear_error_calls_nobody_and_leaves_running_readers(tmp_path):
    outcome = boards.run(1, 27, tmp_path)

    assert outcome.violations == []
    assert outcome.refused > 27


def outcome_of(program: str, *options: str) -> dict:
    """What a program of the fuzz says, run in a process of its own: its peak is that of nobody
    else.
    """
    command = [sys.executable, "-m", program, "--seed", "2", *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_hundreds_of_hostile_boards_are_clear_errors():
    outcome = outcome_of("tests.fuzz.boards", "--variants", "2000" if FULL else "200")

    assert outcome["violations"] == []
    assert outcome["peak_mb"] < MEMORY_MB


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_thousands_of_hostile_records_crash_hang_and_lose_nothing():
    outcome = outcome_of("tests.fuzz.run", "--records", "100000" if FULL else "2000")

    assert outcome["violations"] == []
    assert outcome["peak_mb"] < MEMORY_MB
