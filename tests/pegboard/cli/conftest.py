"""Calls the reader's commands as the console script does."""

import json
import shlex
from dataclasses import dataclass

import pytest

from pegboard.cli.main import main


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch):
    """Call a command line as a shell would: `run("search 'high tide' -k 2", board=uri)`."""
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)

    def call(line, *more, board=None):
        words = [*shlex.split(line), *map(str, more)]
        try:
            code = main([*words, "--board", str(board)] if board is not None else words)
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    return call
