"""Benchmarks in a handful of rows of our own, in every layout, with unusable rows among them."""

import shutil
from pathlib import Path

import pytest

SPECIMENS = Path(__file__).parent / "specimens"
LIKE = {"toolsandbox": "toollinkos", "acebench-en": "bfcl"}
"""Benchmarks in the layout of another."""


@pytest.fixture
def specimen(tmp_path):
    """Copy a benchmark into a folder with its name, and return the folder; `without` leaves files
    out.
    """

    def copy(name, without=()):
        source = SPECIMENS / LIKE.get(name, name)
        ignored = shutil.ignore_patterns(*without)
        return shutil.copytree(source, tmp_path / name, ignore=ignored)

    return copy
