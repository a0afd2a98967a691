"""A lake in a folder."""

import pytest

from tasks.lake.files import Lake


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path / "board"))
