"""Benchmarks in a handful of rows of our own, in every layout, with unusable rows among them."""

import shutil
from pathlib import Path

import pytest

from pegboard.evaluation.searcher import Searcher

SPECIMENS = Path(__file__).parent / "specimens"
LIKE = {"toolsandbox": "toollinkos", "acebench-en": "bfcl"}
"""Benchmarks in the layout of another."""


@pytest.fixture
def specimen(tmp_path):
    """Copy a benchmark into a folder with its name, and return the folder."""
    return lambda name: shutil.copytree(SPECIMENS / LIKE.get(name, name), tmp_path / name)


@pytest.fixture
def boards_of(workshop_type, hashing, tmp_path):
    """Build the boards of a benchmark on the hashing encoder; returns what is searched, by name."""

    def build(benchmark):
        boards = {}
        for board in benchmark.boards:
            own = tmp_path / "boards" / benchmark.name / board.name
            own.mkdir(parents=True)
            for file, text in board.files.items():
                (own / file).write_text(text, "utf-8")
            workshop = workshop_type(own)
            workshop.run(workshop.configure(board.indexes, board.catalog), encoder=hashing(64))
            boards[board.name] = Searcher.open(workshop.uri, encoder=hashing(64))
        return boards

    return build
