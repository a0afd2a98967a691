"""A lake in a folder, and its files."""

from pathlib import Path

import pytest

from tasks.lake.files import Lake


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path / "board"))


@pytest.fixture
def lake_files(lake):
    """The files of the lake that exist now, by their paths in it."""

    def lake_files():
        root = Path(lake.uri)
        paths = [path for path in root.rglob("*") if path.is_file()]
        return {path.relative_to(root).as_posix(): path for path in paths}

    return lake_files
