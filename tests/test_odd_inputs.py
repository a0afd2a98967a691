"""Odd values of options and files: a message with the place, never a traceback or a wait."""

import json
import os

import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import MAX_REQUEST, read_problems
from pegboard.retrieval.strategies import load_strategy
from tasks.settings.configuration import load_configuration
from tasks.steps.snapshot import take_snapshot

DEEP = "[" * 100_000


def test_a_deeply_nested_strategy_is_a_message(tmp_path, capsys, board_uri):
    file = tmp_path / "deep.json"
    file.write_text(DEEP)

    code = main(["find", "add", "--board", board_uri, "--strategy", str(file)])

    assert code == 2
    assert "cannot be read as JSON" in capsys.readouterr().err
    assert load_strategy("search") == "search"


def test_a_deeply_nested_query_is_a_problem_of_its_line(tmp_path):
    file = tmp_path / "golden.jsonl"
    file.write_text(f'{{"query": "a", "tools": ["b"]}}\n{DEEP}\n')

    queries, problems = read_problems(file)

    assert len(queries) == 1
    assert f"{file}:2: not JSON" in problems[0]


def test_a_query_that_no_encoder_reads_is_a_problem(tmp_path):
    file = tmp_path / "golden.jsonl"
    rows = [{"query": "q" * length, "tools": ["b"]} for length in (MAX_REQUEST, MAX_REQUEST + 1)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    queries, problems = read_problems(file)

    assert len(queries) == 1
    assert problems[0].startswith(f"{file}:2: query: expected a text of at most 100,000 characters")


def test_a_pipe_in_place_of_a_file_is_not_waited_for(workshop):
    os.mkfifo(workshop.folder / "mcp.json")
    configuration = workshop.configure("", '[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n')

    snapshot = take_snapshot(configuration, "kit")

    assert "mcp.json is not a file" in snapshot.problems[0]


def test_a_board_with_a_nul_is_a_problem_of_the_configuration(workshop):
    workshop.configure()
    file = workshop.folder / "pegboard.toml"
    file.write_text(file.read_text().replace('"board"', '"bo\\u0000ard"'))

    with pytest.raises(ConfigurationError, match=r"board\.uri: .*has a NUL character"):
        load_configuration(file)
