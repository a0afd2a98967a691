"""Commands of the pipeline, called in this process and without the Prefect settings of the
person who runs the tests.
"""

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks.__main__ import main as benchmarks
from pegboard.cli.main import main
from tests.children import clean_environment


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment for processes that names no Prefect server, profile or board."""
    return clean_environment(tmp_path / "home")


@pytest.fixture
def command(
    tmp_path: Path,
    alone: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run a command of `pegboard` in the test's folder; returns exit code, stdout and stderr.

    `bench` stands for `python -m benchmarks`. What a command changes in its process for the rest of
    its life is undone."""
    logger, thresholds = logging.getLogger("pegboard.encoders"), gc.get_threshold()
    level = logger.level

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            words = [str(argument) for argument in arguments]
            code = benchmarks(words[1:]) if words[0] == "bench" else main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ, alone, clear=True):
        yield run
    logger.setLevel(level)
    gc.set_threshold(*thresholds)


@pytest.fixture
def as_flow(
    prefect_server: Any, tmp_path: Path
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a command of `pegboard` on the Prefect server of the session, in the folder `as-flow`."""
    folder = tmp_path / "as-flow"
    folder.mkdir()

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "pegboard", *map(str, arguments)],
            cwd=folder,
            env=prefect_server.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
